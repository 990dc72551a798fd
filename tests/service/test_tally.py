"""Sums outlive engines and services: no counter that begins again loses or invents a token."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.service.tally import HOUR_S, MINUTE_S, Counters, Reading, Tally, TallyBook

HOUR = 1_795_953_600.0
PRICE = Decimal("0.36")  # a hundredth of a cent a second


def reading(
    at_s: float, tokens: float | None, *, run: str | None = "run-1", **others: object
) -> Reading:
    gateway = {name: others.pop(name) for name in ("finished", "failed") if name in others}
    made = Reading(
        counters=Counters(at_s=HOUR + at_s, run=run, generated_tokens=tokens, **gateway),  # type: ignore[arg-type]
        counters_reset_s=None,
        run_age_s=at_s,
        elapsed_s=1.0,
        usd_per_hour=PRICE,
        busy=True,
    )
    return replace(made, **others)  # type: ignore[arg-type]


def none_yet() -> Reading:
    """A service's first reading, before any engine."""
    return reading(0, None, run=None, elapsed_s=None, usd_per_hour=None, busy=False)


def total(book: TallyBook, step_s: int = HOUR_S) -> Tally:
    found = Tally()
    for (step, _), tally in book.tallies.items():
        if step == step_s:
            found = found.plus(tally)
    return found


def test_tokens_are_differences_of_the_engines_counter() -> None:
    book = TallyBook()
    book.take(none_yet())
    for second, tokens in enumerate([None, 0.0, 10.0, 10.0, 250.0], start=1):
        book.take(reading(second, tokens))
    assert total(book).generated_tokens == 250
    assert total(book).busy_s == 5.0
    assert total(book).usd == Decimal("0.0005")
    assert total(book, MINUTE_S) == total(book)


def test_a_span_within_the_last_hour_begins_with_its_second() -> None:
    book = TallyBook()
    book.take(none_yet())
    for second in range(1, 100):
        book.take(reading(second, 50.0 if second < 30 else 80.0, finished=int(second >= 30)))
    told = book.span(HOUR + 25.4, HOUR + 99)
    assert (told.begin_s, told.dollars_exact) == (HOUR + 25, True)
    assert (told.tally.generated_tokens, told.tally.finished) == (30, 1)
    assert book.span(HOUR + 94, HOUR + 99).tally.usd == Decimal("0.0005"), (
        "of 5 s, not of the minute"
    )


def test_a_span_before_the_service_begins_with_its_minute_and_costs_its_own_seconds() -> None:
    book = TallyBook()
    whole = Tally(generated_tokens=7, usd=Decimal("0.006"), priced_s=60.0)
    partly = Tally(usd=Decimal("0.001"), priced_s=10.0)
    book.restore({(MINUTE_S, int(HOUR)): whole, (MINUTE_S, int(HOUR) - 60): partly}, None)
    for second in range(61, 71):
        book.take(reading(second, 0.0))
    told = book.span(HOUR + 50, HOUR + 70)
    assert (told.begin_s, told.tally.generated_tokens, told.dollars_exact) == (HOUR, 7, True)
    assert float(told.tally.usd) == pytest.approx(0.001 + 0.001)
    assert not book.span(HOUR - 20, HOUR + 70).dollars_exact, "when in its minute is not known"


def test_seconds_are_forgotten_after_an_hour() -> None:
    book = TallyBook()
    for second in range(2 * HOUR_S):
        book.take(reading(second, float(second)))
    since_s, until_s = HOUR + HOUR_S + 10.0, HOUR + 2 * HOUR_S - 1
    told = book.span(since_s, until_s)
    assert (told.begin_s, told.tally.generated_tokens) == (since_s, HOUR_S - 10)
    assert len(book._seconds) <= HOUR_S + MINUTE_S


