"""What the advisor is told besides the snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from a40console.advisor.evidence import Evidence, LoggedSpeed, StalledStart, Stalls, Survivor
from a40console.advisor.hang import HUNG_AFTER_S
from a40console.advisor.limit import explain
from a40console.engines.logs import last_lines
from a40console.engines.run_record import OUTPUT_FILE
from a40console.engines.silence import silent_words
from a40console.errors import NoServiceError
from a40console.model.engine import EngineState
from a40console.model.explanation import Explanation
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot
from a40console.operations.status import EngineStatus
from a40console.service.assemble import gpus_of
from a40console.service.edit_watch import EditWatch
from a40console.service.fixing import EndWords, stall_fix
from a40console.service.parser_check import ParserCheck
from a40console.service.sessions import SessionsBlock
from a40console.service.trends import TrendKeeper, sample
from a40console.service.view_evidence import view_evidence
from a40console.telemetry.host import HostSampler
from a40console.telemetry.log_speed import LogSpeed
from a40console.telemetry.nvml import GpuSampler
from a40console.telemetry.pressure import Pressure
from a40console.telemetry.view import EngineView

SILENCE_LINES = 200
"""Of the output, where the words of a wait in vain are looked for."""

_QUIET = Missing("no engine answers")
_UNANSWERED = Evidence(
    generation_flat_s=_QUIET, steps_flat_s=_QUIET, health_status=_QUIET, counters_reset_s=_QUIET
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSigns:
    """What the service knows of itself: who supervises it, and why what cannot be written."""

    unsupervised: bool = False
    events: str | None = None
    history: str | None = None
    sessions: str | None = None

    @property
    def trouble(self) -> str:
        """What is not written and why; empty where all is."""
        named = (("events", self.events), ("history", self.history), ("sessions", self.sessions))
        return "; ".join(f"{name}: {why}" for name, why in named if why is not None)


def evidence(
    status: EngineStatus, view: EngineView | None, service: ServiceSigns | None = None
) -> Evidence:
    """The signals of this instant that no block of the snapshot holds."""
    stall, service = status.stall, service or ServiceSigns()
    starting = status.state in (EngineState.FETCHING, EngineState.STARTING)
    return replace(
        _UNANSWERED if view is None else view_evidence(view),
        stall=StalledStart(
            for_s=stall.for_s,
            cause=stall.cause,
            evidence=stall.evidence,
            remedy=stall.remedy,
            fix=stall_fix(status),
        )
        if stall and starting
        else None,
        survivors=tuple(Survivor(p.pid, p.name) for p in status.survivors),
        unkillable=status.left == "unkillable",
        keeper_gone=status.keeper_gone,
        unsupervised=service.unsupervised,
        state_trouble=service.trouble,
        end_evidence="; ".join(filter(None, (status.end_evidence, status.stays_down))),
        end_remedy=status.remedy,
    )


class EvidenceKeeper:
    """Adds the short past to the evidence, and explains snapshots by the same evidence.

    Args:
        host: The machine's figures.
        gpu: Its GPUs.
        runs: Where the engines' starts lie, each with its output.
        clock: Monotonic clock.
    """

    def __init__(
        self,
        *,
        host: HostSampler,
        gpu: GpuSampler,
        runs: Path,
        edits: EditWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._gpu = gpu
        self._runs = runs
        self._edits = edits
        self._clock = clock
        self._trends = TrendKeeper()
        self._log_speed = LogSpeed()
        self._parsers = ParserCheck()
        self._end = EndWords(runs)
        self._lives = 0
        self._reset_s: float | None = None
        self._last = Evidence()

    def take(
        self,
        status: EngineStatus,
        view: EngineView | None,
        *,
        service: ServiceSigns | None = None,
        sessions: SessionsBlock | None = None,
    ) -> Evidence:
        """Observe this instant; the evidence for its snapshot."""
        now_s, pressure = self._clock(), self._host.pressure()
        gpus = gpus_of(view, self._gpu.view())
        taken = sample(now_s, view, self._host.view(), gpus, pressure.oom_kills)
        self._trends.observe(taken, life=(status.run.id if status.run else None, self._life(view)))
        generated = number(view.generated_tokens) if view else None
        run = status.run if view is not None else None
        path = run.folder(self._runs) / OUTPUT_FILE if run is not None else None
        self._log_speed.observe(path, generated, now_s)
        remedy, fix = self._end.told(status)
        self._last = replace(
            evidence(status, view, service),
            end_remedy=remedy,
            end_fix=fix,
            silent_words=self._silent_words(status, view),
            unfit_parsers=self._parsers.look(status.run if status.living else None),
            profile_edit=self._edits.look(status) if self._edits else None,
            trends=self._trends.trends(),
            stalls=_stalls(pressure),
            asked_max_running=_asked_max_running(status),
            logged=self._logged(now_s),
            hidden_processes=self._gpu.hidden_processes,
            sessions=sessions.signs if sessions else (),
            counts=sessions.counts if sessions else None,
            uncounted=sessions is not None and sessions.uncounted,
        )
        return self._last

    def explain(self, snapshot: Snapshot | None) -> Explanation:
        """Why the newest snapshot's speed is what it is.

        Raises:
            NoServiceError: Before there is a snapshot.
        """
        if snapshot is None:
            raise NoServiceError("The service has made no snapshot yet", remedy="Try again.")
        return explain(snapshot, self._last)

    def _silent_words(self, status: EngineStatus, view: EngineView | None) -> str:
        """What the log says of a wait in vain; it is read only while no token comes."""
        flat_s = number(self._last.generation_flat_s) if view is not None else None
        if flat_s is None or flat_s < HUNG_AFTER_S or status.run is None:
            return ""
        output = status.run.folder(self._runs) / OUTPUT_FILE
        return silent_words(last_lines(output, SILENCE_LINES))

    def _life(self, view: EngineView | None) -> int:
        """Counts how often the counters were seen to begin again."""
        reset_s = number(view.counters_reset_s) if view else None
        if reset_s is not None and (self._reset_s is None or reset_s < self._reset_s):
            self._lives += 1
        self._reset_s = reset_s
        return self._lives

    def _logged(self, now_s: float) -> LoggedSpeed | None:
        found = self._log_speed.disagreement(now_s)
        if found is None:
            return None
        return LoggedSpeed(
            logged_tokens_per_s=found.logged_tokens_per_s,
            counted_tokens_per_s=found.counted_tokens_per_s,
            over_s=found.over_s,
            speakers=found.speakers,
        )


def _asked_max_running(status: EngineStatus) -> Figure:
    asked = status.profile.max_running if status.profile else None
    return Missing("the profile does not say") if asked is None else asked


def _stalls(pressure: Pressure) -> Stalls:
    return Stalls(
        origin=pressure.origin,
        io_some_ratio=pressure.io_some_ratio,
        io_full_ratio=pressure.io_full_ratio,
        memory_full_ratio=pressure.memory_full_ratio,
    )
