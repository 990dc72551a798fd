"""The short past of the figures that rules compare: kept in memory, minutes at most."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from a40console.advisor.evidence import Shift, Trends
from a40console.advisor.readings import is_fresh
from a40console.model.figures import Figure, Missing, combine, is_estimate, number, total
from a40console.model.snapshot import Gpu, Host
from a40console.telemetry.view import EngineView

SHORT_S = 10.0
"""What "now" is averaged over."""

LONG_S = 60.0
BEFORE_S = 300.0
"""How far back "before" reaches."""

STEP_S = 0.5
"""Samples before the newest are this far apart, however often snapshots are made."""

SETTLE_S = 15.0
"""What is younger belongs to neither side of a change."""

COVERED_RATIO = 0.8
"""Share of its window that a mean must cover."""

_NOT_READ = Missing("not read")

FEWEST_NOW, FEWEST_BEFORE = 3, 10
"""Fewer samples at this load are its beginning, not how it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one tick saw; what it estimated makes estimates of means and changes."""

    at_s: float
    running: Figure = _NOT_READ
    passes_per_s: Figure = _NOT_READ
    power_w: Figure = _NOT_READ
    sm_clock_mhz: Figure = _NOT_READ
    throttled_ms_per_s: Figure = _NOT_READ
    preemptions: Figure = _NOT_READ
    oom_kills: Figure = _NOT_READ


Field = Callable[[Sample], Figure]


def sample(
    at_s: float, view: EngineView | None, host: Host, gpus: Sequence[Gpu] | Missing, kills: Figure
) -> Sample:
    """The sample of a moment; what is too old is not known.

    Args:
        at_s: Monotonic time.
        view: The engine's; None while none answers.
        host: The machine's figures.
        gpus: Its GPUs.
        kills: Processes that the kernel ended for want of memory, since the container began.
    """
    cards = () if isinstance(gpus, Missing) else tuple(gpu for gpu in gpus if is_fresh(gpu.age_s))
    fresh_host = is_fresh(host.age_s)
    engine = view if view is not None and is_fresh(view.requests.age_s) else None
    return Sample(
        at_s=at_s,
        running=engine.requests.running if engine else _NOT_READ,
        passes_per_s=engine.throughput.passes_per_s if engine else _NOT_READ,
        power_w=total(gpu.power_w for gpu in cards),
        sm_clock_mhz=total(gpu.sm_clock_mhz for gpu in cards),
        throttled_ms_per_s=host.throttled_ms_per_s if fresh_host else _NOT_READ,
        preemptions=engine.requests.preemptions if engine else _NOT_READ,
        oom_kills=kills,
    )


def _works(taken: Sample) -> Figure:
    """1 where requests ran, so that the mean is the share of the time."""
    return combine(lambda running: float(running > 0), taken.running)


class TrendKeeper:
    """Keeps samples of one engine's life and answers what changed."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()
        self._life: object = None

    def observe(self, taken: Sample, *, life: object) -> None:
        """Take a sample; those of another engine's life are forgotten.

        Args:
            taken: The sample.
            life: Names the engine's life: its run, and whether its counters began again.
        """
        if life != self._life:
            self._life = life
            self._samples.clear()
        if len(self._samples) > 1 and self._samples[-1].at_s - self._samples[-2].at_s < STEP_S:
            self._samples.pop()
        self._samples.append(taken)
        while self._samples[0].at_s < taken.at_s - BEFORE_S:
            self._samples.popleft()

    def __len__(self) -> int:
        """How many samples are kept."""
        return len(self._samples)

    def trends(self) -> Trends:
        """What the samples say."""
        if not self._samples:
            return Trends()
        return Trends(
            short_s=SHORT_S,
            long_s=LONG_S,
            throttled_ms_per_s=self._mean(lambda s: s.throttled_ms_per_s),
            busy_ratio=self._mean(_works, LONG_S),
            preemptions=self._counted(lambda s: s.preemptions),
            oom_kills=self._counted(lambda s: s.oom_kills),
            passes_per_s=self._shift(lambda s: s.passes_per_s),
            power_w=self._shift(lambda s: s.power_w),
            sm_clock_mhz=self._shift(lambda s: s.sm_clock_mhz),
        )

    def _last(self, seconds: float) -> list[Sample]:
        edge_s = self._samples[-1].at_s - seconds
        return [taken for taken in self._samples if taken.at_s >= edge_s]

    def _known(self, field: Field, seconds: float) -> list[tuple[float, Figure]]:
        """Times and values of the last seconds, where the value is known."""
        return [
            (taken.at_s, value)
            for taken in self._last(seconds)
            if not isinstance(value := field(taken), Missing)
        ]

    def _mean(self, field: Field, seconds: float = SHORT_S) -> Figure:
        """The mean over the last seconds, once it was known for most of them."""
        known = self._known(field, seconds)
        if not known or known[-1][0] - known[0][0] < COVERED_RATIO * seconds:
            return Missing(f"not watched for {seconds:.0f} s yet")
        return combine(lambda *values: fmean(values), *(value for _, value in known))

    def _counted(self, field: Field) -> Figure:
        """How far a count moved within the last minute."""
        known = self._known(field, LONG_S)
        if len(known) < 2:
            return Missing("counted once so far" if known else "not counted")
        return combine(lambda first, last: max(0.0, last - first), known[0][1], known[-1][1])

    def _shift(self, field: Field) -> Shift | Missing:
        """The median of now beside the median of before, while as many requests ran."""
        end_s, load = self._samples[-1].at_s, number(self._samples[-1].running)
        if not load:
            return Missing("no request runs")
        now, before, estimated = list[float](), list[float](), False
        for taken in self._samples:
            value = number(field(taken))
            if value is None or number(taken.running) != load:
                continue
            if taken.at_s >= end_s - SHORT_S:
                now.append(value)
            elif taken.at_s < end_s - SETTLE_S:
                before.append(value)
            estimated = estimated or is_estimate(field(taken))
        if len(now) < FEWEST_NOW or len(before) < FEWEST_BEFORE:
            return Missing("nothing to compare with: not run at this load before")
        return Shift(median(now), median(before), estimated)
