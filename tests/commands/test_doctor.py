"""`doctor` as an operator runs it: quick, aligned, and with an exit code for scripts."""

from __future__ import annotations

import json
import re

import pytest

from a40console.commands.terminal_checks import terminal_checks
from a40console.model.check import Check
from a40console.paths import Paths
from a40console.tui.abilities import examine
from tests.commands.console_process import Run, on_terminal


def test_it_is_aligned_and_says_that_nothing_blocks(console: Run, paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.config_file.write_text("[gateway]\nport = 0\n")
    done = console("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    groups = {"machine", "engines", "console", "terminal"}
    assert groups < {line for line in done.stdout.splitlines() if line and line[0] != " "}
    assert done.stdout.splitlines()[-1].startswith("Nothing ")
    columns = {
        found.start(1)
        for line in done.stdout.splitlines()
        if (found := re.match(r"\S.*?  +(ok|warn|MISSING|–)  ", line))
    }
    assert len(columns) == 1, "the marks stand below each other"


def test_what_blocks_is_named_with_its_line_and_exit_code(console: Run, paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.config_file.write_text('profile = "no-such-profile"\n[gateway]\nport = 0\n')
    done = console("doctor")
    assert done.returncode == 6
    assert "MISSING" in done.stdout
    assert "→ Name another as profile in config.toml" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 in the way of serving: profiles."
    as_json = console("doctor", "--json")
    assert as_json.returncode == 6
    answer = json.loads(as_json.stdout)
    assert answer["blocked"] is True
    states = {check["state"] for check in answer["checks"]}
    assert states <= {"ok", "warn", "missing", "unchecked"}


def test_on_a_terminal_it_is_coloured_and_asks_the_terminal(
    environment: dict[str, str], paths: Paths
) -> None:
    code, written = on_terminal({**environment, "LANG": "C.UTF-8"}, "doctor")
    assert "\x1b[32mok" in written
    assert "xterm-256color, 256 colours" in re.sub(r"\x1b\[[0-9;]*m", "", written)
    assert code in (0, 6)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", written).splitlines()
    assert all(len(line) <= 80 for line in lines)


def rows(environment: dict[str, str]) -> dict[str, Check]:
    checks = terminal_checks(environment, examine(environment, ask_tmux=lambda: ""), named=False)
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("environment", "drawn", "state"),
    [
        ({"TERM": "xterm", "LANG": "de_DE.UTF-8"}, "Unicode", "ok"),
        ({"TERM": "xterm"}, "Unicode", "ok"),
        ({"TERM": "xterm", "LANG": "C"}, "ASCII, because LANG is C", "warn"),
        (
            {"TERM": "linux", "LANG": "C.UTF-8"},
            "ASCII, which is all that this terminal takes",
            "ok",
        ),
    ],
)
def test_it_says_of_the_terminal_what_the_console_goes_by(
    environment: dict[str, str], drawn: str, state: str
) -> None:
    check = rows(environment)["characters"]
    assert (check.text, check.state) == (drawn, state)
    assert examine(environment).ascii is drawn.startswith("ASCII")


def test_what_a_terminal_lacks_is_told() -> None:
    deep = rows({"TERM": "xterm-256color", "COLORTERM": "truecolor"})["terminal"]
    assert deep.text == "xterm-256color, true colour"
    assert rows({"TERM": "dumb"})["terminal"].mend == "export TERM=xterm-256color"
    assert rows({"TERM": "xterm", "TMUX": "/tmp/tmux"})["tmux"].text == "this is one"
    far = {"TERM": "xterm", "PATH": "/nonexistent", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
    assert rows(far)["tmux"].state == "warn"


@pytest.mark.parametrize(
    ("text", "told", "state", "code"),
    [
        ("profile = \n", "not valid TOML", "missing", 6),
        ("[gateway]\nport = 99999\n", "gateway.port", "missing", 6),
        ("[gateway]\nport = 0\n[console]\nalarms = 'siren'\n", "console.alarms", "warn", 0),
    ],
)
def test_wrong_settings_are_a_row_of_its_own_and_stop_no_other(
    text: str, told: str, state: str, code: int, console: Run, paths: Paths
) -> None:
    paths.config.mkdir(parents=True)
    paths.config_file.write_text(text)
    done = console("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert told in checks["settings"]["text"]
    assert checks["settings"]["state"] == state
    assert str(paths.config_file) in checks["settings"]["mend"]
    assert {"GPU", "home", "gateway port"} < checks.keys()
    if state == "warn":
        assert (done.returncode, done.stderr) == (code, "")
    else:
        assert done.returncode == code
