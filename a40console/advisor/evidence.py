"""What the rules need besides the snapshot, and how standstill is measured."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.figures import Figure, Missing, number

_NOT_FOLLOWED = Missing("not followed")
_NOT_ASKED = Missing("not asked")
_NO_START = Missing("nothing starts")
_NO_RESET = Missing("never seen")


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that an engine left behind, proven to be of it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Signals of the service that no block of the snapshot holds."""

    generation_flat_s: Figure = _NOT_FOLLOWED
    """Seconds that the count of generated tokens stood still while there was work."""

    steps_flat_s: Figure = _NOT_FOLLOWED
    """The same of engine steps or computed prompt tokens: they move during a long prefill too."""

    health_status: int | Missing = _NOT_ASKED
    """HTTP status of the engine's `/health`."""

    start_flat_s: Figure = _NO_START
    """Seconds without progress of a start; a line that repeats is no progress."""

    start_progress: str = ""
    """The last sign of progress, in the engine's words."""

    stall_after_s: float = 120.0
    """From the profile: how long a start may show no progress."""

    counters_reset_s: Figure = _NO_RESET
    """Seconds since the engine's counters began again."""

    survivors: tuple[Survivor, ...] = ()
    unkillable: bool = False
    """The survivors outlived KILL and the deadline after it."""


@dataclass(slots=True)
class _Counter:
    value: float | None = None
    since_s: float = 0.0

    def flat_s(self, value: float | None, at_s: float, *, work: bool) -> Figure:
        if value is None:
            self.value = None
            return Missing("the counter cannot be read")
        if value != self.value or not work:
            self.value, self.since_s = value, at_s
        return at_s - self.since_s if work else Missing("no request is open")


class ProgressClock:
    """Measures how long counters stand still while requests are open.

    Idle time does not count: the first request after a quiet night is not a hang.
    """

    def __init__(self) -> None:
        self._generated = _Counter()
        self._steps = _Counter()

    def observe(
        self, at_s: float, *, open_requests: Figure, generated: Figure, steps: Figure
    ) -> tuple[Figure, Figure]:
        """Seconds of standstill of both counters, for `Evidence`.

        Args:
            at_s: Monotonic clock.
            open_requests: Running and waiting in the engine.
            generated: Cumulative generated tokens.
            steps: Any cumulative count that moves during prefill too, or missing.
        """
        work = bool(number(open_requests))
        return (
            self._generated.flat_s(number(generated), at_s, work=work),
            self._steps.flat_s(number(steps), at_s, work=work),
        )