def test_a_tick_is_busy_if_requests_run_at_it_or_tokens_came_before_it() -> None:
    book = TallyBook()
    book.take(none_yet())
    for second, tokens in enumerate([0.0, 0.0, 40.0, *[40.0] * 7, 60.0, 60.0], start=1):
        book.take(reading(second, tokens, busy=second == 2))
    assert total(book).busy_s == 3.0


def test_another_engine_begins_at_nothing() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 500.0))
    book.take(reading(2, 800.0))
    book.take(reading(3, None, run=None))
    book.take(reading(4, None, run="run-2", run_age_s=0.5))
    book.take(reading(5, 30.0, run="run-2", run_age_s=1.5))
    book.take(reading(6, 40.0, run="run-2", run_age_s=2.5))
    assert total(book).generated_tokens == 840


def test_an_engine_found_running_is_counted_from_then_on() -> None:
    book = TallyBook()
    book.take(reading(1, 90_000.0, run_age_s=7200.0, elapsed_s=None))
    book.take(reading(2, 90_010.0, run_age_s=7201.0))
    assert total(book).generated_tokens == 10
    other = TallyBook()
    other.take(none_yet())
    other.take(reading(1, 90_000.0, run_age_s=7200.0))
    assert total(other).generated_tokens == 0, "what it generated before is not this minute's"
    assert total(other).earlier_tokens == 90_000
    late = TallyBook()
    late.take(reading(1, None, run_age_s=7200.0, elapsed_s=None))
    late.take(reading(2, 90_000.0, run_age_s=7201.0))
    late.take(reading(3, 90_010.0, run_age_s=7202.0))
    assert (total(late).generated_tokens, total(late).earlier_tokens) == (10, 90_000)


def test_a_counter_that_begins_again_under_one_start() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 500.0))
    book.take(reading(2, 20.0, counters_reset_s=0.4))
    book.take(reading(3, 30.0, counters_reset_s=1.4))
    assert total(book).generated_tokens == 530


def test_another_source_of_the_same_engine_that_is_a_little_behind() -> None:
    book = TallyBook()
    book.take(none_yet())
    for second, tokens in enumerate([500.0, 480.0, 490.0, None, 505.0], start=1):
        book.take(reading(second, tokens))
    assert total(book).generated_tokens == 505


def test_a_service_that_comes_back_counts_what_it_missed() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 100.0, finished=3))
    again = TallyBook()
    again.restore(book.tallies, book.last)
    again.take(reading(90, None, run=None, elapsed_s=None, usd_per_hour=None, busy=False))
    again.take(reading(91, 450.0, run_age_s=91.0, finished=1))
    assert total(again).generated_tokens == 450
    assert total(again).finished == 4
    assert total(again).priced_s == 1.0 + 90.0, "the engine was paid for meanwhile"
    minutes = {at_s: tally for (step_s, at_s), tally in again.tallies.items() if step_s == 60}
    assert minutes[int(HOUR) + 60].priced_s == 31.0
    assert minutes[int(HOUR)].generated_tokens == 100 + 229, "tokens lie where they were paid for"
    assert minutes[int(HOUR) + 60].generated_tokens == 121
    assert total(again).spread_tokens == 350, "and are known to be laid evenly"


def test_tokens_of_a_long_absence_lie_in_its_hours() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 100.0))
    again = TallyBook()
    again.restore(book.tallies, book.last)
    hours = 10
    back_s = hours * HOUR_S + 1.0
    again.take(reading(back_s, None, run_age_s=back_s, elapsed_s=None))
    again.take(reading(back_s + 5, 36_100.0, run_age_s=back_s + 5))
    first, *between, last = (again.hour(int(HOUR) + HOUR_S * n) or Tally() for n in range(11))
    assert {tally.generated_tokens for tally in between} <= {3599, 3600}
    assert last.generated_tokens <= 10
    assert first.priced_tokens == first.generated_tokens
    assert total(again).generated_tokens == 36_100


