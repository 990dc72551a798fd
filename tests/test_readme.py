"""The README says what the program does: its commands, its keys, its two lines to start."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from a40console.config import RunsSettings, load_settings
from a40console.experiments.registry import designs
from a40console.model.command import COMMANDS
from a40console.model.experiment import PRESETS, Experiment, settle
from a40console.tui.keymap import printed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
OFFERS = [design.offer for design in designs().values()]
DOUBTERS = ("experiments", "service", "ledger")
"""Packages that doubt a run; what is doubted of reference rows is its own authors' word."""


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


def preset_cell(offer: Experiment) -> str:
    """What the README says of an experiment's presets."""
    if len(set(offer.presets.values())) == 1:
        return offer.presets["standard"]
    return " · ".join(f"`{preset}`: {offer.presets[preset]}" for preset in PRESETS)


def test_the_experiments_are_those_that_there_are() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?) \| (.*) \| (.*?) \|$", section("Experiments"), re.MULTILINE
    )
    told = [(name, question, presets) for name, question, presets, needs in rows]
    assert told == [(offer.name, offer.question, preset_cell(offer)) for offer in OFFERS]


def test_a_run_that_the_readme_shows_can_be_asked_for() -> None:
    shown = re.findall(r"a40console run (\w+)(.*)", section("Experiments"))
    asked = [(name, rest) for name, rest in shown if name not in {"cancel", "follow", "NAME"}]
    assert len(asked) >= 5
    known = {offer.name: offer for offer in OFFERS}
    for name, rest in asked:
        preset = re.search(r"--preset (\w+)", rest)
        settings = dict(re.findall(r"--set (\w+)=(\S+)", rest))
        assert settle(known[name], preset[1] if preset else "standard", settings), name


def test_every_doubt_of_a_run_is_explained() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| [^|]+ \| (stands|invalid[^|]*) \|$", README, re.MULTILINE
    )
    explained = [code for code, _ in rows]
    assert len(set(explained)) == len(explained)
    assert set(explained) == doubt_codes()


def test_the_settings_of_runs_are_the_defaults(tmp_path: Path) -> None:
    block = re.search(r"^\[runs\]\n(?:.+\n)+", README, re.MULTILINE)
    assert block is not None
    file = tmp_path / "config.toml"
    file.write_text(block[0])
    assert load_settings(file).runs == RunsSettings()


def section(title: str) -> str:
    """A section of the README, its subsections included."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def doubt_codes() -> set[str]:
    """The codes with which the program doubts a run.

    A code is what a `Doubt` is made with, and in a module that makes one also what stands first in
    a tuple of three or in a call of its own functions, has a hyphen, and is written like one.
    """
    trees = [
        ast.parse(path.read_text())
        for package in DOUBTERS
        for path in (ROOT / "a40console" / package).glob("*.py")
    ]
    constants = {
        target.id: node.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    codes = {code for tree in trees for code in codes_of(tree, constants)}
    assert len(codes) > 10
    return codes


def codes_of(tree: ast.Module, constants: Mapping[str, ast.expr]) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    made = [call for call in calls if getattr(call.func, "id", "") == "Doubt"]
    named = [word.value for call in made for word in call.keywords if word.arg == "code"]
    own = [call for call in calls if getattr(call.func, "id", "").startswith("_")]
    firsts = [call.args[0] for call in own if call.args]
    firsts += [
        node.elts[0] for node in nodes if isinstance(node, ast.Tuple) and len(node.elts) == 3
    ]
    for node in [*named, *firsts] if made else []:
        value = constants.get(node.id) if isinstance(node, ast.Name) else node
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            continue
        if node in named or re.fullmatch(r"[a-z]+(-[a-z]+)+", value.value):
            yield value.value
