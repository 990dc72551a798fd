"""Whether a profile's model will find room in memory, judged before anything stops for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

from a40console.engines.fit_result import Fit
from a40console.errors import RefusedError
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.model.snapshot import Gpu
from a40console.operations.fitting import fit_here, smallest_gpu_bytes
from a40console.operations.ladder import placed, rungs
from a40console.operations.preflight import Finding, Outcome
from a40console.paths import Paths

TOLERANCE = 0.1
"""A prediction that misses by less is tried: a start that fails is rolled back."""


class Room:
    """Compares what a start would take with what this machine has.

    Args:
        paths: Where models and earlier starts lie.
        read_gpus: The cards.
        read_host_bytes: What the container may use of the host's memory.
    """

    def __init__(
        self,
        paths: Paths,
        read_gpus: Callable[[], tuple[Gpu, ...] | Missing],
        read_host_bytes: Callable[[], int | Missing],
    ) -> None:
        self._paths = paths
        self._read_gpus = read_gpus
        self._read_host_bytes = read_host_bytes

    async def demand(self, profile: Profile) -> Finding:
        """See that one rung of the profile's ladder at least may fit.

        Raises:
            RefusedError: If none can.
        """
        gpus, host_bytes = self._read_gpus(), self._read_host_bytes()
        cards = 1 if isinstance(gpus, Missing) else max(1, len(gpus))

        def judged() -> list[Fit]:
            return [
                fit_here(
                    placed(profile, rung),
                    self._paths,
                    os.environ,
                    vram_bytes=smallest_gpu_bytes(gpus),
                    devices=cards,
                    host_bytes=host_bytes,
                )
                for rung in range(rungs(profile))
            ]

        fits = await asyncio.to_thread(judged)
        if all(map(hopeless, fits)):
            raise RefusedError(
                f"{profile.name} does not fit into the memory here",
                evidence=fits[-1].reason,
                remedy=_remedy(fits),
            )
        first = fits[0]
        outcome: Outcome = "skipped" if first.verdict == "unknown" else "passed"
        return Finding("memory", outcome, f"{first.verdict}, {first.judged_by}: {first.reason}")


def hopeless(fit: Fit) -> bool:
    """Whether it is too large by more than a prediction may be wrong."""
    needed, room = number(fit.needed_bytes), number(fit.room_bytes)
    if fit.verdict != "too_large" or needed is None or room is None:
        return False
    return room < needed * (1 - TOLERANCE)


def _remedy(fits: Sequence[Fit]) -> str:
    """The setting that would make it fit, where one alone does."""
    for fit in fits:
        for remedy in fit.remedies:
            return f"By these figures it would with {remedy.setting} = {remedy.after}."
    return "See what it would take: a40console profiles fit"
