"""What the meter says of requests: counts, times and marks, on a clock that the test turns."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from a40console.gateway.meter import KEPT_FINISHED, Meter
from a40console.model.request import TokenMark


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def meter(clock: Clock) -> Meter:
    return Meter(clock=clock, wall=lambda: datetime(2026, 11, 29, 14, 7, 31, 120_000, UTC))


def test_a_request_from_arrival_to_end() -> None:
    clock = Clock()
    counted = meter(clock)
    passage = counted.accept("chat", "a40-1")
    (row,) = counted.live()
    assert (row.received_at_s, row.first_token_at_s, row.generated_tokens) == (100.0, None, None)
    assert (row.method, row.marks) == ("apportioned", ())
    clock.now_s = 100.5
    counted.content(passage, 4)
    passage.progressed(100.5, 1)
    clock.now_s = 101.0
    counted.content(passage, 6)
    passage.progressed(101.0, 3)
    passage.finish_reason = "stop"
    counted.end(passage, "completed")
    counted.end(passage, "failed")
    (row,) = counted.finished()
    assert counted.live() == ()
    assert (row.first_token_at_s, row.last_token_at_s, row.ended_at_s) == (100.5, 101.0, 101.0)
    assert (row.generated_tokens, row.characters, row.method) == (3, 10, "usage")
    assert row.marks == (TokenMark(100.5, 1), TokenMark(101.0, 3))
    assert row.ended_at == "2026-11-29T14:07:31.120Z"
    assert row.finish_reason == "stop"
    counts = counted.counts()
    assert (counts.failed, counts.aborted) == (0, 0)


def test_marks_cover_ten_seconds_at_any_speed_in_bounded_memory() -> None:
    counted = meter(Clock())
    passage = counted.accept("chat", "1")
    for chunk in range(60_000):
        passage.progressed(chunk * 0.001, chunk + 1)
    marks = passage.row().marks
    assert len(marks) <= 256
    assert marks[-1] == TokenMark(59.999, 60_000)
    assert marks[0].at_s <= 49.999
    assert all(later.at_s > one.at_s for one, later in pairwise(marks))
    assert all(mark.tokens == round(mark.at_s * 1000) + 1 for mark in marks)


def test_a_total_is_exact_but_says_nothing_about_when() -> None:
    passage = meter(Clock()).accept("messages", "1")
    passage.totalled(27)
    passage.totalled(0)
    row = passage.row()
    assert (row.generated_tokens, row.method, row.marks) == (27, "usage", ())


def test_how_it_ended_is_named() -> None:
    counted = meter(Clock())
    for outcome in ("aborted", "failed"):
        passage = counted.accept("chat", outcome)
        passage.finish_reason = "stop"
        counted.end(passage, outcome)
    assert [row.finish_reason for row in counted.finished()] == ["aborted", "error"]


def test_finished_rows_are_bounded_and_the_oldest_go_first() -> None:
    counted = meter(Clock())
    for number in range(KEPT_FINISHED + 5):
        counted.end(counted.accept("chat", str(number)), "completed")
    rows = counted.finished()
    assert (len(rows), rows[0].request_id) == (KEPT_FINISHED, "5")
