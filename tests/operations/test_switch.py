"""The gate and the turn while one engine takes another's place, on processes that a test holds."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.errors import ConsoleError, RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Speculation
from a40console.model.switching import SwitchInfo
from a40console.operations.canary import CanaryCheck, CanaryReport
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.live_speculation import LiveSpeculation, NotWellError, Way
from a40console.operations.status import EngineStatus
from a40console.operations.under_way import switch_info
from a40console.operations.watch import RestartPolicy
from a40console.operations.who import ask_as
from tests.operations.test_operator import Bench, home, make_bench, profile

__all__ = ["home"]


@pytest.fixture
async def bench(home: Path) -> AsyncIterator[Bench]:
    made = make_bench(home)
    yield made
    await ended(made)


async def ended(made: Bench) -> None:
    await made.operator.close()
    for process in made.starter.launched:
        await process.stop(term_timeout_s=2)


def step(bench: Bench) -> SwitchInfo:
    assert bench.operator.under_way is not None
    return switch_info(bench.operator.under_way, bench.operator.status, 0.0)


async def until_launched(bench: Bench, number: int) -> None:
    for _ in range(500):
        if len(bench.starter.launched) == number:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(bench.events)


async def test_requests_are_held_from_the_first_step_to_the_last(bench: Bench) -> None:
    await bench.operator.start("a")
    assert bench.gate.closed is None
    bench.starter.hold("b")
    await bench.gate.enter(0)
    switching = asyncio.create_task(bench.operator.switch("b"))
    await bench.until(EngineState.DRAINING)
    assert bench.gate.closed == "b is started in place of a"
    assert step(bench).step == "drain"
    waiting = asyncio.create_task(bench.gate.enter(0))
    bench.gate.leave()
    await bench.until(EngineState.STARTING)
    assert step(bench).step == "start"
    assert not waiting.done()
    bench.starter.ready["b"].set()
    result = await switching
    await waiting
    assert result["profile"] == "b"
    assert bench.gate.closed is None
    assert bench.operator.under_way is None
    for name in ("engine.preflight", "engine.stopped", "engine.canary", "engine.switched"):
        assert bench.events.count(name) == 1, name
    assert "engine.drained" not in bench.events


async def test_what_does_not_end_in_time_is_cut_and_counted(bench: Bench) -> None:
    await bench.operator.start("a")
    await bench.gate.enter(0)
    result = await bench.operator.switch("b", drain_s=0.05)
    assert result["cut"] == "1 request"
    assert "engine.drained" in bench.events


async def test_a_switch_to_what_serves_already_says_so(bench: Bench) -> None:
    await bench.operator.start("a")
    result = await bench.operator.switch("a")
    assert result["again"] == "a served already: it was started anew"
    assert "again" not in await bench.operator.switch("b")


async def test_a_second_change_is_refused_with_who_is_at_it(bench: Bench) -> None:
    await bench.operator.start("a")
    bench.starter.hold("b")
    ask_as("alice@pod, pid 7")
    switching = asyncio.create_task(bench.operator.switch("b"))
    ask_as("bob@pod, pid 8")
    await bench.until(EngineState.STARTING)
    for second in (bench.operator.switch("c"), bench.operator.restart()):
        with pytest.raises(RefusedError, match="A switch to b is under way") as refused:
            await second
        assert "alice@pod, pid 7" in refused.value.evidence
    bench.starter.ready["b"].set()
    await switching
    assert bench.operator.status.profile is not None
    assert bench.operator.status.profile.name == "b"


@pytest.mark.parametrize("at", [EngineState.DRAINING, EngineState.STARTING])
async def test_a_stop_in_the_middle_opens_the_gate(bench: Bench, at: EngineState) -> None:
    await bench.operator.start("a")
    bench.starter.hold("b")
    if at is EngineState.DRAINING:
        await bench.gate.enter(0)
    switching = asyncio.create_task(bench.operator.switch("b"))
    await bench.until(at)
    waiting = asyncio.create_task(bench.gate.enter(0))
    await bench.operator.stop()
    with pytest.raises(RefusedError, match="interrupted"):
        await switching
    await asyncio.wait_for(waiting, 2)
    assert bench.gate.closed is None
    assert bench.operator.status.state is EngineState.STOPPED
    assert bench.starter.living() == []


async def test_the_gate_opens_where_neither_can_be_started(bench: Bench) -> None:
    await bench.operator.start("a")
    bench.starter.broken |= {"a", "b"}
    with pytest.raises(ConsoleError, match="and a could not be put back") as failed:
        await bench.operator.switch("b")
    assert "it does not serve" in failed.value.message
    assert bench.gate.closed is None
    assert bench.operator.status.state is EngineState.FAILED
    assert bench.starter.living() == []


async def test_what_does_not_stand_the_canary_is_not_let_to_clients(home: Path) -> None:
    seen: list[tuple[str | None, str]] = []

    async def canary(status: EngineStatus) -> CanaryReport:
        seen.append((made.gate.closed, step(made).step))
        checks = (CanaryCheck("completion", False, "it wrote nothing"),)
        return CanaryReport(passed=False, checks=checks, seconds=0.1)

    made = make_bench(home, canary=canary)
    try:
        await made.operator.start("a")
        with pytest.raises(ConsoleError, match="does not stand the canary") as failed:
            await made.operator.switch("b")
        assert "completion: it wrote nothing" in failed.value.evidence
        assert "a serves again" in failed.value.remedy
        assert seen == [("b is started in place of a", "canary")]
        assert made.operator.status.state is EngineState.SERVING
        assert len(made.starter.living()) == 1
    finally:
        await ended(made)


async def test_a_crash_closes_the_gate_until_it_serves_again(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(0.05,)))
    try:
        await made.operator.start("a")
        made.starter.hold("a")
        os.kill(made.starter.launched[0].pid, signal.SIGKILL)
        await until_launched(made, 2)
        assert made.gate.closed == "a is started again, as it ended by itself"
        made.starter.ready["a"].set()
        await made.until(EngineState.SERVING)
        await asyncio.sleep(0.1)
        assert made.gate.closed is None
    finally:
        await ended(made)


async def test_an_engine_that_dies_in_a_drain_is_told_to_start_again_by_nobody(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(0.05, 0.05)))
    try:
        await made.operator.start("a")
        await made.gate.enter(0)
        switching = asyncio.create_task(made.operator.switch("b", drain_s=20))
        await made.until(EngineState.DRAINING)
        os.kill(made.starter.launched[0].pid, signal.SIGKILL)
        await made.until(EngineState.FAILED)
        await asyncio.sleep(0.3)
        made.gate.leave()
        result = await asyncio.wait_for(switching, 10)
        await asyncio.sleep(0.3)
        assert result["profile"] == "b"
        assert made.events.count("engine.ended") == 1
        assert "engine.restarting" not in made.events
        assert len(made.starter.living()) == 1
        assert made.gate.closed is None
    finally:
        await ended(made)


async def test_one_that_dies_while_a_change_fails_is_started_again_after_it(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(0.05,)))
    try:
        await made.operator.start("a")
        async with made.operator.exclusively("sleep of a"):
            os.kill(made.starter.launched[0].pid, signal.SIGKILL)
            await made.until(EngineState.FAILED)
            await asyncio.sleep(0.2)
            assert "engine.restarting" not in made.events
        await made.until(EngineState.SERVING)
        assert made.events.count("engine.restarting") == 1
    finally:
        await ended(made)


async def test_an_engine_that_dies_while_speculation_is_turned_down_is_started_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was turned, whatever its last answers were."""
    made = make_bench(home, RestartPolicy(delays_s=(0.05, 0.05)))
    turned = replace(profile("a"), speculation=Speculation(tokens=4, start="off"))

    async def way(self: LiveSpeculation, status: EngineStatus, mode: str) -> Way:
        return Way(how="live", tokens=0, profile=turned)

    async def turn(self: LiveSpeculation, status: EngineStatus, way: Way) -> dict[str, str]:
        os.kill(made.starter.launched[0].pid, signal.SIGKILL)
        await made.until(EngineState.FAILED)
        await asyncio.sleep(0.2)
        error = NotWellError("the engine does not answer")
        error.stays = True
        raise error

    monkeypatch.setattr(LiveSpeculation, "way", way)
    monkeypatch.setattr(LiveSpeculation, "turn", turn)
    try:
        await made.operator.start("a")
        with pytest.raises(NotWellError):
            await made.operator.speculate("off")
        await made.until(EngineState.SERVING)
        assert made.operator.status.profile == turned
        assert made.events.count("engine.restarting") == 1
        assert made.gate.closed is None
    finally:
        await ended(made)


