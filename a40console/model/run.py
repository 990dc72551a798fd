"""A controlled experiment as it is asked for, planned, kept and told."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from a40console.model.figures import NOT_TOLD, Figure, Missing, Text
from a40console.model.run_result import Interval, RunResult

NO_GPU = Missing("no GPU")
NO_PRICE = Missing("no price")
NOT_STARTED = Missing("it has not started")
NOT_ENDED = Missing("it has not ended")
NOT_PLANNED = Missing("not planned")
THIS_MACHINE = Missing("this machine")

RunState: TypeAlias = Literal["queued", "running", "done", "partial", "failed", "invalid"]
"""`partial`: it was cancelled or met a limit, and what was measured till then stands. `failed`: it
measured nothing usable. `invalid`: it measured, and the reason says why nothing of it stands."""

ENDED: frozenset[RunState] = frozenset({"done", "partial", "failed", "invalid"})

Intrusion: TypeAlias = Literal["nothing", "shares", "evicts", "restarts"]
"""What a run does to clients of the engine: it shares the engine with them, throws their cached
prefixes out, or starts the engine anew."""

TargetKind: TypeAlias = Literal["engine", "gateway", "url"]
Dialect: TypeAlias = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """Where the requests of a run go."""

    kind: TargetKind = "engine"
    url: str = ""
    """Of a `url` target; empty for our own."""

    model: str = ""
    """What requests ask for; empty: what the target serves."""

    dialect: Dialect = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What the operator asks for."""

    experiment: str
    preset: str = "standard"
    parameters: dict[str, str] = field(default_factory=dict)
    """What differs from the preset, as it was written; `model.experiment` reads it."""

    target: RunTarget = RunTarget()
    seed: int = 1
    max_usd: Decimal | None = None
    max_minutes: float | None = None
    when: Literal["now", "idle"] = "now"
    """`idle`: it waits until no client of the engine is active."""

    accept_intrusion: bool = False
    """Whether clients that it disturbs were accepted."""

    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run would take and do, told before it starts."""

    arms: tuple[str, ...]
    requests: int
    seconds: Figure
    """≈, from the rates that the engine had last; missing where none is known."""

    usd: Figure
    intrusion: Intrusion
    consequences: tuple[str, ...]
    """Sentences for the operator: which sessions are disturbed, what is restarted."""

    refusal: str = ""
    """Why it cannot start as asked; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """Everything that a comparison must know of where a run was made."""

    console: str
    """Our version."""

    simulated: bool
    engine_kind: str
    engine_version: Text
    model: Text
    model_digest: Text
    config_digest: Text
    """SHA-256 of what reaches the engine, flags and variables, and of what it says is in force."""

    profile: Text
    argv: tuple[str, ...] = ()
    """As asked, secrets covered."""

    effective: dict[str, str] = field(default_factory=dict)
    """As the engine says that it runs: `speculation`, `prefix_caching`, `max_model_len`, ..."""

    gpu: Text = NO_GPU
    gpu_count: int = 0
    driver: Text = NO_GPU
    vcpu_quota: Figure = NOT_TOLD
    usd_per_h: Figure = NO_PRICE
    host: Text = NOT_TOLD
    """A name for the machine that is the same for all runs on it: a digest, no host name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is."""

    arm: str
    done: int
    total: int
    """Of the whole run, in the unit of `text`."""

    text: str
    """`turn 34 of 120`."""

    elapsed_s: float
    eta_s: Figure
    usd: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A line that the operator wrote about a run."""

    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run as the ledger and the service tell it."""

    id: str
    """`20261130-174501-compaction-1f3a`: sorts by start."""

    spec: RunSpec
    state: RunState
    asked_at: str
    """ISO 8601, UTC."""

    started_at: Text = NOT_STARTED
    ended_at: Text = NOT_ENDED
    reason: str = ""
    """Why it ended as it did, where it is not `done`; what it waits for, where it is `queued`."""

    settled: dict[str, str] = field(default_factory=dict)
    """Every parameter in force, preset and defaults included."""

    environment: RunEnvironment | Missing = NOT_STARTED
    plan: RunPlan | Missing = NOT_PLANNED
    progress: RunProgress | Missing = NOT_STARTED
    result: RunResult | Missing = NOT_ENDED
    notes: tuple[Note, ...] = ()
    reference: bool = False
    """Whether it was written down by others elsewhere and imported: never measured by us."""

    origin: Text = THIS_MACHINE
    """The machine that it was pulled from."""

    copied_to: tuple[str, ...] = ()
    """The machines that have it, by name."""


HypothesisState: TypeAlias = Literal["open", "confirmed", "refuted", "retracted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisStep:
    """What was said of a claim once."""

    state: HypothesisState
    at: str
    runs: tuple[str, ...] = ()
    """Runs that did it."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A claim, and the runs that spoke on it."""

    id: int
    text: str
    state: HypothesisState
    at: str
    """When it came to be in this state."""

    runs: tuple[str, ...] = ()
    """Runs that did it."""

    why: str = ""
    steps: tuple[HypothesisStep, ...] = ()
    """Everything that was said of it, oldest first: the last is what it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting that two runs do not share."""

    name: str
    left: str
    right: str
    weight: Literal["variable", "environment", "note"] = "variable"
    """`variable`: an effect could be its; `note`: it cannot (time, seed of ids)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRatio:
    """One figure of an arm that both runs have, right over left."""

    arm: str
    figure: str
    left: Figure
    right: Figure
    ratio: Interval | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side."""

    left: str
    right: str
    differences: tuple[Difference, ...]
    ratios: tuple[ArmRatio, ...]
    verdict: str
    """What may be said: one variable's effect, or a refusal that names the several."""

    attributable: bool
    """Whether exactly one variable differs, and both may be believed."""
