"""The past in memory: rings of three resolutions, and the answer to who asks for a part. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from a40console.model.control import History, HistoryPoint, Retention
from a40console.model.figures import Missing
from a40console.service.series import (
    Reasons,
    Row,
    gap,
    merge,
    pack,
    packed_at_s,
    point_of,
    recoded,
    row_of,
    unpack,
)

STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 43_200)
"""Lengths that a point may have, each a part of the clock's hour or day."""

FINE_SPAN_S = 3600
COARSE = ((10, 6 * 3600), (60, 24 * 3600))
"""Step and span of what is kept beyond the last hour."""

MOST_POINTS = 5000
JITTER = 3
"""Readings this many intervals apart have no gap between them."""

EDGE_S = 60
"""What a finer resolution may lack of the window's begin."""

UNSEEN = "nothing was recorded: the service did not run"
NOTHING = Missing("nothing is recorded yet")


@dataclass(frozen=True, slots=True)
class Tier:
    """One resolution: the seconds of its rows, and how far back they go."""

    step_s: int
    span_s: int

    @property
    def rows(self) -> int:
        """How many rows it holds at the most."""
        return self.span_s // self.step_s


def tiers(interval_s: float) -> tuple[Tier, ...]:
    """The resolutions for readings of this interval, the finest first."""
    base_s = next(step for step in STEPS_S if step >= min(interval_s, 60.0))
    coarser = [Tier(step, span) for step, span in COARSE if step > base_s]
    return (Tier(base_s, FINE_SPAN_S if coarser else COARSE[-1][1]), *coarser)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of one resolution at one instant, for a reader in another thread."""

    tier: Tier
    rows: tuple[bytes, ...]
    open_rows: tuple[Row, ...]
    """What the present span holds so far, and the finer ones that are not over either."""


class Rings:
    """Readings as they come, put together by the second, the ten seconds and the minute."""

    def __init__(self, interval_s: float) -> None:
        self.tiers = tiers(interval_s)
        self.reasons = Reasons()
        self._jitter_s = JITTER * max(interval_s, self.tiers[0].step_s)
        self._rings = [deque[bytes](maxlen=tier.rows) for tier in self.tiers]
        self._open: list[list[Row]] = [[] for _ in self.tiers]
        self.closed = deque[tuple[int, bytes]](maxlen=sum(tier.rows for tier in self.tiers))
        """Step and packed row of spans that are over; whoever writes them down empties it."""

    def add(self, point: HistoryPoint) -> None:
        """Take a reading; the clock may have been set back."""
        self._take(0, row_of(point, self.reasons))

    def restore(self, kept: Iterable[tuple[int, bytes]], reasons: Sequence[str]) -> None:
        """Put rows from before in front of what is here.

        Args:
            kept: Step and packed row, oldest first by resolution.
            reasons: What their codes mean.
        """
        before, self.reasons = self.reasons, Reasons(reasons)
        earlier: dict[int, list[bytes]] = {tier.step_s: [] for tier in self.tiers}
        for step_s, data in kept:
            if step_s in earlier:
                earlier[step_s].append(data)
        filled = list(_fill(self.tiers, earlier))
        recode = partial(recoded, before=before, after=self.reasons)
        for number, tier in enumerate(self.tiers):
            here = [pack(recode(unpack(data))) for data in self._rings[number]]
            self._rings[number] = deque([*earlier[tier.step_s], *here], maxlen=tier.rows)
            self._open[number] = [recode(row) for row in self._open[number]]
        here_closed = [(step_s, pack(recode(unpack(data)))) for step_s, data in self.closed]
        self.closed.clear()
        self.closed.extend([*filled, *here_closed])

    def rows(self) -> list[tuple[int, bytes]]:
        """Step and packed row of all that is kept, oldest first by resolution."""
        rings = zip(self.tiers, self._rings, strict=True)
        return [(tier.step_s, data) for tier, ring in rings for data in ring]

    def kept(self) -> tuple[Kept, ...]:
        """What there is now, by resolution."""
        found, still_open = [], tuple[Row, ...]()
        for tier, ring, rows in zip(self.tiers, self._rings, self._open, strict=True):
            still_open = (*rows, *still_open)
            found.append(Kept(tier, tuple(ring), still_open))
        return tuple(found)

    def _take(self, number: int, row: Row) -> None:
        step_s, held = self.tiers[number].step_s, self._open[number]
        if held and _begin(held[0].at_s, step_s) != _begin(row.at_s, step_s):
            self._close(number, row.at_s)
        self._open[number].append(row)

    def _close(self, number: int, next_s: float) -> None:
        """The span is over: keep it, and hand it on to the next resolution."""
        tier, held = self.tiers[number], self._open[number]
        begin_s = _begin(held[0].at_s, tier.step_s)
        row = merge(held, begin_s)
        if number == 0:
            row = self._as_one(row, held[-1].at_s, next_s)
        self._open[number] = []
        data = pack(row)
        self._rings[number].append(data)
        self.closed.append((tier.step_s, data))
        if number + 1 < len(self.tiers):
            self._take(number + 1, row)

    def _as_one(self, row: Row, last_s: float, next_s: float) -> Row:
        """The finest row counts as one reading, or as the two or three that a late timer skipped.

        The number held at the gateway is always known, so it has the count of every row.
        """
        step_s, stands_for = self.tiers[0].step_s, 1
        if 0 < next_s - last_s <= self._jitter_s:
            stands_for = max(1, (_begin(next_s, step_s) - _begin(last_s, step_s)) // step_s)
        return row._replace(counts=tuple(stands_for if count else 0 for count in row.counts))


def _fill(tiers: Sequence[Tier], earlier: dict[int, list[bytes]]) -> Iterator[tuple[int, bytes]]:
    """Rows that a service could not end, put together from finer ones; added to what is kept."""
    for finer, tier in pairwise(tiers):
        rows = earlier[tier.step_s]
        end_s = packed_at_s(rows[-1]) + tier.step_s if rows else 0.0
        left = [unpack(data) for data in earlier[finer.step_s] if packed_at_s(data) >= end_s]
        spans: dict[int, list[Row]] = {}
        for row in left:
            spans.setdefault(_begin(row.at_s, tier.step_s), []).append(row)
        for begin_s, held in spans.items():
            data = pack(merge(held, begin_s))
            rows.append(data)
            yield tier.step_s, data


def _begin(at_s: float, step_s: int) -> int:
    return math.floor(at_s / step_s) * step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What part of the past is asked for."""

    since_s: float
    """Points that begin after it; negative counts back from `until_s`, 0 is all."""

    until_s: float | None
    points: int
    step_s: float
    """Points are not finer."""