async def test_where_no_restart_follows_the_gate_stays_open(bench: Bench) -> None:
    await bench.operator.start("a")
    os.kill(bench.starter.launched[0].pid, signal.SIGKILL)
    await bench.until(EngineState.FAILED)
    assert bench.gate.closed is None


async def test_a_switch_while_a_crashed_engine_waits_for_its_restart(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(30.0,)))
    try:
        await made.operator.start("a")
        os.kill(made.starter.launched[0].pid, signal.SIGKILL)
        await made.until(EngineState.FAILED)
        assert made.gate.closed is not None
        made.starter.hold("b")
        switching = asyncio.create_task(made.operator.switch("b"))
        await until_launched(made, 2)
        await asyncio.sleep(0.1)
        assert made.gate.closed == "b is started in place of a"
        made.starter.ready["b"].set()
        await switching
        assert made.gate.closed is None
    finally:
        await ended(made)


async def test_a_switch_that_fails_while_a_crashed_engine_waits_puts_that_back(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(30.0,)))
    try:
        await made.operator.start("a")
        os.kill(made.starter.launched[0].pid, signal.SIGKILL)
        await made.until(EngineState.FAILED)
        made.starter.broken.add("b")
        with pytest.raises(ConsoleError) as failed:
            await made.operator.switch("b")
        assert "a serves again" in failed.value.remedy
        assert made.operator.status.state is EngineState.SERVING
        assert made.gate.closed is None
    finally:
        await ended(made)


