"""What was generated, asked and paid, by the minute and by the hour: sums that outlive an engine.

Differences of counters are added, so a counter that begins again loses and invents nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Self

from a40console.files import parse_json

MINUTE_S = 60
HOUR_S = 3600
KEPT_S = {MINUTE_S: 25 * HOUR_S, HOUR_S: 400 * 24 * HOUR_S}
"""How far back the tallies of each length go."""

SECONDS_KEPT_S = HOUR_S
"""How far back sums are also kept by the second, in memory alone."""

USD_DIGITS = 12
NEW_WITHIN_S = 10.0
"""A start is published at once, and read with the next snapshot."""

SEEN_WITHIN_S = 3.0
"""Telemetry may see a counter begin again this much before we read it."""

Key = tuple[int, int]
"""Length in seconds, and begin in Unix time."""

LONGEST_ABSENCE_S = 7 * 24 * 3600.0
"""An engine that ran unseen for longer is counted no further back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one minute or hour came to."""

    generated_tokens: int = 0
    spread_tokens: int = 0
    """Of them, those that came while nobody counted: laid evenly over that time."""

    earlier_tokens: int = 0
    """Beside them, what an engine had generated before it was first seen: when is not known."""

    finished: int = 0
    failed: int = 0
    aborted: int = 0
    usd: Decimal = Decimal(0)
    priced_s: float = 0.0
    """Seconds that cost something known."""

    priced_tokens: int = 0
    """Tokens that were generated for that."""

    busy_s: float = 0.0
    observed_s: float = 0.0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            generated_tokens=self.generated_tokens + other.generated_tokens,
            spread_tokens=self.spread_tokens + other.spread_tokens,
            earlier_tokens=self.earlier_tokens + other.earlier_tokens,
            finished=self.finished + other.finished,
            failed=self.failed + other.failed,
            aborted=self.aborted + other.aborted,
            usd=self.usd + other.usd,
            priced_s=self.priced_s + other.priced_s,
            priced_tokens=self.priced_tokens + other.priced_tokens,
            busy_s=self.busy_s + other.busy_s,
            observed_s=self.observed_s + other.observed_s,
        )

    def text(self) -> str:
        """Its JSON; dollars as text, exact."""
        return json.dumps(asdict(self) | {"usd": str(self.usd)})

    @classmethod
    def parse(cls, text: str) -> Self:
        """The tally of a text that `text` wrote.

        Raises:
            ValueError: If it is none.
        """
        try:
            data = parse_json(text)
            tally = cls(**data | {"usd": Decimal(data["usd"])})
            sound = all(type(data[name]) in (int, float) for name in data if name != "usd")
            finite = all(math.isfinite(getattr(tally, name)) for name in data)
        except (TypeError, LookupError, ArithmeticError) as error:
            raise ValueError(f"no tally: {error}") from error
        if not (sound and finite):
            raise ValueError("a tally with something that is no number")
        return tally


NONE = Tally()


@dataclass(frozen=True, slots=True)
class Span:
    """What came to be since an instant, or since a little before it."""

    begin_s: float
    """Unix time from which it is counted."""

    tally: Tally
    dollars_exact: bool
    """Whether its dollars are those since the instant itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What counts upwards, as it stood at one instant."""

    at_s: float
    """Unix time."""

    run: str | None = None
    """The engine start whose tokens are counted."""

    generated_tokens: float | None = None
    read_s: float | None = None
    """Unix time at which the tokens were last read."""

    finished: int = 0
    failed: int = 0
    aborted: int = 0
    """Of the gateway, which counts from the service's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one snapshot adds to the sums."""

    counters: Counters
    counters_reset_s: float | None
    """Seconds since the engine's counters were seen to begin again; None where they never did."""

    run_age_s: float | None
    """Seconds since the engine began; None where none runs."""

    elapsed_s: float | None
    """Seconds since the reading before, on the monotonic clock; None for a service's first."""

    usd_per_hour: Decimal | None
    """What is paid now; None where that is not known, or nothing runs that costs."""

    busy: bool
    """Whether requests ran at it; it is busy as well where the engine's tokens moved."""

    simulated: bool = False
    """A simulated engine's tokens, requests and dollars are none: its seconds alone are seen."""


