"""Every engine start that is still known: phases, readiness and end, whoever watched.

It follows the engine's status as it changes; what it learns is on the disk before the next change,
so that a service that is killed meanwhile loses nothing of it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from a40console.engines.process import EngineProcess, ProcessState
from a40console.engines.run_record import UNSEEN_EXIT
from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.control import NOT_RECORDED, EngineStart, StartPhase
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.figures import Figure, Missing, Text
from a40console.model.instants import iso_utc, unix_s
from a40console.model.secrets import covered
from a40console.operations.ending import end_of
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus

KEPT_STARTS = 100
ETA_STARTS = 5
"""Starts of a profile that an ETA is worked out from."""

RUNS, NEVER_SERVED = Missing("it runs"), Missing("it never served")
UNSEEN_END = Missing("nobody saw when it ended")
UNSEEN_READY = Missing("nobody watched it come to serve")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """One start as it is kept; times are Unix seconds."""

    id: str
    profile: str
    kind: str
    model: str
    argv_digest: str
    argv: tuple[str, ...] = ()
    started_s: float
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase that is over."""

    phase: str | None = None
    """The one under way."""

    phase_since_s: float = 0.0
    ready_after_s: float | None = None
    served: bool = False
    ended_s: float | None = None
    end: EngineEnd | None = None