@pytest.mark.parametrize("at", ["launch", "canary"])
@pytest.mark.parametrize("again", ["it serves", "it does not"])
async def test_what_nobody_foresaw_puts_back_what_served(home: Path, at: str, again: str) -> None:
    async def canary(status: EngineStatus) -> CanaryReport:
        assert status.profile is not None
        if at == "canary" and status.profile.name == "b":
            raise OSError(errno.ENOSPC, "No space left on device")
        return CanaryReport(passed=True, checks=(), seconds=0.0)

    made = make_bench(home, canary=canary)
    try:
        await made.operator.start("a")
        if at == "launch":
            made.starter.full_disk.add("b")
        if again == "it does not":
            made.starter.full_disk.add("a")
        with pytest.raises(ConsoleError, match="b could not be started: No space left") as failed:
            await made.operator.switch("b")
        state = made.operator.status.state
        if again == "it serves":
            assert "a serves again" in failed.value.remedy
            assert (state, len(made.starter.living())) == (EngineState.SERVING, 1)
        else:
            assert "a could not be put back: a could not be started" in failed.value.message
            assert (state, made.starter.living()) == (EngineState.FAILED, [])
        assert made.gate.closed is None
    finally:
        await ended(made)


async def test_a_switch_that_its_service_did_not_end_is_rolled_back_by_the_next(
    bench: Bench,
    home: Path,
) -> None:
    await bench.operator.start("a")
    bench.starter.hold("b")
    switching = asyncio.create_task(bench.operator.switch("b"))
    await until_launched(bench, 2)
    await bench.operator.close()
    await asyncio.gather(switching, return_exceptions=True)
    later = make_bench(home)
    later.starter.broken.add("b")
    try:
        assert await later.operator.adopt()
        status = later.operator.status
        assert status.state is EngineState.SERVING
        assert status.profile is not None
        assert status.profile.name == "a"
        assert later.events.count("engine.rolled_back") == 1
        assert later.gate.closed is None
        assert not later.paths.fallback.exists()
    finally:
        await ended(later)


async def test_what_was_switched_leaves_nothing_to_fall_back_on(bench: Bench) -> None:
    await bench.operator.start("a")
    await bench.operator.switch("b")
    assert not bench.paths.fallback.exists()


async def test_only_who_closed_the_gate_last_opens_it(bench: Bench) -> None:
    keeper = Gatekeeper(bench.gate)
    first = keeper.close("one is at it")
    second = keeper.close("two is at it")
    keeper.open(first)
    assert bench.gate.closed == "two is at it"
    keeper.open(second)
    assert bench.gate.closed is None
