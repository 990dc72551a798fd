"""On a real terminal: signals restore it, a stall stops nothing, a lost one ends the process."""

from __future__ import annotations

import signal

import pytest

from tests.tui.terminal_session import TerminalSession

pytestmark = pytest.mark.pty

RESTORED = (b"\x1b[?1049l", b"\x1b[?1003l", b"\x1b[?25h")
"""The main screen, no mouse reports, the cursor."""


def started(session: TerminalSession) -> None:
    session.read(15.0, until=b"SERVING")
    assert b"SERVING" in session.output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_restores_the_terminal(number: signal.Signals) -> None:
    with TerminalSession() as session:
        started(session)
        session.process.send_signal(number)
        assert session.ended(10.0) == 128 + number
        session.read(0.2)
        for sequence in RESTORED:
            assert sequence in session.output


def test_leaving_exits_with_0_and_restores_the_terminal() -> None:
    with TerminalSession() as session:
        started(session)
        session.press("q")
        session.read(5.0, until=b"Leave?")
        session.press("y")
        assert session.ended(10.0) == 0
        assert RESTORED[0] in session.output


def test_a_closed_terminal_ends_the_process() -> None:
    with TerminalSession() as session:
        started(session)
        session.hang_up()
        assert session.ended(10.0) == 128 + signal.SIGHUP


def test_a_closed_terminal_whose_hangup_is_ignored_ends_the_process_without_spinning() -> None:
    with TerminalSession("moving:8", ignore_hangup=True) as session:
        started(session)
        before = session.process.cpu_times()
        session.hang_up()
        assert session.ended(15.0) == 128 + signal.SIGHUP
        assert before.user < 20


def test_a_stalled_terminal_does_not_stop_the_loop() -> None:
    with TerminalSession("moving:32", environment={"PYTHONFAULTHANDLER": "1"}) as session:
        started(session)
        # Nobody reads for long enough to fill the pty and the driver's queue many times over.
        assert session.ended(15.0, reading=False) is None
        session.process.send_signal(signal.SIGTERM)
        assert session.ended(12.0, reading=False) == 128 + signal.SIGTERM


def test_a_terminal_that_reads_again_is_painted_whole() -> None:
    with TerminalSession("moving:32") as session:
        started(session)
        session.read(1.0)  # the whole first paint: later ones leave out a row that stays the same
        for _ in range(60):
            session.press("j" * 3 + "k" * 3)
            session.ended(0.1, reading=False)
        mark = len(session.output)
        session.read(5.0, until=b"COST")
        assert b"COST" in session.output[mark:]
        session.press("q")
        session.read(5.0, until=b"Leave?")
        assert b"Leave?" in session.output[mark:]


def test_without_mouse_the_terminal_keeps_its_own() -> None:
    with TerminalSession(mouse=False) as session:
        started(session)
        assert b"\x1b[?1003h" not in session.output


def test_no_color_sends_no_hue() -> None:
    with TerminalSession(environment={"NO_COLOR": "1"}) as session:
        started(session)
        session.read(1.0)
        hues = set()
        for part in bytes(session.output).split(b"38;2;")[1:]:
            red, green, blue = part.split(b"m")[0].split(b";")[:3]
            hues.add(len({red, green, blue}))
        assert hues <= {1}
