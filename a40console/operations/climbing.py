"""Starts a profile by its ladder: as it is written, then with each placement that may mend it."""

from __future__ import annotations

from dataclasses import replace

from a40console.engines.capability import needs_gpu
from a40console.engines.memory_asked import utilization
from a40console.errors import ConsoleError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations.ending import FailedStartError, kind_of_failure
from a40console.operations.ladder import placed, rung_in_words, rungs
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.memory import GpuTakenError
from a40console.operations.roles import Recorder
from a40console.operations.steps import StartInterruptedError

BY_ARGUMENTS = frozenset(
    {
        "unknown-flag",
        "unknown-parser",
        "speculation-json",
        "speculation-method",
        "speculation-key",
        "speculation-refused",
        "async-speculation",
        "chat-template-missing",
        "chat-template-unusable",
        "quantization-needs-newer-gpu",
        "not-quantized-so",
        "heads-not-divisible",
        "too-few-gpus",
        "lora-missing",
        "endpoint-key-refused",
    }
)
"""Refusals, by their diagnosis, that of all a placement sets its arguments alone can mend."""


class Climber:
    """Brings an engine up on the first rung that holds."""

    def __init__(self, life: EngineLife, recorder: Recorder) -> None:
        self._life = life
        self._record = recorder

    async def climb(self, wanted: Wanted) -> None:
        """Start it, from the wanted rung on.

        Raises:
            StartInterruptedError: If a stop came.
            ConsoleError: If none of them serves, or no other placement mends what failed.
        """
        profile = wanted.profile
        rung: int | None = min(wanted.rung, rungs(profile) - 1)
        while rung is not None:
            try:
                await self._life.bring_up(replace(wanted, rung=rung))
            except StartInterruptedError:
                raise
            except ConsoleError as error:
                following = next_rung(profile, rung, error)
                if profile.placements:
                    self._tell(profile, rung, error, following)
                if following is None or self._life.status.state is EngineState.ORPHANED:
                    raise
                rung = following
            else:
                return

    def _tell(
        self, profile: Profile, rung: int, error: ConsoleError, following: int | None
    ) -> None:
        words, kind = rung_in_words(profile, rung), kind_of_failure(error)
        told = {"rejected": "was rejected", "out_of_memory": "ran out of memory"}
        left = following is None and rung < rungs(profile) - 1
        no_more = "; no other placement mends that" if left else ""
        self._record(
            "engine.placement_failed",
            f"{profile.name} {words} {told.get(kind, 'failed')}: {error.message}{no_more}",
            "warn",
            {
                "rung": f"{rung} of {len(profile.placements)}",
                "kind": kind,
                "evidence": error.evidence,
                "remedy": error.remedy,
            },
        )


def next_rung(profile: Profile, rung: int, error: ConsoleError) -> int | None:
    """The rung after one that failed; None where no placement that is left can mend it.

    Each try keeps clients waiting: what failed of the disk, a port, the model or the engine's
    program fails of it with every placement. A GPU that is taken has no more room for another
    that asks for as much of it.
    """
    if kind_of_failure(error) == "other":
        return None
    further = range(rung + 1, rungs(profile))
    if isinstance(error, FailedStartError) and error.code in BY_ARGUMENTS:
        refused = placed(profile, rung).arguments
        further_other = (each for each in further if placed(profile, each).arguments != refused)
        return next(further_other, None)
    if isinstance(error, GpuTakenError):
        share = _share(placed(profile, rung))
        return next((each for each in further if _share(placed(profile, each)) < share), None)
    return next(iter(further), None)


def _share(profile: Profile) -> float:
    """The part of the GPU's memory that must be free for a start."""
    return utilization(profile) if needs_gpu(profile) else 0.0
