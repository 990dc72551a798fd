"""On a real terminal: signals restore it, a stall stops nothing, a lost one ends the process."""

from __future__ import annotations

import signal

import pytest

from tests.tui import sequences
from tests.tui.terminal_session import TerminalSession

pytestmark = pytest.mark.pty

RESTORED = (b"\x1b[?1049l", b"\x1b[?1003l", b"\x1b[?25h")
"""The main screen, no mouse reports, the cursor."""


def started(session: TerminalSession) -> None:
    session.read(15.0, until=b"SERVING")
    assert b"SERVING" in session.output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
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
        for _ in range(150):  # more than all queues on the way take
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


PLAIN_TERM = {"COLORTERM": "", "LANG": "C.UTF-8", "LC_ALL": ""}


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, {"truecolor"}),
        ({"TERM": "xterm-256color"}, {"256"}),
        ({"TERM": "xterm"}, {"16"}),
        ({"TERM": "screen"}, {"16"}),
        ({"TERM": "vt100"}, set()),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, set()),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_only_colours_that_the_terminal_has_are_sent(
    environment: dict[str, str], sent: set[str]
) -> None:
    with TerminalSession(environment=PLAIN_TERM | environment) as session:
        started(session)
        for key in ("2", "X", "\x1b", "w"):
            session.press(key)
            session.read(0.3)
        assert sequences.colours(bytes(session.output)) - {"default"} == sent


@pytest.mark.parametrize(
    ("environment", "is_ascii"),
    [
        ({"TERM": "xterm", "LANG": "C"}, True),
        ({"TERM": "screen", "LANG": "C"}, True),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, True),
        ({"TERM": "vt100", "LANG": "C.UTF-8"}, True),
        ({"TERM": "xterm", "LANG": "C.UTF-8"}, False),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else "",
)
def test_a_terminal_without_utf_8_gets_ascii_alone(
    environment: dict[str, str], is_ascii: bool
) -> None:
    cleared = {"LC_ALL": "", "LC_CTYPE": "", "COLORTERM": ""}
    with TerminalSession(environment=cleared | environment) as session:
        started(session)
        for key in ("2", "?", "\x1b", "w"):
            session.press(key)
            session.read(0.3)
        output = bytes(session.output)
        assert output.isascii() is is_ascii
        # The state is a word and a sign, whatever the terminal makes of colours.
        assert (b"* SERVING" in sequences.text(output)) is is_ascii
        assert b"LIMIT" in sequences.text(output)
