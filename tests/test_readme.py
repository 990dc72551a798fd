"""The README says what the program does: its commands, its keys, its two lines to start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from a40console.model.command import COMMANDS
from a40console.tui.keymap import printed

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def key_table() -> str:
    """The key table, as the README must hold it."""
    rows = [
        f"| `{printed(command.key)}` | {command.title} | `{command.id}` | {command.help} |"
        for command in COMMANDS
        if command.key
    ]
    return "\n".join(["| key | | command | |", "|---|---|---|---|", *rows])


def test_the_key_table_is_the_command_table() -> None:
    assert key_table() in README


def test_every_command_of_the_command_line_is_there() -> None:
    listing = subprocess.run(
        [sys.executable, "-m", "a40console", "--help"], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^  ([a-z]+)  ", listing.split("Commands:")[1], re.MULTILINE)
    assert len(names) >= 10
    for name in names:
        assert f"a40console {name}" in README or f"`{name}`" in README, name


def test_both_commands_are_single_lines_that_make_their_own_environment() -> None:
    for name in ("run", "test"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.*?)```", README, re.DOTALL)
        assert block is not None
        assert block[1].count("\n") == 1
        assert block[1].startswith("python3 -m venv ")
