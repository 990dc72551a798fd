"""`a40console` without a command: the console, with a service behind it, as the options say."""

from __future__ import annotations

import sys

import pytest

from a40console.commands.running import is_locked
from a40console.paths import Paths
from tests.commands.console_process import on_terminal, with_stub

WITH_A_STAND_IN = """
import os, sys, types

def run_console(paths, settings, problems, *, mouse, abilities):
    print(paths.home, settings.console.theme, mouse, abilities.depth, abilities.ascii)
    return 129

stand_in = types.ModuleType("a40console.tui.app")
stand_in.run_console = run_console
sys.modules["a40console.tui.app"] = stand_in
from {entry} import main
sys.exit(main())
"""


def command(entry: str) -> tuple[str, ...]:
    return (sys.executable, "-c", WITH_A_STAND_IN.replace("{entry}", entry))


COMMAND = command("tests.commands.console_with_stub")


@pytest.mark.pty
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "midnight True 256 False"),
        (("--color", "truecolor", "--no-mouse"), "midnight False truecolor False"),
        (("--color", "16"), "midnight True 16 False"),
        (("--color", "mono", "--ascii"), "midnight True mono True"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_console_is_opened_with_a_service_behind_it(
    options: tuple[str, ...], told: str, environment: dict[str, str], paths: Paths
) -> None:
    code, written = on_terminal(with_stub(environment), *options, command=COMMAND)
    assert code == 129, written
    assert written.splitlines()[-1] == f"{paths.home} {told}"
    assert is_locked(paths)


@pytest.mark.pty
def test_a_broken_settings_file_opens_nothing_where_no_service_runs(
    environment: dict[str, str], paths: Paths
) -> None:
    paths.config.mkdir()
    paths.config_file.write_text("thme = 1")
    code, written = on_terminal(environment, command=command("a40console.cli"))
    assert code == 2
    assert "thme" in written
    assert not is_locked(paths)
