"""Empty options and arguments: refused with the usage, every one that takes text."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import shell_complete

from a40console import cli
from a40console.commands.filled import Filled
from a40console.errors import Exit
from a40console.paths import Paths
from tests.commands.test_entry import COMMANDS

EMPTY = [
    *(("engine", "install", "--version", ""), ("engine", "install", "--into", "")),
    *(
        ("engine", "uninstall", ""),
        ("engine", "logs", "--grep", ""),
        ("engine", "logs", "--start="),
    ),
    *(("engine", "start", ""), ("engine", "switch", ""), ("engine", "speculation", "")),
    *(("serve", "--profile", ""), ("serve", "--host", " "), ("demo", "--screenshots", "")),
    *(("attach", ""), ("attach", "http://127.0.0.1:1", "--api-key-file", "")),
    *(("events", "--since", ""), ("events", "--kind", "\t"), ("digest", "--since=")),
    *(("history", "--since", ""), ("cost", "--since", ""), ("profiles", "show", "")),
    *(("profiles", "diff", ""), ("profiles", "fit", ""), ("engine", "abort", "")),
    *(("engine", "load", ""), ("engine", "unload", " ")),
    *(("profiles", "check", ""), ("models", "fetch", ""), ("models", "delete", " ")),
    *(("ask", ""), ("note", ""), ("wait", "")),
    *(("sessions", "show", ""), ("sessions", "capture", ""), ("links", "close", "")),
    *(("run", "cancel", ""), ("run", "follow", ""), ("runs", "list", "--experiment", "")),
    *(("runs", "show", ""), ("runs", "compare", "", ""), ("runs", "note", "", "")),
    *(("runs", "invalidate", "", ""), ("runs", "export", ""), ("runs", "export", "-o", "")),
    *(("runs", "import", ""), ("runs", "hypotheses", "add", "")),
    ("runs", "hypotheses", "conclude", "--run", ""),
    ("runs", "hypotheses", "conclude", "--why", ""),
    *(("runs", "pull", ""), ("runs", "pull", "--ssh", ""), ("runs", "pull", "--there", "")),
]


@pytest.mark.parametrize("arguments", EMPTY, ids=" ".join)
def test_an_empty_text_is_refused_with_the_usage(
    arguments: tuple[str, ...],
    paths: Paths,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("A40CONSOLE_HOME", str(paths.home))
    assert cli._run(arguments) == Exit.USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"Usage: a40console {arguments[0]}")
    assert "Invalid value for" in said
    assert not paths.state.exists(), "refused before anything was done"


def test_every_text_of_the_command_line_is_among_those() -> None:
    tried = {" ".join(word for word in words if word.strip()) for words in EMPTY}
    texts = set()

    def collect(command: click.Command, name: str) -> None:
        for inner, below in getattr(command, "commands", {}).items():
            collect(below, f"{name} {inner}".strip())
        for param in command.params:
            if isinstance(param.type, Filled):
                option = param.opts[0] if isinstance(param, click.Option) else ""
                texts.add(f"{name} {option}".strip())

    context = click.Context(cli.console)
    for name in COMMANDS:
        command = cli.console.get_command(context, name)
        assert command is not None
        collect(command, name)
    known = {words.replace(" http://127.0.0.1:1", "").rstrip("=") for words in tried}
    assert texts == known - {"wait"}


def test_a_shell_completes_folders_where_an_option_takes_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", "a40console demo --screenshots ")
    monkeypatch.setenv("COMP_CWORD", "3")
    asked = ("a40console", "_A40CONSOLE_COMPLETE", "bash_complete")
    assert shell_complete(cli.console, {}, *asked) == 0
    assert capsys.readouterr().out.splitlines() == ["dir,"]
