"""Row 50: over a slow link the console draws less often, is never far behind, and answers keys."""

from __future__ import annotations

import pytest

from tests.bench.on_terminal import QUESTION
from tests.tui import sequences
from tests.tui.served import CONSOLE, served
from tests.tui.slow_link import SlowLink

pytestmark = [pytest.mark.pty, pytest.mark.slow]

TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
QUICK = 2_000_000
SLOW = 3_000
"""Half of what 32 moving slots send each second."""

DELAY_S = 0.15


def test_a_link_that_carries_half_of_what_comes_shows_the_present_and_takes_keys() -> None:
    with (
        served("moving:32", **TERMINAL) as made,
        SlowLink(CONSOLE, made.environment, bytes_per_s=QUICK, delay_s=DELAY_S) as link,
    ):
        link.run(20, until=b"SERVING")
        link.run(5)  # the first paints are larger
        begun = len(link.output)
        link.run(5)
        assert len(link.output) - begun > 5 * 1.5 * SLOW, "it sends more than will be carried"
        link.bytes_per_s = SLOW
        link.lags_s.clear()
        begun = len(link.output)
        link.run(30, until=b"the link is slow")
        link.run(5)
        told = sequences.text(bytes(link.output[begun:])).decode()
        assert "the link is slow" in told
        assert ", every " in told
        assert len(link.lags_s) >= 4, "it goes on drawing"
        frame_s = (len(link.output) - begun) / len(link.lags_s) / SLOW
        assert max(link.lags_s) < 2 * frame_s + DELAY_S + 1, "at most one frame is on its way"
        link.press("2")
        assert link.run(8, until=b"Identity") < 2 * frame_s + 2


def test_a_link_that_is_slow_from_the_start_is_at_the_present_soon() -> None:
    with (
        served("moving:8", **TERMINAL) as made,
        SlowLink(CONSOLE, made.environment, bytes_per_s=5_000, delay_s=DELAY_S) as link,
    ):
        link.run(16)
        greeting = link.output.find(QUESTION)
        assert 0 <= greeting < 1_000, "it is asked before anything is drawn"
        first = link.output.find(QUESTION, greeting + 1)
        assert 0 < first < 45_000, "each screen is sent once"
        assert max(link.lags_s) < 9, "the first screen, and one frame"
        assert max(link.lags_s[-3:]) < 3


def test_a_terminal_that_answers_nothing_moves_within_five_seconds() -> None:
    with (
        served("moving:8", **TERMINAL) as made,
        SlowLink(
            CONSOLE, made.environment, bytes_per_s=QUICK, delay_s=DELAY_S, answers=False
        ) as link,
    ):
        link.run(20, until=b"SERVING")
        link.run(5)
        link.lags_s.clear()
        link.run(5)
        assert len(link.lags_s) >= 4, "a frame for every reading"
        assert max(link.lags_s) < 3


def test_a_quick_link_is_drawn_to_every_second() -> None:
    with (
        served("moving:8", **TERMINAL) as made,
        SlowLink(CONSOLE, made.environment, bytes_per_s=QUICK, delay_s=DELAY_S) as link,
    ):
        link.run(20, until=b"SERVING")
        link.run(2)
        link.lags_s.clear()
        link.run(5)
        assert len(link.lags_s) >= 4
        assert b"link is slow" not in sequences.text(bytes(link.output))
