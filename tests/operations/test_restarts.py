"""An engine that ended by itself: whose ends count against another start, and what is said."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from a40console.model.engine import EngineState
from a40console.operations.watch import RestartPolicy
from tests.operations.test_operator import Bench, home, make_bench
from tests.operations.test_switch import ended

__all__ = ["home"]


async def told(made: Bench, kind: str, times: int = 1) -> None:
    for _ in range(4_000):
        if made.events.count(kind) == times:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(made.events)


async def killed(made: Bench) -> None:
    """It has ended, and that is said; its restart may have begun."""
    ends = made.events.count("engine.ended") + 1
    os.kill(made.starter.launched[-1].pid, signal.SIGKILL)
    await told(made, "engine.ended", ends)


@pytest.mark.parametrize("asked", ["switch", "restart", "start"])
async def test_what_an_operator_asked_for_is_restarted_whatever_ended_before(
    asked: str, home: Path
) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(0.05,)))
    operator = made.operator
    try:
        await operator.start("a")
        for restarts in (1, 2):
            await killed(made)
            await made.until(EngineState.SERVING)
            assert (operator.status.restarts, operator.status.stays_down) == (1, "")
            assert made.events.count("engine.restarting") == restarts
            if asked == "switch":
                await operator.switch("b")
            elif asked == "restart":
                await operator.restart()
            else:
                await operator.stop()
                await operator.start("a")
        assert "engine.not_restarted" not in made.events
    finally:
        await ended(made)


async def test_what_is_not_started_again_says_so_and_why(home: Path) -> None:
    made = make_bench(home, RestartPolicy(delays_s=(0.05,)))
    try:
        await made.operator.start("a")
        await killed(made)
        await made.until(EngineState.SERVING)
        await killed(made)
        await told(made, "engine.not_restarted")
        await asyncio.sleep(0.05)
        assert made.operator.status.stays_down == "not started again: 1 restart within 10 min"
        assert made.events[-2:] == ["engine.ended", "engine.not_restarted"]
        assert made.gate.closed is None
        await made.operator.start("a")
        assert made.operator.status.stays_down == ""
    finally:
        await ended(made)
