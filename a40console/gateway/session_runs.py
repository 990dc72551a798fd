"""Which start of the engine served a session, and what each did for it and for what price. Pure."""

from __future__ import annotations

from dataclasses import dataclass

KEPT_RUNS = 8
"""Starts that a session's work is kept apart by; the oldest of one kind are put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The engine start that serves at this instant."""

    run_id: str | None
    """None where starts are not told apart."""

    window_tokens: int | None
    """Its `max_model_len`; None while it has not told."""

    usd_per_hour: float | None
    """What is paid for it; None where no price is known."""

    simulated: bool | None
    """Whether it only pretends; None while that is not known."""


@dataclass(slots=True, kw_only=True)
class Served:
    """What one engine start did for a session."""

    usd_per_hour: float | None = None
    simulated: bool | None = None
    share_s: float = 0.0
    """Its busy seconds, each divided by how many sessions were busy in it."""

    requests: int = 0
    generated: int = 0
    generated_untold: int = 0

    @property
    def usd(self) -> float | None:
        """The rent of its seconds; None where no price is known."""
        return None if self.usd_per_hour is None else self.usd_per_hour / 3600 * self.share_s

    @property
    def kind(self) -> tuple[bool | None, bool]:
        """What may be added up: nothing pretended with real, nothing priced with unpriced."""
        return self.simulated, self.usd_per_hour is not None

    def count(self, generated: int, untold: int, sign: int = 1) -> None:
        """Count a request in, or out again."""
        self.requests += sign
        self.generated += sign * generated
        self.generated_untold += sign * untold


def put_together(served: dict[str, Served]) -> None:
    """Add the oldest two of one kind up where there are too many; their dollars stay."""
    while len(served) > KEPT_RUNS:
        seen: dict[tuple[bool | None, bool], str] = {}
        for name, each in served.items():
            if (older := seen.get(each.kind)) is not None:
                _add(served.pop(older), each)
                break
            seen[each.kind] = name


def _add(older: Served, into: Served) -> None:
    usd = None if older.usd is None or into.usd is None else older.usd + into.usd
    into.share_s += older.share_s
    if usd is not None and into.share_s:
        into.usd_per_hour = usd * 3600 / into.share_s
    into.requests += older.requests
    into.generated += older.generated
    into.generated_untold += older.generated_untold