class PastStarts:
    """The last hundred starts, in one small file.

    Args:
        file: Where they are kept.
        wall: Unix time.
        clock: The monotonic clock of the statuses.
    """

    def __init__(
        self,
        file: Path,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._wall = wall
        self._clock = clock
        self._starts = _read(file)
        self._fetching_s: float | None = None
        self._watched = ""
        """The start that this service saw before it served."""

        self._begun_here: set[str] = set()

    def of(self, profile: str) -> Sequence[Mapping[str, float]]:
        """Seconds by phase of the last starts that came to serve, oldest first."""
        served = (start for start in self._starts.values() if start.ready_after_s is not None)
        return [start.phases for start in served if start.profile == profile][-ETA_STARTS:]

    def list(self, limit: int) -> tuple[EngineStart, ...]:
        """The newest starts, newest first."""
        newest = list(reversed(self._starts.values()))
        return tuple(self._shown(start) for start in newest[:limit])

    def follow(self, status: EngineStatus) -> None:
        """Take a change of the engine's status."""
        if status.run is None:
            fetching = status.state is EngineState.FETCHING
            self._fetching_s = (self._fetching_s or self._wall()) if fetching else None
            return
        before = self._starts.get(status.run.id)
        after = self._moved(before or self._begun(status.run), status)
        if status.state is EngineState.STARTING:
            self._watched = status.run.id
        if after != before:
            self._keep(after)

    def measured(self, run_id: str, durations_s: Mapping[str, float]) -> None:
        """Put in the phases as the engine's output tells them, which are exact.

        Those of a start that an earlier service began are not: that output was read at once.
        """
        start = self._starts.get(run_id)
        if start is None or run_id not in self._begun_here:
            return
        fetched = {"download": start.phases["download"]} if "download" in start.phases else {}
        spent = {name: round(seconds, 2) for name, seconds in durations_s.items()}
        self._keep(replace(start, phases={**fetched, **spent}, phase=None))

    def find_ends(self, runs: Path) -> None:
        """Look up how starts ended that nobody saw end.

        Args:
            runs: The folder of the run folders.
        """
        for start in [start for start in self._starts.values() if start.end is None]:
            process = EngineProcess.recorded(runs / start.id)
            if process is None or process.state() is ProcessState.ENDED:
                exit_ = (process.exit() if process else None) or UNSEEN_EXIT
                ended = self._ended(start, end_of(exit_, exit_.cause))
                self._keep(ended if exit_.ended_at else replace(ended, ended_s=None))

    def _begun(self, run: RunRecord) -> _Start:
        phases: dict[str, float] = {}
        if self._fetching_s is not None:
            phases["download"] = round(max(0.0, self._wall() - self._fetching_s), 2)
        self._fetching_s = None
        if run.id != self._watched:
            self._begun_here = {run.id}
        return _Start(
            id=run.id,
            profile=run.profile.name,
            kind=run.profile.kind,
            model=run.profile.model,
            argv_digest=run.argv_digest,
            argv=covered(run.argv),
            started_s=unix_s(run.started_at) or self._wall(),
            phases=phases,
        )

    def _moved(self, start: _Start, status: EngineStatus) -> _Start:
        if start.end is not None:
            return start
        if status.state is EngineState.STARTING:
            return self._in_phase(start, status.phase)
        start = self._in_phase(start, None)
        if status.state is EngineState.SERVING and not start.served:
            return replace(start, served=True, ready_after_s=self._ready_after_s(status))
        over = status.state in (EngineState.FAILED, EngineState.STOPPED, EngineState.ORPHANED)
        return self._ended(start, status.end) if over and status.end is not None else start

    def _in_phase(self, start: _Start, phase: str | None) -> _Start:
        """The start with another phase under way; the one before has taken until now."""
        if phase == start.phase:
            return start
        phases, now_s = dict(start.phases), self._wall()
        if start.phase is not None:
            spent_s = max(0.0, now_s - start.phase_since_s)
            phases[start.phase] = round(phases.get(start.phase, 0.0) + spent_s, 2)
        return replace(start, phases=phases, phase=phase, phase_since_s=now_s)

    def _ready_after_s(self, status: EngineStatus) -> float | None:
        """Seconds from the process's start; None for one that served before it was found."""
        run, began_s = status.run, status.started_at_s
        if run is None or began_s is None or run.id != self._watched:
            return None
        return round(max(0.0, self._clock() - began_s), 2)

    def _ended(self, start: _Start, end: EngineEnd) -> _Start:
        at_s = unix_s(end.at) or self._wall()
        return replace(start, ended_s=max(at_s, start.started_s), end=end)

    def _keep(self, start: _Start) -> None:
        """Remember it, and write all down; a full disk costs the permanence only."""
        self._starts[start.id] = start
        for surplus in list(self._starts)[:-KEPT_STARTS]:
            del self._starts[surplus]
        try:
            write_private(self._file, json.dumps([encode(one) for one in self._starts.values()]))
        except OSError as error:
            log.warning("the start could not be noted: %s", error)

    def _shown(self, start: _Start) -> EngineStart:
        ready: Figure = NEVER_SERVED
        if start.served:
            ready = UNSEEN_READY if start.ready_after_s is None else start.ready_after_s
        elif start.end is None:
            ready = Missing("it does not serve yet")
        return EngineStart(
            id=start.id,
            profile=start.profile,
            kind=start.kind,
            model=start.model,
            argv_digest=start.argv_digest,
            started_at=iso_utc(start.started_s),
            phases=self._phases(start),
            ready_after_s=ready,
            ended_at=_ended_at(start),
            end=start.end or RUNS,
            served_s=self._served_s(start, ready),
            argv=start.argv or NOT_RECORDED,
            simulated=start.kind == "sim",
        )

    def _phases(self, start: _Start) -> tuple[StartPhase, ...] | Missing:
        spent = dict(start.phases)
        if start.phase is not None and start.end is None:
            so_far_s = max(0.0, self._wall() - start.phase_since_s)
            spent[start.phase] = round(spent.get(start.phase, 0.0) + so_far_s, 2)
        if not spent:
            return Missing("its phases were not watched")
        return tuple(
            StartPhase(name=name, seconds=round(seconds, 2)) for name, seconds in spent.items()
        )

    def _served_s(self, start: _Start, ready: Figure) -> Figure:
        if isinstance(ready, Missing):
            return ready
        if start.end is not None and start.ended_s is None:
            return UNSEEN_END
        until_s = self._wall() if start.ended_s is None else start.ended_s
        return round(max(0.0, until_s - start.started_s - (start.ready_after_s or 0.0)), 1)


def _ended_at(start: _Start) -> Text:
    if start.end is None:
        return RUNS
    return UNSEEN_END if start.ended_s is None else iso_utc(start.ended_s)


def _read(file: Path) -> dict[str, _Start]:
    try:
        starts = [decode(_Start, item) for item in read_json(file)]
    except (OSError, ValueError, TypeError, DecodeError):
        return {}
    return {start.id: start for start in starts}
