"""The engine screen: what differs first, the start beside the usual, how earlier ones ended."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.control import EngineStart, StartPhase
from a40console.model.event import Finding
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp
from a40console.tui.ink import Line, width_of
from a40console.tui.keymap import resolve
from a40console.tui.panels.engine import engine_facts
from a40console.tui.panels.starts import phase_rows
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from a40console.tui.widgets.lines import Lines
from tests import make_snapshot as make
from tests.tui import fake_past
from tests.tui.driving import Driven, running, screen_text, until
from tests.tui.fake_service import FakeService
from tests.tui.fog import fogged

HOSTILE = "[bold]\x1b[2J\x07" + "evil " * 200


def read(snapshot: Snapshot) -> Reading:
    return Reading(
        snapshot=snapshot, link=Link("live"), age_s=0.0, unread=0, past=Past(), keymap=resolve({})
    )


def text(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in row) for row in lines)


def drawn(
    snapshot: Snapshot, width: int = 120, starts: tuple[EngineStart, ...] | None = None
) -> str:
    known = fake_past.starts() if starts is None else starts
    return text(engine_facts(read(snapshot), Size(width, 60), known))


def starting_start() -> EngineStart:
    """The present start, which nobody watched: only the record has its first phases."""
    serving = fake_past.starts()[0]
    return replace(
        serving,
        phases=(StartPhase(name="starting", seconds=6.1),),
        ready_after_s=Missing("it starts"),
        served_s=Missing("it starts"),
    )


async def opened(app: ConsoleApp, pilot: Driven) -> str:
    await pilot.press("2")
    await until(pilot, lambda: "how it ended" in screen_text(app))
    await pilot.pause()
    return app.screen.query_one("#facts", Lines).plain


async def test_what_runs_otherwise_than_asked_comes_first() -> None:
    async with running(FakeService()) as (app, pilot):
        said = await opened(app, pilot)
        assert said.lstrip(" ─").startswith("Asked and in force")
        assert said.index("max_num_batched_tokens") < said.index("This start")


async def test_a_start_nobody_watched_has_its_phases() -> None:
    async with running(FakeService()) as (app, pilot):
        said = await opened(app, pilot)
        assert re.search(r"● loading the weights +38\.4 s +1 m 1 s", said)
        assert re.search(r"until it served +1 m 17 s +2 m 50 s", said)
        assert "usual (1)" in said


async def test_earlier_starts_say_how_they_ended() -> None:
    async with running(FakeService(), size=(200, 50)) as (app, pilot):
        said = await opened(app, pilot)
        assert re.search(
            r"✖ 09:10:02 +qwen3-coder-30b +2 m 50 s +1 h 4[12] m +SIGKILL: out of memory", said
        )
        assert re.search(r"✖ 09:05:40 .* – +– +exit 1: max_model_len 400000", said)
        assert re.search(r"● 10:55:12 .*it runs", said)


async def test_a_service_that_does_not_tell_its_starts_is_named() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        service.go_down()
        await pilot.press("2")
        await until(pilot, lambda: "✖ No service answers" in screen_text(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (40, 12)])
async def test_it_fits(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: app.current_mode == "engine")
        await pilot.pause(0.1)
        assert app.screen.query_one("#hints", Lines).region.bottom == size[1]
        facts = app.screen.query_one("#facts", Lines)
        assert all(width_of(row) <= size[0] for row in facts.lines)


def test_a_start_under_way_comes_first_with_what_is_left() -> None:
    said = drawn(make.starting(), starts=(starting_start(), *fake_past.starts()[1:]))
    assert said.index("This start") < said.index("Asked and in force")
    assert re.search(r"● starting +6\.1 s +5\.8 s", said)
    assert re.search(r"◐ loading the weights +42\.0 s +1 m 1 s +≈ 35 s left", said)
    assert re.search(r"○ compiling +– +1 m 29 s", said)


def test_a_start_that_is_stuck_says_so_with_what_to_do() -> None:
    stuck = Finding(
        code="start-stalled",
        severity="warn",
        title="The start is stuck for 4 m: the download gets nothing",
        evidence="phase download for 6 m",
        since=make.at(240),
        remedy="Check the network.",
    )
    said = drawn(replace(make.starting(), findings=(stuck,)))
    assert "▲ The start is stuck for 4 m" in said
    assert "Check the network." in said


def test_the_usual_is_of_this_profile_alone() -> None:
    other = replace(fake_past.starts()[1], profile="kimi-linear-48b")
    rows = phase_rows(read(make.snapshot()), (fake_past.starts()[0], other))
    assert rows
    assert all(isinstance(row.usual_s, Missing) for row in rows)


def test_how_it_ended_leads_where_it_failed() -> None:
    said = drawn(make.failed())
    assert said.index("How it ended") < said.index("The last start")
    assert "Asked and in force" not in said
    assert "out of GPU memory" in said


def test_the_end_of_the_engine_before_stands_below_the_start_of_this_one() -> None:
    before = make.failed().engine.exit
    snapshot = make.snapshot()
    serving = replace(snapshot, engine=replace(snapshot.engine, exit=before))
    said = drawn(serving)
    assert said.index("This start") < said.index("How the engine before it ended")
    assert "How it ended" not in said


def test_phases_stand_in_the_order_in_which_they_happened() -> None:
    own, first, second = fake_past.starts()
    short = replace(second, phases=(StartPhase(name="load", seconds=30.0),), ready_after_s=40.0)
    whole = tuple(StartPhase(name=name, seconds=9.0) for name in ("download", "load", "capture"))
    long = replace(first, phases=whole, ready_after_s=30.0)
    short, long = (replace(one, profile=own.profile) for one in (short, long))
    starting = replace(make.starting().engine, profile=own.profile, phase="download")
    reading = read(replace(make.starting(), engine=starting))
    names = [row.name for row in phase_rows(reading, (short, long))]
    assert names == ["download", "load", "capture"]


def test_what_is_unknown_for_one_reason_is_said_once() -> None:
    said = drawn(make.failed())
    assert len(re.findall(r"– the engine has failed|– no engine runs", said)) <= 3


def test_the_command_line_keeps_flags_with_their_values() -> None:
    argv = ("vllm", "serve", "/models/a b", "--max-model-len", "262144", "--enforce-eager")
    said = drawn(make.snapshot(), starts=(replace(fake_past.starts()[0], argv=argv),))
    assert "vllm serve '/models/a b' --max-model-len 262144 --enforce-eager" in said


def test_a_simulated_start_is_called_so() -> None:
    simulated = replace(fake_past.starts()[0], simulated=True)
    assert "SIMULATED, it runs" in drawn(make.snapshot(), starts=(simulated,))


def test_without_a_record_there_is_no_command_line() -> None:
    assert "Command line" not in drawn(make.snapshot())


def test_a_start_that_an_earlier_service_began_is_no_failure() -> None:
    seen = replace(fake_past.starts()[0], ready_after_s=Missing("nobody watched"))
    assert re.search(r"● 10:55:12", drawn(make.snapshot(), starts=(seen,)))


def test_text_from_elsewhere_stays_text() -> None:
    evil = replace(fake_past.starts()[1], profile=HOSTILE, id="x")
    assert not isinstance(evil.end, Missing)
    evil = replace(evil, end=replace(evil.end, cause=HOSTILE))
    for width in (80, 120):
        said = drawn(make.snapshot(), width, (evil,))
        assert "[bold]" in said
        assert "\x1b" not in said
        assert "\x07" not in said


@settings(deadline=None, max_examples=60)
@given(chance=st.floats(0, 1), seed=st.integers(0, 10**6), width=st.integers(20, 220))
def test_any_figures_are_drawn_within_the_width(chance: float, seed: int, width: int) -> None:
    snapshot = fogged(make.snapshot(), chance, seed)
    starts = fogged(fake_past.starts(), chance, seed)
    lines = engine_facts(read(snapshot), Size(width, 60), starts)
    assert all(width_of(row) <= width for row in lines)