def answer(
    question: Question,
    kept: Sequence[Kept],
    reasons: Reasons,
    *,
    now_s: float,
    trouble: str | None,
) -> History:
    """The part of the past that is asked for, in points of equal length.

    Args:
        question: What is asked.
        kept: The rows of each resolution, the finest first.
        reasons: What the rows' codes mean.
        now_s: Unix time.
        trouble: Why the disk takes no history.
    """
    until_s = now_s if question.until_s is None else min(question.until_s, now_s)
    since_s = question.since_s if question.since_s >= 0 else until_s + question.since_s
    oldest_s = min((stamp for one in kept for stamp in _stamps(one)), default=None)
    first_s = until_s if oldest_s is None else oldest_s
    one, step_s = _resolution(question, kept, (first_s, since_s, until_s))
    window = _Window(since_s, until_s, now_s, step_s)
    points = _points(one, reasons, window, base_s=kept[0].tier.step_s)
    return History(
        since_s=min(max(since_s, first_s), until_s),
        until_s=until_s,
        step_s=float(step_s),
        oldest_s=NOTHING if oldest_s is None else oldest_s,
        points=tuple(points[-question.points :]) if question.points else (),
        retention=tuple(
            Retention(step_s=float(part.tier.step_s), span_s=float(part.tier.span_s))
            for part in kept
        ),
        trouble=trouble,
    )


@dataclass(frozen=True, slots=True)
class _Window:
    since_s: float
    until_s: float
    now_s: float
    step_s: int


def _stamps(one: Kept) -> list[float]:
    return [*map(packed_at_s, one.rows), *(row.at_s for row in one.open_rows)]


def _resolution(
    question: Question, kept: Sequence[Kept], span: tuple[float, float, float]
) -> tuple[Kept, int]:
    """The finest step that fits the points, and the coarsest rows that it is made of.

    Args:
        question: What is asked.
        kept: The rows of each resolution, the finest first.
        span: When the oldest row begins, after what and until when points are asked for.
    """
    oldest_s, since_s, until_s = span
    begin_s = max(oldest_s, since_s)
    reaching = [one for one in kept if min(_stamps(one), default=until_s) <= begin_s + EDGE_S]
    reaching = reaching or [kept[-1]]
    for step_s in STEPS_S:
        made_of = [one for one in reaching if step_s % one.tier.step_s == 0]
        first_s = max(_begin(oldest_s, step_s), _begin(since_s, step_s) + step_s)
        count = (_begin(until_s, step_s) - first_s) // step_s + 1
        if made_of and count <= max(1, question.points) and step_s >= question.step_s:
            return made_of[-1], step_s
    return kept[-1], STEPS_S[-1]


def _points(one: Kept, reasons: Reasons, window: _Window, *, base_s: int) -> list[HistoryPoint]:
    """Every span of the window between the oldest and the newest row; one without rows is a gap."""
    step_s = window.step_s
    earliest_s = window.since_s - JITTER * step_s
    rows = [unpack(data) for data in one.rows if packed_at_s(data) >= earliest_s]
    rows += one.open_rows
    spans: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.at_s):
        spans.setdefault(_begin(row.at_s, step_s), []).append(row)
    if not spans:
        return []
    first_s = max(min(spans), _begin(window.since_s, step_s) + step_s)
    last_s = min(max(spans), _begin(window.until_s, step_s))
    points: list[HistoryPoint] = []
    for begin_s in range(first_s, last_s + 1, step_s):
        held = spans.get(begin_s)
        if held is None:
            skipped = begin_s < _covered_s(spans, begin_s, step_s, base_s)
            points += [] if skipped else [gap(begin_s, UNSEEN)]
            continue
        readings = min(step_s, max(base_s, window.now_s - begin_s)) / base_s
        points.append(point_of(merge(held, begin_s), reasons, readings=readings))
    return points


def _covered_s(spans: dict[int, list[Row]], begin_s: int, step_s: int, base_s: int) -> float:
    """Until when the rows of the spans just before stand for: a late timer skips a second."""
    ends_s = (
        span_s + base_s * max(row.counts)
        for span_s in range(begin_s - JITTER * step_s, begin_s, step_s)
        for row in spans.get(span_s, ())
    )
    return max(ends_s, default=0.0)
