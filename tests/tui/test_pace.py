"""Frames follow each other as the link takes them, never faster, and at once where it is quick."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.tui.pace import LONGEST_REST_S, SILENT_S, Pace


class Link:
    """A terminal that takes so long for a frame, at a snapshot each second."""

    def __init__(self, *, latency_s: float, frame_s: float, answers: bool = True) -> None:
        self.now_s = 0.0
        self.pace = Pace(lambda: self.now_s)
        self._latency_s = latency_s
        self._frame_s = frame_s
        self._answers = answers
        self._arrives_s: float | None = None
        self.drawn_s: list[float] = []
        self.on_its_way: list[int] = []
        """Frames under way at each draw, this one counted."""

    def run(self, seconds: int, *, first_frame_s: float = 0.05) -> None:
        frame_s = first_frame_s
        for second in range(seconds):
            self._let_arrive(second)
            self.now_s = float(second)
            if self.pace.may_draw():
                self.on_its_way.append(1 + (self._arrives_s is not None))
                self.pace.drawn(1.0)
                self.drawn_s.append(self.now_s)
                if self.pace.asks:
                    self.pace.asked()
                    self._arrives_s = self.now_s + self._latency_s + frame_s
                frame_s = self._frame_s

    def _let_arrive(self, until_s: float) -> None:
        if self._answers and self._arrives_s is not None and self._arrives_s <= until_s:
            self.now_s = self._arrives_s
            self._arrives_s = None
            self.pace.answered()

    @property
    def gaps(self) -> Iterable[float]:
        return [b - a for a, b in zip(self.drawn_s, self.drawn_s[1:], strict=False)]


def test_a_quick_link_is_drawn_to_with_every_snapshot() -> None:
    link = Link(latency_s=0.15, frame_s=0.05)
    link.run(30)
    assert len(link.drawn_s) == 30
    assert link.pace.every_s is None


def test_a_slow_link_gets_a_frame_when_the_last_has_arrived_and_a_rest_for_keys() -> None:
    link = Link(latency_s=0.15, frame_s=1.3)
    link.run(60)
    assert max(link.on_its_way) == 1
    assert all(gap >= 2 for gap in link.gaps if gap > 1)
    assert link.pace.every_s == pytest.approx(3, abs=0.2)


def test_a_link_that_recovers_is_drawn_to_as_before_and_it_is_told() -> None:
    link = Link(latency_s=0.15, frame_s=1.3)
    link.run(30)
    assert link.pace.slow
    link._frame_s = 0.05
    start = link.now_s
    while link.now_s < start + 20:
        link._let_arrive(link.now_s + 1)
        link.now_s = float(int(link.now_s) + 1)
        if link.pace.may_draw():
            link.pace.drawn(1.0)
            link.pace.asked()
            link._arrives_s = link.now_s + 0.2
    assert link.pace.every_s is None


def test_a_terminal_that_never_answers_is_drawn_to_all_the_same() -> None:
    link = Link(latency_s=0.0, frame_s=0.0, answers=False)
    link.run(30)
    assert link.drawn_s == [0, 3, 8, *range(13, 30)], "it is waited for: it may answer late"
    assert not link.pace.slow


def test_a_terminal_that_does_not_answer_the_greeting_moves_after_three_seconds() -> None:
    link = Link(latency_s=0.0, frame_s=0.0, answers=False)
    link.pace.greeted()
    link.run(30)
    assert link.drawn_s == [0, 3, *range(4, 30)]
    assert not link.pace.slow


@given(latency_s=st.floats(0.0, 0.9), first_frame_s=st.floats(0.0, 8.0))
def test_a_link_that_answered_the_greeting_never_has_two_frames_on_its_way(
    latency_s: float, first_frame_s: float
) -> None:
    link = Link(latency_s=latency_s, frame_s=1.3)
    link.pace.greeted()
    link.pace.answered()
    link.run(40, first_frame_s=first_frame_s)
    assert max(link.on_its_way) == 1


def test_a_greeting_that_is_answered_late_ends_the_flood() -> None:
    link = Link(latency_s=0.0, frame_s=0.0, answers=False)
    link.pace.greeted()
    link.run(7)
    assert link.pace.may_draw(), "it was taken for mute"
    link.pace.answered()
    assert not link.pace.may_draw(), "the first frame's answer is waited for"
    link.pace.answered()
    link.now_s += LONGEST_REST_S
    assert link.pace.may_draw()


def test_a_link_that_is_slow_from_the_first_frame_on_gets_two_frames_at_the_most_ahead() -> None:
    link = Link(latency_s=0.15, frame_s=1.3)
    link.run(40, first_frame_s=8.0)
    assert [at_s for at_s in link.drawn_s if at_s < 8] == [0, 3]
    assert max(link.on_its_way[2:]) <= 2


def test_a_terminal_that_stops_answering_is_waited_for_and_not_for_ever() -> None:
    link = Link(latency_s=0.1, frame_s=0.1)
    link.run(5)
    link._answers = False
    link.drawn_s.clear()
    begun_s = link.now_s
    while not link.drawn_s:
        link.now_s += 1
        if link.pace.may_draw():
            if link.pace.asks:
                link.pace.asked()
            link.drawn_s.append(link.now_s)
            if link.now_s - begun_s < SILENT_S:
                link.drawn_s.clear()
    assert SILENT_S < link.drawn_s[0] - begun_s < SILENT_S + 3


def test_a_link_that_stood_still_is_drawn_to_soon_after_it_moves_again() -> None:
    link = Link(latency_s=0.1, frame_s=0.1)
    link.run(5)
    link.now_s += 600
    link.pace.answered()
    link.now_s += LONGEST_REST_S
    assert link.pace.may_draw()
    assert not link.pace.slow


def test_a_jammed_driver_is_given_nothing() -> None:
    assert not Pace().may_draw(jammed=True)


def test_snapshots_that_come_late_are_no_slow_link() -> None:
    link = Link(latency_s=0.1, frame_s=0.0)
    for now_s in range(0, 60, 5):
        link.now_s = float(now_s)
        assert link.pace.may_draw()
        link.pace.drawn(1.0)
        link.pace.asked()
        link.now_s += 0.1
        link.pace.answered()
    assert link.pace.every_s is None
