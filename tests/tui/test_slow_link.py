"""Over a slow link the console draws less often, is never far behind, and answers keys."""

from __future__ import annotations

import pytest

from tests.tui import sequences
from tests.tui.served import CONSOLE, served
from tests.tui.slow_link import SlowLink

pytestmark = [pytest.mark.pty, pytest.mark.slow]

TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
RATE = 6_000
DELAY_S = 0.15


def test_six_kilobytes_a_second_and_150_ms() -> None:
    with (
        served("moving:32", **TERMINAL) as made,
        SlowLink(CONSOLE, made.environment, bytes_per_s=RATE, delay_s=DELAY_S) as link,
    ):
        link.run(20, until=b"SERVING")
        link.run(18)  # the first paints are larger, and the link is not known yet
        link.lags_s.clear()
        begun = len(link.output)
        link.run(9)
        assert link.lags_s, "it goes on drawing"
        frame_s = (len(link.output) - begun) / len(link.lags_s) / RATE
        assert max(link.lags_s) < 2 * frame_s + DELAY_S + 1, "at most one frame is on its way"
        told = sequences.text(bytes(link.output)).decode()
        assert "the link is slow" in told
        assert ", every " in told
        link.press("2")
        assert link.run(8, until=b"Identity") < 4


def test_a_quick_link_is_drawn_to_every_second() -> None:
    with (
        served("moving:8", **TERMINAL) as made,
        SlowLink(CONSOLE, made.environment, bytes_per_s=2_000_000, delay_s=DELAY_S) as link,
    ):
        link.run(20, until=b"SERVING")
        link.run(2)
        link.lags_s.clear()
        link.run(5)
        assert len(link.lags_s) >= 4
        assert b"link is slow" not in sequences.text(bytes(link.output))
