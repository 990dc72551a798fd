"""Every key does what it says, on the console in a real terminal.

A real engine behind a real service; the terminal is tmux's. What a key did is read from
`status --json`, not from the screen it was pressed on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from a40console.model.command import BY_ID, COMMANDS
from tests.live.console import Console
from tests.live.key_effects import EFFECTS
from tests.live.open_consoles import (
    close_dialog,
    in_tmux,
    is_whole,
    open_console,
    pick,
    press,
    recent,
    serve_tiny,
    two_profiles,
)
from tests.live.terminal import Tmux

pytestmark = [
    pytest.mark.engine,
    pytest.mark.pty,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture(scope="module")
def live(model_file: Path) -> Iterator[Console]:
    """A console of its own for these tests."""
    with two_profiles(model_file) as made:
        yield made


@pytest.fixture(scope="module")
def terminal(live: Console) -> Iterator[Tmux]:
    """A shell, from which the console is called."""
    with in_tmux(live, ("sh",)) as made:
        yield made


@pytest.fixture
def tui(live: Console, terminal: Tmux) -> Tmux:
    """The console's overview in the shell's terminal, `tiny` serving."""
    open_console(terminal)
    terminal.press("Escape")
    serve_tiny(live)
    press(terminal, "view.overview")
    terminal.wait_for(lambda screen: "SERVING" in screen and "─ Speed" in screen)
    return terminal


def test_opening_the_console_starts_service_and_engine(live: Console, terminal: Tmux) -> None:
    assert live.run("status").returncode == 3
    open_console(terminal)
    status = live.status()
    assert (status["engine"]["state"], status["engine"]["profile"]) == ("serving", "tiny")
    for pid in (status["service"]["pid"], status["engine"]["pid"]):
        assert os.getsid(pid) != os.getsid(terminal.pane_pid)
    kinds = [json.loads(line)["kind"] for line in live.paths.events.read_text().splitlines()]
    assert "command.failed" not in kinds


@pytest.mark.parametrize("command_id", [command.id for command in COMMANDS if command.key])
def test_a_key_does_what_the_table_says(tui: Tmux, live: Console, command_id: str) -> None:
    EFFECTS[command_id](tui, live)


def test_the_palette_runs_a_command_by_its_name(tui: Tmux, live: Console) -> None:
    before = recent(live)
    tui.press("C-p")
    tui.wait_for("Search for commands")
    tui.type(BY_ID["request.test"].title)
    tui.wait_for(BY_ID["request.test"].help)
    tui.press("Enter")
    tui.wait_for("tokens per s", 40)
    live.wait_for(lambda: len(recent(live) - before) == 1, 10)
    close_dialog(tui)


def test_without_a_yes_nothing_happens(tui: Tmux, live: Console) -> None:
    before = live.status()
    for command_id, no in (
        ("engine.stop", "Escape"),
        ("engine.restart", "n"),
        ("engine.speculation", "Enter"),  # the button in focus is No
        ("engine.switch", "Escape"),
        ("console.quit", "n"),
    ):
        press(tui, command_id)
        if command_id == "engine.switch":
            pick(tui, "other")
        tui.wait_for("escape no")
        tui.press(no)
        screen = tui.wait_for(lambda screen: "escape " not in screen)
        assert "Under way" not in screen
    after = live.status()
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert after["events_last_id"] == before["events_last_id"]


def shows(sign: str) -> Callable[[str], bool]:
    """Whether a screen is whole and holds a pattern."""
    return lambda screen: re.search(sign, screen) is not None and is_whole(screen)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_every_screen_fits_and_gives_the_verdict(
    tui: Tmux, live: Console, columns: int, rows: int
) -> None:
    whole = (tui.columns, tui.rows)
    tui.resize(columns, rows)
    try:
        for view, sign in (
            ("view.engine", r"━ ?2 Engine ?━"),
            ("view.logs", "following"),
            ("view.events", r"━ ?4 Events ?━"),
            ("view.cost", r"━ ?5 Cost ?━"),
            ("view.overview", "TTFT"),
        ):
            press(tui, view)
            screen = tui.wait_for(shows(sign))
            lines = screen.splitlines()
            assert len(lines) == rows, screen
            assert max(map(len, lines)) <= columns, screen
    finally:
        tui.resize(*whole)


def test_sigterm_gives_the_terminal_back(tui: Tmux, live: Console) -> None:
    (process,) = psutil.Process(tui.pane_pid).children()
    process.terminate()
    tui.wait_for(f"left with {128 + signal.SIGTERM}")
    assert not tui.in_alternate_screen
    assert not tui.takes_the_mouse
    tui.type("echo typed $((6 * 7))")
    tui.press("Enter")
    tui.wait_for("typed 42")
