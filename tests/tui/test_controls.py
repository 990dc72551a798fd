"""The commands that steer the engine, in the console: what they ask, name and send."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.control import Trouble
from a40console.model.engine import EngineState
from a40console.model.snapshot import Snapshot
from a40console.tui.losses import losses
from a40console.tui.screens.dialog import ConfirmDialog, PickDialog
from a40console.tui.screens.slot import SlotDialog
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, toasts, until
from tests.tui.fake_service import FakeService
from tests.tui.test_availability import reason

PAUSED = "admission is paused by alice@pod on pts/3, console"


def two_slots() -> Snapshot:
    slots = tuple(
        make.slot(slot=number, request_id=f"req-{number}", generated_tokens=800 + number)
        for number in range(2)
    )
    return make.snapshot(slots=slots)


def gated(why: str | None) -> Snapshot:
    snapshot = make.snapshot()
    return replace(snapshot, requests=replace(snapshot.requests, gate=why))


async def test_the_request_under_the_cursor_is_named_and_aborted() -> None:
    service = FakeService(two_slots())
    async with running(service) as (app, pilot):
        await pilot.press("down", "x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.pause()
        said = screen_text(app)
        assert "Slot 1: req-1" in said
        assert "801 generated" in said
        assert "Its client gets no more of its answer" in said
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert service.commands == []
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("request.abort", {"request": "req-1"})])


async def test_the_page_of_a_request_aborts_it_too() -> None:
    service = FakeService(two_slots())
    async with running(service) as (app, pilot):
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, SlotDialog))
        await pilot.pause()
        assert "x abort" in screen_text(app)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.pause()
        assert "Slot 1: req-1" in screen_text(app)


async def test_the_page_offers_no_abort_that_the_engine_refuses() -> None:
    snapshot = two_slots()
    controls = {"abort": "llama.cpp's server ends no request"}
    service = FakeService(replace(snapshot, engine=replace(snapshot.engine, controls=controls)))
    async with running(service) as (app, pilot):
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, SlotDialog))
        await pilot.pause()
        assert "x abort" not in screen_text(app)
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, SlotDialog)


async def test_away_from_the_table_the_request_is_chosen_from_a_list() -> None:
    service = FakeService(two_slots())
    async with running(service) as (app, pilot):
        await pilot.press("5")
        await pilot.pause()
        app.action_command("request.abort")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("request.abort", {"request": "req-1"})])


async def test_before_the_engine_sleeps_it_is_said_what_is_lost() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        app.action_command("engine.sleep")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await pilot.pause()
        assert "it may wake to gibberish" in screen_text(app)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.pause()
        said = screen_text(app)
        assert "Put it to sleep? Nobody is served until it is woken" in said
        assert "What still runs after the drain is cut" in said
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("engine.sleep", {"level": "1"})])


def test_what_a_reset_loses_is_counted_where_it_is_known() -> None:
    snapshot = make.snapshot()
    known = replace(snapshot, kv_cache=replace(snapshot.kv_cache, reusable_tokens=123_456))
    assert losses("cache.reset", known)[0] == "123,456 tokens that could be used again are lost."
    assert losses("engine.restart", known) == []


async def test_a_cache_is_reset_only_after_what_is_lost_was_named() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        app.action_command("cache.reset")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.pause()
        said = screen_text(app)
        assert "How many tokens are lost is not known: the engine does not tell" in said
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("cache.reset", {})])


async def test_who_paused_admission_stands_on_the_screen() -> None:
    async with running(FakeService(gated(PAUSED)), size=(200, 50)) as (app, pilot):
        await until(pilot, lambda: PAUSED in screen_text(app))
        await pilot.press("2")
        await until(pilot, lambda: PAUSED in screen_text(app))
    for size in ((100, 30), (80, 24), (60, 20)):
        async with running(FakeService(gated(PAUSED)), size=size) as (app, pilot):
            await until(pilot, lambda: "ADMISSION PAUSED" in screen_text(app))


async def test_a_console_that_only_looks_says_so_and_who_forbade_it() -> None:
    service = FakeService()
    async with running(service, forbidden="this console was started with --read-only") as (
        app,
        pilot,
    ):
        assert "READ-ONLY" in screen_text(app)
        await pilot.press("X")
        await until(pilot, lambda: "started with --read-only" in toasts(app))
        assert len(app.screen_stack) == 1
        assert service.commands == []


def test_what_has_no_backend_says_why() -> None:
    snapshot = make.snapshot()
    assert reason("request.abort", two_slots()) is None
    assert reason("engine.sleep", snapshot) is None
    lacking = replace(
        snapshot,
        engine=make.engine(controls={"sleep": "the engine was started without it"}),
    )
    assert reason("engine.sleep", lacking) == "the engine was started without it"
    assert reason("engine.wake", snapshot) == "the engine is serving"
    asleep = replace(snapshot, engine=make.engine(state=EngineState.ASLEEP))
    assert reason("engine.wake", asleep) is None
    assert reason("router.load", snapshot) == (
        "this engine serves one model: llama-server as a router has more"
    )
    assert reason("admission.resume", snapshot) == "admission is not paused"
    assert reason("admission.resume", gated(PAUSED)) is None
    assert reason("admission.pause", gated(PAUSED)) == PAUSED
    draining = replace(two_slots(), engine=make.engine(state=EngineState.DRAINING))
    assert reason("request.abort", draining) is None
    served = replace(snapshot.service, forbidden="[service] read_only in config.toml")
    forbidden = replace(snapshot, service=served)
    assert reason("engine.stop", forbidden) == (
        "read-only, forbidden by: [service] read_only in config.toml"
    )
    assert reason("doctor.run", forbidden) is None


async def test_where_the_row_has_ended_the_running_ones_are_offered() -> None:
    snapshot = replace(two_slots(), recent=(make.recent(request_id="over"),))
    service = FakeService(snapshot)
    async with running(service) as (app, pilot):
        await pilot.press("down", "down", "x")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("request.abort", {"request": "req-0"})])


async def test_a_toast_leaves_a_small_screen_in_sight() -> None:
    service = FakeService()
    evidence = "ValueError: " + "the context does not fit and so on " * 40
    service.way = Trouble(message="It cannot", evidence=evidence, remedy="Lower it.", exit_code=5)
    async with running(service, size=(80, 24)) as (app, pilot):
        await pilot.press("s")
        await until(pilot, lambda: "It cannot" in toasts(app))
        said = toasts(app)
        assert said.endswith("…\nLower it.")
        assert len(said) < 240