class TallyBook:
    """The sums, and the counters that they were taken from."""

    def __init__(self) -> None:
        self.tallies: dict[Key, Tally] = {}
        self.last: Counters | None = None
        self.changed: set[Key] = set()
        """What was added to, for whoever writes it down; it empties the set."""

        self._seconds: dict[int, Tally] = {}
        self._seconds_since_s: float | None = None
        self._seen_run: str | None = None
        self._past_hours: tuple[tuple[int, int], Tally] | None = None

    def restore(self, tallies: Mapping[Key, Tally], last: Counters | None) -> None:
        """Put what an earlier service counted under what was counted here."""
        for key, tally in tallies.items():
            here = self.tallies.get(key)
            self.tallies[key] = tally if here is None else tally.plus(here)
        if self.last is None and last is not None:
            # A gateway counts from its service's start.
            self.last = replace(last, finished=0, failed=0, aborted=0)
        self._past_hours = None

    def take(self, reading: Reading) -> None:
        """Add what came since the reading before."""
        if self._seconds_since_s is None:
            self._seconds_since_s = reading.counters.at_s - (reading.elapsed_s or 0.0)
        if reading.simulated:
            counters = replace(reading.counters, run=None, generated_tokens=None)
            reading = replace(reading, counters=counters, usd_per_hour=None, busy=False)
        else:
            self._add(reading.counters.at_s, _moved(reading, self.last))
        now, before, price = reading.counters, self.last, reading.usd_per_hour
        for at_s, tally in _laid(_grown(reading, before), _unread_s(now, before), now.at_s, price):
            self._add(at_s, tally)
        for at_s, part_s in _minutes(now.at_s - self._elapsed_s(reading), now.at_s):
            self._add(at_s, _paid(part_s, price))
        self.last, self._seen_run = _standing(reading, before), now.run
        self._forget(now.at_s)

    def span(self, since_s: float, until_s: float) -> Span:
        """What a span came to, and where it really begins.

        It begins with its second within the last hour that was seen, else with its minute, beyond
        a day with its hour.

        Args:
            since_s: Unix time.
            until_s: Unix time.
        """
        kept_s = max(self._seconds_since_s or math.inf, until_s - SECONDS_KEPT_S)
        if since_s >= kept_s:
            second_s, found = math.floor(since_s), NONE
            for at_s, tally in self._seconds.items():
                if second_s <= at_s <= until_s:
                    found = found.plus(tally)
            return Span(float(second_s), found, dollars_exact=True)
        step_s = MINUTE_S if since_s >= until_s - 24 * HOUR_S else HOUR_S
        begin_s = _begin(since_s, step_s)
        first = self.tallies.get((step_s, begin_s), NONE)
        # An engine that ran all through it cost as much each second of it.
        even = first.usd == 0 or first.priced_s >= step_s - 1
        found = Tally(usd=-first.usd * Decimal((since_s - begin_s) / step_s)) if even else NONE
        for (step, at_s), tally in self.tallies.items():
            if step == step_s and begin_s <= at_s <= until_s:
                found = found.plus(tally)
        return Span(begin_s, found, dollars_exact=even)

    def hour(self, at_s: int) -> Tally | None:
        """The hour that begins then; None where nothing was counted in it."""
        return self.tallies.get((HOUR_S, at_s))

    def since(self, since_s: float, now_s: float) -> Tally:
        """All since an instant, its whole hour included; quick to ask again."""
        place = (_begin(since_s, HOUR_S), _begin(now_s, HOUR_S))
        if self._past_hours is None or self._past_hours[0] != place:
            past = NONE
            for (step_s, at_s), tally in self.tallies.items():
                if step_s == HOUR_S and at_s >= place[0] and at_s != place[1]:
                    past = past.plus(tally)
            self._past_hours = (place, past)
        return self._past_hours[1].plus(self.tallies.get((HOUR_S, place[1]), NONE))

    @property
    def oldest_s(self) -> float | None:
        """Begin of the oldest hour in which anything was counted."""
        return min((at_s for step_s, at_s in self.tallies if step_s == HOUR_S), default=None)

    def _elapsed_s(self, reading: Reading) -> float:
        """Seconds to account for: those since the last reading, or since this run was last seen."""
        now, before = reading.counters, self.last
        back = now.run is not None and now.run != self._seen_run
        if back and before is not None and before.run == now.run:
            return min(max(0.0, now.at_s - before.at_s), LONGEST_ABSENCE_S)
        return reading.elapsed_s or 0.0

    def _add(self, at_s: float, tally: Tally) -> None:
        if tally == NONE:
            return
        second_s = math.floor(at_s)
        self._seconds[second_s] = self._seconds.get(second_s, NONE).plus(tally)
        for step_s in KEPT_S:
            key = (step_s, _begin(at_s, step_s))
            self.tallies[key] = self.tallies.get(key, NONE).plus(tally)
            self.changed.add(key)

    def _forget(self, now_s: float) -> None:
        most = sum(kept_s // step_s for step_s, kept_s in KEPT_S.items())
        if len(self.tallies) > most:
            for key in [key for key in self.tallies if key[1] < now_s - KEPT_S[key[0]]]:
                del self.tallies[key]
        if len(self._seconds) > SECONDS_KEPT_S + MINUTE_S:
            oldest_s = now_s - SECONDS_KEPT_S
            self._seconds = {at: one for at, one in self._seconds.items() if at >= oldest_s - 1}


def _begin(at_s: float, step_s: int) -> int:
    return math.floor(at_s / step_s) * step_s


def _minutes(since_s: float, until_s: float) -> Iterator[tuple[float, float]]:
    """The span in pieces that each lie within one minute: begin and seconds."""
    while since_s < until_s:
        end_s = min(until_s, _begin(since_s, MINUTE_S) + MINUTE_S)
        yield since_s, end_s - since_s
        since_s = end_s


def _moved(reading: Reading, before: Counters | None) -> Tally:
    """What the gateway's counters moved by, and what is known of an engine that ran before."""
    now = reading.counters
    first = before is None or now.run != before.run
    unknown = not _began_now(reading) if first else before and before.generated_tokens is None
    earlier = now.generated_tokens if now.run is not None and unknown else None
    return Tally(
        earlier_tokens=int(earlier or 0),
        finished=now.finished - (before.finished if before else 0),
        failed=now.failed - (before.failed if before else 0),
        aborted=now.aborted - (before.aborted if before else 0),
        busy_s=(reading.elapsed_s or 0.0) if reading.busy or _grown(reading, before) else 0.0,
    )


def _unread_s(now: Counters, before: Counters | None) -> float:
    """Seconds in which nobody read the engine's tokens; 0 where they follow on each other."""
    if before is None or before.run != now.run or before.read_s is None:
        return 0.0
    gap_s = now.at_s - before.read_s
    return min(gap_s, LONGEST_ABSENCE_S) if gap_s > MINUTE_S else 0.0


def _laid(
    tokens: int, unread_s: float, now_s: float, usd_per_hour: Decimal | None
) -> Iterator[tuple[float, Tally]]:
    """The tokens where they belong: at this instant, or evenly over the time they were not read."""
    priced = usd_per_hour is not None
    if not unread_s:
        yield now_s, Tally(generated_tokens=tokens, priced_tokens=tokens if priced else 0)
        return
    laid = 0
    for at_s, part_s in _minutes(now_s - unread_s, now_s):
        end_s = at_s + part_s
        here = tokens if end_s >= now_s else round(tokens * (end_s - now_s + unread_s) / unread_s)
        new, laid = here - laid, here
        yield (
            at_s,
            Tally(generated_tokens=new, spread_tokens=new, priced_tokens=new if priced else 0),
        )


def _paid(part_s: float, usd_per_hour: Decimal | None) -> Tally:
    if usd_per_hour is None:
        return Tally(observed_s=part_s)
    usd = usd_per_hour * Decimal(part_s) / HOUR_S
    return Tally(observed_s=part_s, priced_s=part_s, usd=round(usd, USD_DIGITS))


def _grown(reading: Reading, before: Counters | None) -> int:
    """Tokens since the last reading; a counter seen for the first time is only noted."""
    now = reading.counters
    if before is None or now.run is None or now.generated_tokens is None:
        return 0
    if now.run != before.run:
        return int(now.generated_tokens) if _began_now(reading) else 0
    if before.generated_tokens is None:
        return 0
    if _began_again(reading, before):
        return int(now.generated_tokens)
    return max(0, int(now.generated_tokens) - int(before.generated_tokens))


def _began_now(reading: Reading) -> bool:
    """Whether the engine began under our eyes, so that all its tokens are new."""
    age_s = reading.run_age_s
    return age_s is not None and age_s <= (reading.elapsed_s or 0.0) + NEW_WITHIN_S


def _began_again(reading: Reading, before: Counters) -> bool:
    """Whether telemetry saw the counter begin again since the last reading.

    One that is only lower may come from another source of the same engine, a little behind.
    """
    tokens, reset_s = reading.counters.generated_tokens, reading.counters_reset_s
    lower = tokens is not None and tokens < (before.generated_tokens or 0.0)
    return lower and reset_s is not None and reset_s <= (reading.elapsed_s or 0.0) + SEEN_WITHIN_S


def _standing(reading: Reading, before: Counters | None) -> Counters:
    """What the next reading is compared with: an engine out of sight stands where it stood."""
    now = reading.counters
    if now.generated_tokens is not None:
        now = replace(now, read_s=now.at_s)
    if before is None:
        return now
    if now.run is None:
        return replace(
            now,
            run=before.run,
            generated_tokens=before.generated_tokens,
            read_s=before.read_s,
            at_s=before.at_s,
        )
    if now.run != before.run:
        if now.generated_tokens is None and _began_now(reading):
            return replace(now, generated_tokens=0.0, read_s=now.at_s)
        return now
    if now.generated_tokens is None:
        return replace(now, generated_tokens=before.generated_tokens, read_s=before.read_s)
    if before.generated_tokens is None or _began_again(reading, before):
        return now
    return replace(now, generated_tokens=max(now.generated_tokens, before.generated_tokens))
