"""The command table is the one source of keys, palette, hints and help."""

from __future__ import annotations

import pytest

from a40console.model.command import BY_ID, COMMANDS
from a40console.tui import keymap
from a40console.tui.glossary import FIGURES
from a40console.tui.keymap import RESERVED, resolve
from a40console.tui.panels.texts import manual
from tests.bench.tui_cost import HELP


def test_ids_and_keys_are_unique() -> None:
    assert len(BY_ID) == len(COMMANDS)
    keys = [command.key for command in COMMANDS if command.key]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & RESERVED


def test_every_default_key_is_one_that_arrives_through_tmux() -> None:
    for command in COMMANDS:
        key = command.key
        named = key in {"space", "enter", "left", "right"} or "bracket" in key
        assert named or len(key) <= 1 or key.startswith(("f", "ctrl+", "question"))


def test_short_names_belong_to_commands_of_the_table() -> None:
    assert set(keymap.SHORT) <= set(BY_ID)


def test_every_key_has_a_binding_that_performs_its_command() -> None:
    bound = {binding.id: binding for binding in keymap.bindings()}
    for command in COMMANDS:
        if command.key:
            assert bound[command.id].action == f"app.command('{command.id}')"
            assert bound[command.id].tooltip == command.help


def test_the_help_is_known_by_its_first_line_to_what_measures_it() -> None:
    assert manual(resolve({}), 80)[0][0].text == HELP.decode()


def test_help_lists_every_command_with_its_key_and_every_figure() -> None:
    text = "\n".join("".join(s.text for s in entry) for entry in manual(resolve({}), 200))
    for command in COMMANDS:
        assert command.help in text
    for name, _ in FIGURES:
        assert name in text


def test_the_operators_key_replaces_the_default() -> None:
    keys = resolve({"engine.restart": "F5"})
    assert keys.moved == {"engine.restart": "f5"}
    assert keys.keys["engine.restart"] == "f5"
    assert keys.hint("engine.restart").lower() == "f5"
    assert not keys.problems


def test_a_command_without_a_key_can_be_given_one() -> None:
    assert resolve({"service.stop": "f9"}).keys["service.stop"] == "f9"


def test_a_taken_default_key_goes_to_the_operators_command_and_is_told() -> None:
    keys = resolve({"engine.restart": "X"})
    assert keys.keys["engine.restart"] == "X"
    assert "engine.stop" not in keys.keys
    assert keys.problems == ("engine.stop lost the key 'X' to your keys",)


def test_swapping_two_keys_is_no_clash() -> None:
    keys = resolve({"engine.restart": "X", "engine.stop": "R"})
    assert keys.keys["engine.restart"] == "X"
    assert keys.keys["engine.stop"] == "R"
    assert not keys.problems


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"engine.restrat": "f5"}, "engine.restrat is no command; did you mean engine.restart?"),
        ({"engine.stop": "tab"}, "engine.stop: the key 'tab' is not free"),
        ({"engine.stop": ""}, "engine.stop: the key '' is not free"),
        (
            {"engine.stop": "f5", "engine.restart": "f5"},
            "engine.restart: the key 'f5' is already given to engine.stop",
        ),
    ],
)
def test_what_cannot_be_used_is_told(wanted: dict[str, str], told: str) -> None:
    assert told in resolve(wanted).problems


def test_a_symbol_may_be_written_as_itself() -> None:
    assert resolve({"help.show": "?"}).keys["help.show"] == "question_mark"
    assert resolve({}).hint("help.show") == "?"
