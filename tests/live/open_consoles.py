"""A console in a tmux terminal: how it is opened, driven and read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from a40console.model.command import BY_ID
from a40console.tui.keymap import resolve
from tests.live.console import Console, console
from tests.live.terminal import Tmux
from tests.live.test_llamacpp import PROFILE

SETTINGS = """
profile = "tiny"
[gateway]
port = 0
[service]
interval_s = 0.25
"""
CONSOLE = (sys.executable, "-m", "a40console")
KEYS = resolve({})
_TMUX_KEYS = {"space": "Space", "enter": "Enter", "←": "Left", "→": "Right"}


@contextmanager
def two_profiles(model_file: Path) -> Iterator[Console]:
    """A home whose settings name a profile, and have another; nothing runs in it yet."""
    with console() as made:
        made.configure(SETTINGS)
        made.profile("tiny", PROFILE)
        made.profile("other", PROFILE)
        made.paths.models.mkdir(parents=True)
        (made.paths.models / model_file.name).symlink_to(model_file)
        yield made


def in_tmux(
    live: Console, words: tuple[str, ...] = CONSOLE, *, columns: int = 120, rows: int = 40
) -> Tmux:
    """A terminal as an operator has it: in colour."""
    environment = {k: v for k, v in live.environment.items() if k != "NO_COLOR"}
    return Tmux(words, environment, folder=live.home, columns=columns, rows=rows)


def open_console(terminal: Tmux) -> None:
    """Call the console from the shell, unless it is open."""
    if not terminal.in_alternate_screen:
        terminal.type(" ".join(CONSOLE) + "; echo left with $?")
        terminal.press("Enter")
        terminal.wait_for("SERVING", 60)


def serve_tiny(live: Console) -> None:
    """Whatever a test left behind: `tiny` serves afterwards."""
    engine = live.status()["engine"]
    if engine["state"] == "orphaned":
        live.succeed("engine", "clean")
    if engine["state"] != "serving":
        live.succeed("engine", "start", "tiny", timeout_s=60)
    elif engine["profile"] != "tiny":
        live.succeed("engine", "switch", "tiny", "--yes", timeout_s=60)


def press(tui: Tmux, command_id: str) -> None:
    """Press a command's key."""
    hint = KEYS.hint(command_id)
    tui.press(_TMUX_KEYS.get(hint, hint))


def confirm(tui: Tmux, command_id: str) -> None:
    """Say yes to a command's question."""
    tui.wait_for(BY_ID[command_id].confirm)
    tui.press("y")


def pick(tui: Tmux, name: str) -> None:
    """Choose an entry of a picker by the key before its name."""
    screen = tui.wait_for("escape cancel")
    entry = re.search(rf"(\w)  {re.escape(name)}\s", screen)
    assert entry is not None, screen
    tui.press(entry[1])


def close_dialog(tui: Tmux) -> None:
    """Close the dialog in front with escape."""
    tui.press("Escape")
    tui.wait_for(lambda screen: "escape " not in screen)


def recent(live: Console) -> set[str]:
    """Requests that the service says have finished."""
    return {row["request_id"] for row in live.status()["recent"]}


def is_whole(screen: str) -> bool:
    """Whether the three verdict lines stand at the top and the keys at the bottom."""
    lines = screen.splitlines()
    heads = [line.split(maxsplit=1)[:1] for line in lines[:3]]
    return heads == [["●"], ["LIMIT"], ["COST"]] and "q leave" in lines[-1]


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
