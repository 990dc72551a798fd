"""Token counts of gateway requests at the instants of the engine's counter, where it lists no rows.

Exact rows count themselves. What the counter says beyond them is shared among rows of which only
characters are known, by the characters they streamed; with a request beside the gateway running,
only as much as those characters explain. The rest is that direct request's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from a40console.model.request import GatewayRow
from a40console.telemetry.timeline import Count, Timeline
from a40console.telemetry.windows import RATE_WINDOW_S, value_at

_FORGET_AFTER_S = 2 * RATE_WINDOW_S
_MEMORY = 0.9
"""How much of what was learnt about characters a token stays with each finished request."""

_LARGEST_DEBT_TOKENS = 64.0
_NOISE_TOKENS = 2.0
_NOISE_RATIO = 0.1


def above_noise(rest: float, whole: float, *, span_s: float = 1.0) -> bool:
    """Whether what known rows leave unexplained is more than the edges of their counts."""
    return rest > max(_NOISE_TOKENS * span_s, _NOISE_RATIO * whole)


def counts_itself(row: GatewayRow) -> bool:
    """Whether the gateway knows the row's tokens, rather than only its characters."""
    return row.method != "apportioned" and (bool(row.marks) or row.generated_tokens is not None)


def tokens_at(row: GatewayRow, at_s: float) -> float:
    """Tokens that an exactly metered row had emitted at an instant."""
    if row.ended_at_s is not None and at_s >= row.ended_at_s:
        return float(row.generated_tokens or 0)
    if not row.marks:
        return float(row.generated_tokens or 0) if row.ended_at_s is None else 0.0
    if at_s < row.marks[0].at_s:
        return 0.0
    return value_at([(mark.at_s, float(mark.tokens)) for mark in row.marks], at_s)


def _counted_by(row: GatewayRow, at_s: float) -> bool:
    """Whether the gateway's own count says what the row had emitted at an instant.

    A total without marks says so from the end on only.
    """
    settled = row.ended_at_s is None or row.ended_at_s <= at_s
    return counts_itself(row) and (settled or bool(row.marks))


def in_engine(row: GatewayRow, at_s: float) -> bool:
    """Whether the engine had the request at an instant."""
    sent = row.sent_at_s is not None and row.sent_at_s <= at_s
    return sent and (row.ended_at_s is None or row.ended_at_s > at_s)


