"""A command that cannot run says why, from the state of the engine and the service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.command import BY_ID, COMMANDS
from a40console.model.engine import EngineState
from a40console.model.snapshot import Snapshot
from a40console.tui.availability import NAMES, why_not
from a40console.tui.keymap import resolve
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make


def reason(command_id: str, snapshot: Snapshot, link: Link | None = None) -> str | None:
    reading = Reading(
        snapshot=snapshot,
        link=link or Link("live"),
        age_s=0.0,
        unread=0,
        past=Past(),
        keymap=resolve({}),
    )
    return why_not(BY_ID[command_id], reading)


def in_state(state: EngineState) -> Snapshot:
    return replace(make.snapshot(), engine=make.engine(state=state))


def test_every_state_has_a_name() -> None:
    assert set(NAMES) == set(EngineState)


@pytest.mark.parametrize("state", EngineState)
def test_an_engine_is_started_only_where_none_is(state: EngineState) -> None:
    possible = state in {EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED}
    assert (reason("engine.start", in_state(state)) is None) == possible


@pytest.mark.parametrize("state", EngineState)
def test_an_engine_is_stopped_only_where_one_lives(state: EngineState) -> None:
    dead = {EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED, EngineState.ORPHANED}
    assert (reason("engine.stop", in_state(state)) is None) == (state not in dead)


def test_a_test_request_needs_an_engine_that_serves() -> None:
    assert reason("request.test", in_state(EngineState.SERVING)) is None
    assert reason("request.test", make.starting()) == "the engine is starting"


def test_without_a_service_only_the_consoles_own_commands_run() -> None:
    for command in COMMANDS:
        told = reason(command.id, make.snapshot(), Link("lost"))
        assert (told is None) == (command.available == "always"), command.id


def read_only(base: Snapshot) -> Snapshot:
    return replace(base, service=replace(base.service, read_only=True))


def test_a_service_that_only_watches_refuses_what_acts() -> None:
    watching = read_only(make.snapshot(engine=make.engine(kind="foreign")))
    assert reason("engine.stop", watching) == (
        "this console only watches an engine that is not its own"
    )
    assert reason("client.env", watching) is None
    assert reason("digest.show", watching) is None


def test_a_service_that_cannot_write_still_stops_its_own_engine() -> None:
    assert reason("engine.stop", read_only(make.snapshot())) is None
    assert reason("engine.clean", read_only(make.orphaned())) is None


def test_speculation_that_cannot_be_turned_says_why() -> None:
    fixed = make.snapshot(
        speculation=make.speculation(control="none", locked_reason="the model has no draft")
    )
    assert reason("engine.speculation", fixed) == "the model has no draft"
    assert reason("engine.speculation", make.snapshot()) is None
