"""One run's workplace: client, engine, records, and what was true around every arm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from a40console.experiments.arm_totals import client_totals, deltas, doubts_of_arm
from a40console.experiments.bench import ArmFailedError, Client, Engine
from a40console.experiments.load_health import LoadHealth
from a40console.model.experiment import Value
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.run import RunProgress, RunTarget
from a40console.model.run_record import ArmEnd, Doubted, Progressed, Record, Sample
from a40console.model.run_result import Doubt
from a40console.service.run_counters import RunCounters, none_running
from a40console.service.run_machine import MachineWatch
from a40console.service.run_stop import SECONDS_PER_HOUR, RunStop

NO_STEP_YET = Missing("no step is done yet")
TOLD_EVERY_S = 0.4
"""Between two lines of progress within an arm, so that short steps do not fill the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is looked at around every arm."""

    counters: Callable[[], RunCounters]
    """Of the engine as it is reached now."""

    machine: MachineWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is measured."""

    target: RunTarget
    model: str
    """The name that requests ask for."""

    settled: Mapping[str, Value]
    seed: int
    usd_per_h: Figure
    simulated: bool = False


class RunBench:
    """What an experiment works with.

    Args:
        client: Sends requests; its samples come in by `record`.
        engine: Steers the engine.
        around: Counters and machine.
        append: Writes a record down.
        stop: Whether the run is to end.
        job: What is measured.
    """

    def __init__(
        self,
        *,
        client: Client,
        engine: Engine,
        around: Around,
        append: Callable[[Record], None],
        stop: RunStop,
        job: Job,
    ) -> None:
        self.client = client
        self.engine = engine
        self.target = job.target
        self.settled = job.settled
        self.model = job.model
        self.simulated = job.simulated
        self.seed = job.seed
        self.usd_per_h = job.usd_per_h
        self.doubts: list[Doubt] = []
        self._around = around
        self._append = append
        self._stop = stop
        self._samples: list[Sample] = []
        self._arm_ends: list[ArmEnd] = []
        self._told: tuple[str, float] = ("", -TOLD_EVERY_S)
        self._first: tuple[int, float] | None = None

    def now_s(self) -> float:
        """Seconds since the run began, monotonic."""
        return self._stop.now_s()

    def record(self, record: Record) -> None:
        """Append to the run's file."""
        match record:
            case Sample():
                self._samples.append(record)
            case ArmEnd():
                self._arm_ends.append(record)
        self._append(record)

    def doubt(self, doubt: Doubt) -> None:
        """Record a doubt and keep it for the result."""
        if doubt not in self.doubts:
            self.doubts.append(doubt)
            self._append(Doubted(doubt=doubt))

    async def step(self, arm: str, done: int, total: int, text: str) -> None:
        """Tell progress; raises RunStoppedError where the run is to end."""
        self._stop.check()
        now_s = self.now_s()
        last_arm, last_s = self._told
        if arm == last_arm and now_s - last_s < TOLD_EVERY_S and done < total:
            return
        self._told = (arm, now_s)
        progress = RunProgress(
            arm=arm,
            done=done,
            total=total,
            text=text,
            elapsed_s=round(now_s, 3),
            eta_s=self._eta_s(done, total, now_s),
            usd=self.usd(now_s),
        )
        self._append(Progressed(progress=progress))

    def _eta_s(self, done: int, total: int, now_s: float) -> Figure:
        """By the steps done since progress was first told: what came before them is no step."""
        first_done, first_s = self._first = self._first or (done, now_s)
        steps = done - first_done
        if steps <= 0:
            return NO_STEP_YET
        return Estimated(round((total - done) * (now_s - first_s) / steps, 1))

    @asynccontextmanager
    async def arm(self, name: str, repeat: int) -> AsyncIterator[None]:
        """Around one repeat of an arm; one that is broken off leaves no `ArmEnd`."""
        self._stop.check()
        async with self._around.counters() as counters:
            before = await self._stop.bounded(counters.settled())
            first = len(self._samples)
            async with LoadHealth() as health:  # of the load alone: what waits before it is idle
                self._around.machine.mark()
                began_s = self.now_s()
                yield
                wall_s = self.now_s() - began_s
                machine, load = self._around.machine.figures(), health.figures()
            after = await self._stop.bounded(counters.settled())
        samples = self._samples[first:]
        _refuse_dead(name, samples, before, after)
        if doubt := _of_another_engine(name, self.target, before, after):
            self.doubt(doubt)
        end = ArmEnd(
            arm=name,
            repeat=repeat,
            wall_s=round(wall_s, 6),
            usd=self.usd(wall_s),
            server=deltas(before, after),
            client=client_totals(samples) | load,
            machine=machine,
        )
        self.record(end)
        for doubt in doubts_of_arm(
            name, wall_s=wall_s, client=end.client, server=end.server, machine=machine
        ):
            self.doubt(doubt)

    def samples(self, arm: str, repeat: int | None = None) -> Sequence[Sample]:
        """What was recorded of an arm."""
        return [
            sample
            for sample in self._samples
            if sample.arm == arm and (repeat is None or sample.repeat == repeat)
        ]

    def arm_ends(self, arm: str) -> Sequence[ArmEnd]:
        """What was recorded around the repeats of an arm that have ended."""
        return [end for end in self._arm_ends if end.arm == arm]

    def usd(self, seconds: float) -> Figure:
        """What so many seconds of the engine cost."""
        rate = number(self.usd_per_h)
        if rate is None:
            return self.usd_per_h
        return round(rate * seconds / SECONDS_PER_HOUR, 9)

    @property
    def has_measured(self) -> bool:
        """Whether anything that stands was measured: an arm, or a request outside of any."""
        answered = any(not sample.error and not sample.warm_up for sample in self._samples)
        return bool(self._arm_ends) or answered


def _refuse_dead(
    arm: str, samples: Sequence[Sample], before: Mapping[str, Figure], after: Mapping[str, Figure]
) -> None:
    """See that the engine lives that the arm began with.

    Raises:
        ArmFailedError: If its last request failed and its counters cannot be read any more.
    """
    failed = bool(samples) and bool(samples[-1].error)
    if failed and none_running(after) and not none_running(before):
        raise ArmFailedError(
            f"the engine ended or hangs in arm {arm}: its last request says {samples[-1].error}"
        )


def _of_another_engine(
    arm: str, target: RunTarget, before: Mapping[str, Figure], after: Mapping[str, Figure]
) -> Doubt | None:
    """What speaks for it that the engine which the arm began with is not the one it ended with.

    The gateway holds requests while an engine starts, so that none of them need fail.
    """
    both = [(number(before[name]), number(now)) for name, now in after.items() if name in before]
    if any(was is not None and now is not None and now < was for was, now in both):
        text = "the engine began anew in the midst of the arm: its counters fell"
        return Doubt(code="engine-restarted", text=text, invalidates=True, arm=arm)
    if none_running(after) and not none_running(before):
        text = "the engine that the arm began with cannot be read any more"
        ours = target.kind != "url"  # each of its starts has an address of its own
        return Doubt(code="engine-restarted", text=text, invalidates=ours, arm=arm)
    return None
