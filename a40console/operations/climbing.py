"""Starts a profile by its ladder: as it is written, then with each placement, until one serves."""

from __future__ import annotations

from dataclasses import replace

from a40console.errors import ConsoleError
from a40console.model.engine import EngineState
from a40console.operations.ending import kind_of_failure
from a40console.operations.ladder import rung_in_words, rungs
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.roles import Recorder
from a40console.operations.steps import StartInterruptedError


class Climber:
    """Brings an engine up on the first rung that holds."""

    def __init__(self, life: EngineLife, recorder: Recorder) -> None:
        self._life = life
        self._record = recorder

    async def climb(self, wanted: Wanted) -> None:
        """Start it, from the wanted rung on.

        Raises:
            StartInterruptedError: If a stop came.
            ConsoleError: If none of them serves: the last one's failure.
        """
        last = rungs(wanted.profile) - 1
        for rung in range(min(wanted.rung, last), last + 1):
            try:
                await self._life.bring_up(replace(wanted, rung=rung))
            except StartInterruptedError:
                raise
            except ConsoleError as error:
                if last:
                    self._tell(wanted, rung, error)
                if rung == last or self._life.status.state is EngineState.ORPHANED:
                    raise
            else:
                return

    def _tell(self, wanted: Wanted, rung: int, error: ConsoleError) -> None:
        profile, kind = wanted.profile, kind_of_failure(error)
        words = rung_in_words(profile, rung)
        told = {"rejected": "was rejected", "out_of_memory": "ran out of memory"}
        self._record(
            "engine.placement_failed",
            f"{profile.name} {words} {told.get(kind, 'failed')}: {error.message}",
            "warn",
            {
                "rung": f"{rung} of {len(profile.placements)}",
                "kind": kind,
                "evidence": error.evidence,
                "remedy": error.remedy,
            },
        )
