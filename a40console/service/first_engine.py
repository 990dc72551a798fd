"""Which engine a service begins with: the one that runs, the one asked for, or the last one."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from a40console.errors import ConsoleError, UsageError
from a40console.operations import desire
from a40console.operations.operator import EngineOperator
from a40console.operations.past_starts import PastStarts
from a40console.operations.roles import Recorder
from a40console.paths import Paths
from a40console.service.engineering import note_kept

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEngine:
    """Takes over what runs; else starts what is asked for, or what ran when we were last here."""

    operator: EngineOperator
    starts: PastStarts
    paths: Paths
    record: Recorder
    configured: str | None
    """The profile that the settings name."""

    again: bool
    """The service failed before: the operator may have stopped the engine since."""

    async def see_to(self, profile: str | None, *, start: bool) -> None:
        """Do it; what goes wrong is told and ends nothing."""
        try:
            await self._take_or_start(profile, start=start)
        except UsageError as error:
            self.operator.note_failure(error)
        except ConsoleError as error:
            log.warning("%s (%s) %s", error.message, error.evidence, error.remedy)
        except Exception:
            log.exception("the first engine could not be seen to")
            self.record("service.failed", "a bug of ours: see service.log", "error")

    async def _take_or_start(self, profile: str | None, *, start: bool) -> None:
        try:
            adopted = await self.operator.adopt()
        finally:
            self.starts.find_ends(self.paths.engine_runs)
        if adopted:
            note_kept(self.record, profile, self.operator.status.profile)
            return
        if not start:
            return
        wanted = desire.desired(self.paths.desired)
        named = profile or (self.configured if wanted is None else None)
        if named is not None and not self.again:
            await self.operator.start(named)
        elif wanted is not None:
            await self.operator.start_profile(wanted)
