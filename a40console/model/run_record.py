"""The lines that a run's process appends to its own file; every one stands by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from a40console.model.figures import Figure, Missing
from a40console.model.run import RunEnvironment, RunPlan, RunProgress, RunState
from a40console.model.run_result import Doubt, RunResult

NO_USAGE = Missing("no usage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The first line."""

    at: str
    environment: RunEnvironment
    plan: RunPlan
    settled: dict[str, str]
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request, timed at the socket."""

    arm: str
    repeat: int
    index: int
    """Of the request within the arm's repeat: the turn, the stream."""

    warm_up: bool
    """Whether it is left out of every figure."""

    due_s: float
    """When it was to be sent, in seconds since the run began; an open loop's schedule."""

    sent_s: float
    ttft_s: Figure
    """From `due_s` to the first byte of content."""

    total_s: Figure
    """From `due_s` to the last byte of content."""

    gaps_s: tuple[float, ...] = ()
    """Between arrivals of content; with speculation one gap covers a pass."""

    prompt_tokens: Figure = NO_USAGE
    cached_tokens: Figure = NO_USAGE
    generated_tokens: Figure = NO_USAGE
    error: str = ""
    """What went wrong; its latencies are then in no percentile."""

    role: str = "turn"
    """`turn`, `summary`, `recall`, `stream`, `probe`."""

    kind: Literal["sample"] = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEnd:
    """What was true around one repeat of an arm."""

    arm: str
    repeat: int
    wall_s: float
    usd: Figure
    server: dict[str, Figure] = field(default_factory=dict)
    """Deltas of the engine's counters, missing with the reason: `prompt_tokens`, `cached_tokens`,
    `generated_tokens`, `requests`, `passes`, `drafts`, `drafted_tokens`, `accepted_tokens`,
    `preemptions`; and `accepted_tokens_at_1`, `_2`, ... by position of the draft, where told."""

    client: dict[str, Figure] = field(default_factory=dict)
    """The same as the client counted, with `loop_lag_p99_s`, `loop_lag_mean_s`, `cpu_cores`."""

    machine: dict[str, Figure] = field(default_factory=dict)
    """`vcpu_throttled_s`, `gpu_throttled_s`, `gpu_clock_mhz`."""

    kind: Literal["arm"] = "arm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """How far it is."""

    progress: RunProgress
    kind: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubted:
    """A doubt as soon as it is known."""

    doubt: Doubt
    kind: Literal["doubt"] = "doubt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result; the last one in the file stands."""

    result: RunResult
    kind: Literal["result"] = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last line; without it the process was killed."""

    at: str
    state: RunState
    reason: str = ""
    kind: Literal["ended"] = "ended"


Record: TypeAlias = Started | Sample | ArmEnd | Progressed | Doubted | Found | Ended
