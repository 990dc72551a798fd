"""Which calls are refused to one who only looks: by the words, before anything is reached."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.cli import console
from a40console.commands.read_only import acts, guarded
from a40console.errors import RefusedError
from a40console.model.command import COMMANDS
from a40console.paths import Paths

LOOKS = [
    "status",
    "doctor",
    "profiles list",
    "profiles diff",
    "models list",
    "engine history",
    "engine logs --follow",
    "engine stop --help",
    "engine switch other --cost",
    "engine install --list",
    "run compaction --plan",
    "run sweep --url http://host:8000 --plan",
    "run --help",
    "run follow",
    "sessions show 7f3a",
    "serve -h",
]
ACTS = [
    "ask hello",
    "ask -- --help",
    "ask -- -h",
    "note -- --cost",
    "models delete -- --help",
    "engine stop --cost",
    "engine switch -- --cost",
    "engine install --list-all",
    "run compaction",
    "run cancel",
    "runs note last x",
    "engine uninstall --list",
    "engine abort 0 --yes",
    "sessions capture 7f3a",
    "links close host",
    "endpoint --start",
    "stop --engine",
]


@pytest.mark.parametrize("words", LOOKS)
def test_looking_is_allowed(words: str) -> None:
    assert not acts(words.split())


@pytest.mark.parametrize("words", ACTS)
def test_acting_is_not_whatever_it_is_said_with(words: str) -> None:
    assert acts(words.split())


def test_every_verb_of_the_engine_that_is_not_known_to_look_acts() -> None:
    engine = console.get_command(None, "engine")  # type: ignore[arg-type]
    acting = {verb for verb in engine.commands if acts(["engine", verb])}  # type: ignore[union-attr]
    assert set(engine.commands) - acting == {"history", "logs"}  # type: ignore[union-attr]


def test_what_acts_asks_the_service_and_is_never_a_matter_of_the_screen() -> None:
    """A key that is always available is not asked about: none of those may act."""
    assert [c.id for c in COMMANDS if c.acts and (c.available == "always" or c.local)] == []


def test_a_service_is_not_started_with_the_flag(paths: Paths) -> None:
    with pytest.raises(RefusedError, match="serve is forbidden here"):
        guarded(paths, ["serve"], flag=True)
    assert guarded(paths, ["serve"], flag=False) == replace(paths, forbidden="")
