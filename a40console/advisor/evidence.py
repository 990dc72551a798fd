"""What the rules need besides the snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from a40console.model.figures import Figure, Missing
from a40console.model.session import CountDisagreement, SessionSigns

_NOT_FOLLOWED = Missing("not followed")
NOT_ASKED = Missing("not asked")
_NO_RESET = Missing("never seen")
_TOO_SHORT = Missing("not watched for long enough")


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that an engine left behind, proven to be of it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledStart:
    """A start that no longer gets on: since when, at what, and what may help."""

    for_s: float
    cause: str
    evidence: str
    """The last sign of progress, in the engine's words."""

    remedy: str
    fix: str = ""
    """The change of the profile that mends it, in one line; empty where none is certain."""


@dataclass(frozen=True, slots=True)
class UnfitParser:
    """A parser of the engine that does not read what its model's chat template makes it write."""

    cause: str
    evidence: str
    remedy: str
    fix: str = ""
    """The change of the profile that mends it, in one line; empty where none is certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEdit:
    """The running profile's file says something else than what runs."""

    profile: str
    changes: tuple[str, ...] = ()
    """Each in one line."""

    restarts: int = 0
    """How many of them take a restart."""

    fault: str = ""
    """Why the file cannot be read; empty where it can."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A figure now, beside what it was before at the same number of running requests."""

    now: float
    before: float
    estimated: bool = False
    """Whether either side holds an estimate."""

    @property
    def lost_ratio(self) -> float:
        """The share that it lost; negative where it rose."""
        return 1 - self.now / self.before if self.before > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    """The short past: means, changes and counts that one snapshot cannot hold."""

    short_s: float = 10.0
    """Window of means and of `now` in every shift."""

    long_s: float = 60.0
    """Window of counts and of `busy_ratio`."""

    throttled_ms_per_s: Figure = _TOO_SHORT
    busy_ratio: Figure = _TOO_SHORT
    """Share of the window in which the engine had a request."""

    preemptions: Figure = _TOO_SHORT
    oom_kills: Figure = _TOO_SHORT
    """Processes of this container that the kernel ended for want of memory."""

    passes_per_s: Shift | Missing = _TOO_SHORT
    power_w: Shift | Missing = _TOO_SHORT
    sm_clock_mhz: Shift | Missing = _TOO_SHORT


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Shares of the last 10 s in which processes waited, by the kernel's pressure counters."""

    origin: Literal["container", "machine"] = "machine"
    """Whose processes: on a shared machine the neighbours' count too."""

    io_some_ratio: Figure = _NOT_FOLLOWED
    """At least one process waited for a disk."""

    io_full_ratio: Figure = _NOT_FOLLOWED
    """All that could have run waited for a disk."""

    memory_full_ratio: Figure = _NOT_FOLLOWED
    """All that could have run waited for memory to be freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSpeed:
    """The throughput that the engine's log states, beside its counters over the same seconds."""

    logged_tokens_per_s: float
    counted_tokens_per_s: float
    over_s: float
    speakers: int
    """API servers whose lines were seen: each may log its own share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Signals of the service that no block of the snapshot holds."""

    generation_flat_s: Figure = _NOT_FOLLOWED
    """Seconds that the count of generated tokens stood still while there was work."""

    steps_flat_s: Figure = _NOT_FOLLOWED
    """The same of engine steps or computed prompt tokens: they move during a long prefill too."""

    health_status: int | Missing = NOT_ASKED
    """HTTP status of the engine's `/health`."""

    stall: StalledStart | None = None
    """None while a start gets on, and where nothing starts."""

    counters_reset_s: Figure = _NO_RESET
    """Seconds since the engine's counters began again."""

    survivors: tuple[Survivor, ...] = ()
    unkillable: bool = False
    """The survivors outlived KILL and the deadline after it."""

    keeper_gone: bool = False
    """Whether nothing caps the living engine's output and records its end."""

    unsupervised: bool = False
    """Whether nothing brings the service back if it ends."""

    state_trouble: str = ""
    """What of its state the service cannot write, and why in the system's words."""

    end_evidence: str = ""
    """The line of a failed engine's output that shows why it ended."""

    end_remedy: str = ""
    """What to do about that end."""

    end_fix: str = ""
    """The change of the profile that mends it, in one line; empty where none is certain."""

    silent_words: str = ""
    """A line of the engine's log by which one part of it waits for another in vain."""

    unfit_parsers: tuple[UnfitParser, ...] = ()
    profile_edit: ProfileEdit | None = None
    trends: Trends = field(default_factory=Trends)
    stalls: Stalls = field(default_factory=Stalls)
    logged: LoggedSpeed | None = None
    """None where the log and the counters agree, or state nothing comparable."""

    asked_max_running: Figure = NOT_ASKED
    """How many requests the profile lets run at once: vLLM does not expose what it runs with."""

    hidden_processes: int = 0
    """Processes on the GPUs that the driver lists and this pod does not see."""

    sessions: tuple[SessionSigns, ...] = ()
    """What speaks for trouble in each session."""

    counts: CountDisagreement | None = None
    """A prompt that `count_tokens` and the engine count differently; None where they agree."""

    uncounted: bool = False
    """Whether the engine could not count the newest prompt for `count_tokens`."""
