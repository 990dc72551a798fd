"""What the service keeps has a bound, however long it runs and however often it reads.

Objects are counted, not pages: what has filled after a while holds no more after twice as long.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Callable
from itertools import count

import pytest

from a40console.gateway.meter import KEPT_FINISHED, KEPT_MARKS, MARKS_FOR_S, Meter
from a40console.model.control import HistoryPoint
from a40console.model.figures import Missing
from a40console.service.history import Rings
from a40console.service.trends import BEFORE_S, STEP_S, Sample, TrendKeeper
from a40console.telemetry.latency import FirstTokens
from a40console.telemetry.metering import Meter as TokenMeter
from a40console.telemetry.reading import Histogram
from a40console.telemetry.timeline import Count, Timeline
from a40console.telemetry.windows import FINE_S, LONG_WINDOW_S, SPARSE_STEP_S, CounterRing
from tests.telemetry.makers import engine_row, gateway_row, reading

PERIOD_S = 0.05
"""The shortest interval between readings that the settings take."""

CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
Feed = Callable[[int], None]
"""Takes the reading with a number."""


def held(root: object) -> int:
    """How many objects are reachable from one, code apart."""
    seen, left = {id(root)}, [root]
    while left:
        for found in gc.get_referents(left.pop()):
            if id(found) not in seen and not isinstance(found, CODE):
                seen.add(id(found))
                left.append(found)
    return len(seen)


def counter_ring() -> tuple[object, Feed]:
    ring = CounterRing()

    def feed(number: int) -> None:
        rows = tuple(engine_row(f"{number}/{place}", number) for place in range(4))
        counts = (float(number), float(number + 1), float(number + 2))
        histogram = Histogram((0.1, 1.0, float("inf")), counts, number / 3)
        counters = {"generated_tokens": number / 2, "passes": number / 4}
        settings = {"block_size": 16, "key": f"value {number}"}
        ring.add(
            reading(
                PERIOD_S * number,
                counters,  # type: ignore[arg-type]
                {"running": 4.0},
                histograms={"pass_s": histogram},
                settings=settings,
                rows=rows,
                ended=rows,
            )
        )

    return ring, feed


def trend_keeper() -> tuple[object, Feed]:
    keeper = TrendKeeper()
    return keeper, lambda number: keeper.observe(
        Sample(at_s=PERIOD_S * number, running=number % 7, passes_per_s=number / 3), life=1
    )


def first_tokens() -> tuple[object, Feed]:
    seen = FirstTokens(since_s=0.0)
    return seen, lambda number: seen.observe(
        [gateway_row(f"a40-{number}", received_at_s=float(number), first_token_at_s=number + 0.5)]
    )


def gateway_meter() -> tuple[object, Feed]:
    now_s = 0.0
    meter = Meter(clock=lambda: now_s)

    def feed(number: int) -> None:
        nonlocal now_s
        passage = meter.accept("chat", f"a40-{number}")
        for tokens in range(1, 20):
            now_s += PERIOD_S
            passage.progressed(now_s, tokens)
        meter.end(passage, "completed")
        meter.finished()

    return meter, feed


def token_meter() -> tuple[object, Feed]:
    meter = TokenMeter()

    def feed(number: int) -> None:
        at_s = PERIOD_S * number
        live = [gateway_row(f"a40-{number // 50}", characters=number % 50 * 4)]
        meter.observe(at_s, number * 1.0, running=1, live=live, finished=[])

    return meter, feed


def timeline() -> tuple[object, Feed]:
    kept = Timeline()
    return kept, lambda number: kept.add(
        PERIOD_S * number, {f"row {number // 50}": Count(number / 3)}, {}
    )


@pytest.mark.parametrize(
    ("make", "filled"),
    [
        (counter_ring, 2000),
        (trend_keeper, 7000),
        (first_tokens, 1500),
        (gateway_meter, 700),
        (token_meter, 500),
        (timeline, 500),
    ],
)
def test_what_has_filled_grows_no_more(
    make: Callable[[], tuple[object, Feed]], filled: int
) -> None:
    structure, feed = make()
    numbers = count()
    for _ in range(filled):
        feed(next(numbers))
    before = held(structure)
    for _ in range(filled):
        feed(next(numbers))
    assert held(structure) <= 1.05 * before + 20


def test_quick_readings_are_thinned_out_behind_the_rate_window() -> None:
    ring, feed = counter_ring()
    assert isinstance(ring, CounterRing)
    for number in range(4000):
        feed(number)
    most = FINE_S / PERIOD_S + (LONG_WINDOW_S + 10) / SPARSE_STEP_S
    assert len(ring) <= most + 4
    older = list(ring)[:-1]
    assert not any(one.rows or one.ended or one.settings for one in older)
    assert ring.latest is not None
    assert ring.latest.rows
    assert ring.rate("generated_tokens") == pytest.approx(0.5 / PERIOD_S)
    assert ring.delta("generated_tokens", LONG_WINDOW_S) == pytest.approx(600.0, rel=0.01)


def test_quick_snapshots_leave_as_many_samples_as_slow_ones() -> None:
    keeper, feed = trend_keeper()
    assert isinstance(keeper, TrendKeeper)
    for number in range(10_000):
        feed(number)
    assert len(keeper) <= BEFORE_S / STEP_S + 2


def test_marks_go_once_no_window_reaches_back_to_them() -> None:
    now_s = 100.0
    meter = Meter(clock=lambda: now_s)
    for number in range(KEPT_FINISHED + 5):
        passage = meter.accept("chat", str(number))
        for tokens in range(1, KEPT_MARKS // 8):
            passage.progressed(now_s + 0.1 * tokens, tokens)
        meter.end(passage, "completed")
    assert all(row.marks for row in meter.finished())
    now_s += MARKS_FOR_S + 1
    rows = meter.finished()
    assert [row.request_id for row in rows] == [str(5 + place) for place in range(KEPT_FINISHED)]
    assert not any(row.marks for row in rows)
    assert all(row.generated_tokens for row in rows)


def test_a_day_of_quick_readings_fits_the_rings() -> None:
    """Rows are bytes, by the second at the finest, whatever the interval."""
    rings, lost = Rings(PERIOD_S), Missing("no engine runs")
    for number in range(20 * 400):
        rings.add(
            HistoryPoint(
                at_s=1_795_953_600.0 + PERIOD_S * number,
                generation_tokens_per_s=number / 3,
                prefill_tokens_per_s=lost,
                running=1,
                waiting=0,
            )
        )
    rings.closed.clear()
    assert len(rings.rows()) <= 400 + 40 + 7
    assert sum(tier.rows for tier in rings.tiers) * 250 < 2e6