class Meter:
    """Follows the gateway's rows along the engine's counter."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self._counter: float | None = None
        self._counts: dict[str, float] = {}
        self._characters: dict[str, int] = {}
        self._assigned: dict[str, float] = {}
        self._closed: set[str] = set()
        self._debt = 0.0
        self._learnt_tokens = 0.0
        self._learnt_characters = 0.0

    def clear(self) -> None:
        """The engine's counter began again."""
        self.timeline.clear()
        self._counter = None
        self._debt = 0.0

    @property
    def characters_per_token(self) -> float | None:
        """As learnt from finished requests; None before the first."""
        return self._learnt_characters / self._learnt_tokens if self._learnt_tokens else None

    @property
    def assigned_tokens(self) -> Mapping[str, float]:
        """Tokens apportioned so far, by request id."""
        return self._assigned

    def observe(
        self,
        at_s: float,
        counter: float | None,
        *,
        running: float | None,
        live: Sequence[GatewayRow],
        finished: Sequence[GatewayRow],
    ) -> None:
        """Take the gateway's rows at one instant of the counter; instants must advance.

        Args:
            at_s: The instant.
            counter: Generated tokens by the engine's count; None where it cannot be read.
            running: Requests that the engine says it runs; None where it does not say.
            live: The gateway's live rows.
            finished: Its finished rows, of which the recent ones matter.
        """
        end_s = self.timeline.end_s
        if end_s is not None and at_s <= end_s:
            return
        recent = [row for row in finished if _ended_after(row, at_s - _FORGET_AFTER_S)]
        rows = [*live, *recent]
        exact = {row.request_id: tokens_at(row, at_s) for row in rows if _counted_by(row, at_s)}
        weights = self._streamed(rows)
        pool = self._pool(counter, exact)
        shares = self._shares(at_s, pool, weights, running, rows)
        for key, share in shares.items():
            self._assigned[key] = self._assigned.get(key, 0.0) + share
        self._learn(recent)
        self._counts = {row.request_id: 0.0 for row in rows} | self._assigned | exact
        self._keep({row.request_id for row in rows})
        live_ids = {row.request_id for row in live}
        self.timeline.add(
            at_s,
            {key: Count(tokens) for key, tokens in self._counts.items() if key in live_ids},
            {key: Count(tokens) for key, tokens in self._counts.items() if key not in live_ids},
        )
        self._counter = counter

    def _streamed(self, rows: Iterable[GatewayRow]) -> dict[str, float]:
        """Characters that each apportioned row streamed since the previous instant."""
        streamed = {}
        for row in rows:
            followed = row.method == "apportioned" or row.request_id in self._characters
            if followed and row.request_id not in self._closed:
                fresh = row.characters - self._characters.get(row.request_id, 0)
                self._characters[row.request_id] = row.characters
                if fresh > 0:
                    streamed[row.request_id] = float(fresh)
        return streamed

    def _pool(self, counter: float | None, exact: Mapping[str, float]) -> float | None:
        """Tokens since the previous instant that exact rows do not explain."""
        if counter is None or self._counter is None:
            return None
        moved = sum(tokens - self._counts.get(key, 0.0) for key, tokens in exact.items())
        pool = self._debt + counter - self._counter - moved
        # Chunks reach the gateway after the engine counted them: a debt is paid back next time.
        self._debt = max(-_LARGEST_DEBT_TOKENS, min(0.0, pool))
        return max(0.0, pool)

    def _shares(
        self,
        at_s: float,
        pool: float | None,
        weights: Mapping[str, float],
        running: float | None,
        rows: Sequence[GatewayRow],
    ) -> dict[str, float]:
        """How the pool is shared: by characters, or evenly among rows that show none yet."""
        per_token = self.characters_per_token
        expected = None if per_token is None else sum(weights.values()) / per_token
        if pool is None:
            return {} if expected is None else _split(expected, weights)
        ours = [row for row in rows if in_engine(row, at_s)]
        beside = None if running is None else max(0.0, running - len(ours))
        if not weights:
            # A request that does not stream shows nothing until it ends.
            silent = {r.request_id: 1.0 for r in ours if not r.characters and not counts_itself(r)}
            return _split(pool, silent) if beside == 0 and above_noise(pool, 0.0) else {}
        if beside != 0 and expected is not None:
            pool = min(pool, expected)
        elif beside:
            pool *= len(weights) / (beside + len(weights))
        return _split(pool, weights)

    def _learn(self, finished: Iterable[GatewayRow]) -> None:
        """Characters a token, from rows that were followed to their end; a row teaches once."""
        for row in finished:
            if row.request_id in self._closed or row.request_id not in self._characters:
                continue
            self._closed.add(row.request_id)
            if row.generated_tokens and row.characters:
                self._learnt_tokens = _MEMORY * self._learnt_tokens + row.generated_tokens
                self._learnt_characters = _MEMORY * self._learnt_characters + row.characters

    def _keep(self, known: set[str]) -> None:
        self._assigned = {key: value for key, value in self._assigned.items() if key in known}
        self._characters = {key: value for key, value in self._characters.items() if key in known}
        self._closed &= known


def _split(amount: float, weights: Mapping[str, float]) -> dict[str, float]:
    whole = sum(weights.values())
    return {key: amount * weight / whole for key, weight in weights.items()} if whole else {}


def _ended_after(row: GatewayRow, at_s: float) -> bool:
    return row.ended_at_s is not None and row.ended_at_s >= at_s