def test_a_counter_that_could_not_be_read_for_a_while() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 100.0))
    for second in range(2, 121):
        book.take(reading(second, None))
    book.take(reading(121, 220.0))
    minutes = [book.tallies[MINUTE_S, int(HOUR) + begin_s].generated_tokens for begin_s in (0, 60)]
    assert minutes == [159, 60]


def test_a_simulated_engine_adds_nothing() -> None:
    book = TallyBook()
    book.take(none_yet())
    book.take(reading(1, 100.0, finished=1))
    for second in range(2, 10):
        tokens = 1000.0 * second
        book.take(reading(second, tokens, run="sim", finished=second, simulated=True))
    book.take(reading(10, 30.0, run="run-2", run_age_s=0.5, finished=10))
    told = total(book)
    assert (told.generated_tokens, told.earlier_tokens, told.finished) == (130, 0, 2)
    assert (told.observed_s, told.busy_s) == (10.0, 2.0)
    assert told.usd == Decimal("0.0002")


def test_what_could_not_be_read_at_first_is_added_later() -> None:
    book, later = TallyBook(), TallyBook()
    book.take(none_yet())
    book.take(reading(1, 100.0))
    later.take(none_yet())
    later.take(reading(2, 7.0, run="run-2", run_age_s=0.5))
    later.restore(book.tallies, book.last)
    assert total(later).generated_tokens == 107


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    book = TallyBook()
    book.take(none_yet())
    for second, tokens in [(100, 50.0), (101, 60.0), (40, 70.0), (41, 80.0)]:
        book.take(reading(second, tokens, run_age_s=5.0))
    assert total(book).generated_tokens == 80
    assert total(book).observed_s == 4.0
    assert book.since(HOUR, HOUR + 42).generated_tokens == 80


def test_since_an_hour() -> None:
    book = TallyBook()
    book.take(none_yet())
    for hour in range(5):
        book.take(reading(hour * 3600, 100.0 * hour, run_age_s=5.0))
        book.take(reading(hour * 3600 + 1, 100.0 * (hour + 1), run_age_s=5.0))
    assert book.since(HOUR + 2 * HOUR_S, HOUR + 4 * HOUR_S + 2).generated_tokens == 300
    book.take(reading(4 * 3600 + 2, 1000.0))
    assert book.since(HOUR + 2 * HOUR_S, HOUR + 4 * HOUR_S + 3).generated_tokens == 800
    span = book.span(HOUR + 2 * HOUR_S + 30, HOUR + 4 * HOUR_S + 3)
    assert span.begin_s == HOUR + 2 * HOUR_S
    assert span.tally.generated_tokens == 800


def test_tallies_are_bounded() -> None:
    book = TallyBook()
    book.take(none_yet())
    for minute in range(40 * 60):
        book.take(reading(60 * minute, float(minute), run_age_s=1.0))
    assert len(book.tallies) < 25 * 60 + 400 * 24 + 2
    text = total(book).text()
    assert Tally.parse(text) == total(book)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("grow"), st.integers(0, 1000)),
            st.tuples(st.just("restart"), st.integers(0, 50)),
            st.tuples(st.just("silent"), st.just(0)),
            st.tuples(st.just("service"), st.integers(0, 1000)),
        ),
        max_size=40,
    )
)
def test_every_token_counts_once(steps: list[tuple[str, int]]) -> None:
    book = TallyBook()
    book.take(none_yet())
    truth, counter, run, age_s = 0, 0, 1, 0.0
    for second, (what, tokens) in enumerate(steps, start=1):
        age_s += 1.0
        if what == "restart":
            run, counter, age_s = run + 1, 0, 0.0
        if what == "service":
            before, book = book, TallyBook()
            book.restore(before.tallies, before.last)
        if what != "silent":
            counter, truth = counter + tokens, truth + tokens
        book.take(
            reading(
                second,
                None if what == "silent" else float(counter),
                run=f"run-{run}",
                run_age_s=age_s,
                elapsed_s=None if what == "service" else 1.0,
            )
        )
    if steps and steps[-1][0] != "silent":
        assert total(book).generated_tokens == truth
