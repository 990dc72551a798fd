"""A run ends when it is told to, and when a limit is met, whatever it waits for."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.bench import RunStoppedError
from a40console.model.figures import Missing
from a40console.model.run import RunSpec
from a40console.service.run_stop import Limits, RunStop

NO_PRICE = Missing("no price")


def spec(usd: str | None = None, minutes: float | None = None) -> RunSpec:
    return RunSpec(
        experiment="sweep", max_usd=None if usd is None else Decimal(usd), max_minutes=minutes
    )


def test_limits_of_time_and_money_are_named() -> None:
    limits = Limits.of(spec(minutes=2), NO_PRICE)
    assert limits.met(119.9) == ""
    assert limits.met(120) == "its limit of 2 min is met"
    limits = Limits.of(spec(usd="0.05"), 0.44)
    assert limits.met(409) == ""
    assert limits.met(409.1) == "its limit of $0.05 is met"


@given(
    usd=st.decimals(min_value=Decimal("0.001"), max_value=100, places=3),
    price=st.floats(min_value=0.01, max_value=50),
    elapsed_s=st.floats(min_value=0, max_value=1e6),
)
def test_no_more_is_spent_than_was_allowed(usd: Decimal, price: float, elapsed_s: float) -> None:
    met = Limits.of(spec(usd=str(usd)), price).met(elapsed_s)
    assert bool(met) == (elapsed_s * price / 3600 >= float(usd))


async def test_work_that_hangs_ends_with_the_limit() -> None:
    """The limit's own watch runs beside it: nothing has to come back first."""
    stop = RunStop(asked=lambda: None, limits=Limits(seconds=0.05))
    watch = asyncio.create_task(stop.watch())
    cancelled = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(RunStoppedError, match="its limit of"):
        await stop.bounded(hang())
    assert cancelled.is_set(), "what hung was given up"
    await watch


async def test_work_that_ends_gives_its_own_outcome() -> None:
    stop = RunStop(asked=lambda: None, limits=Limits())

    async def work() -> int:
        return 7

    async def fail() -> None:
        raise ValueError("its own")

    assert await stop.bounded(work()) == 7
    with pytest.raises(ValueError, match="its own"):
        await stop.bounded(fail())
    stop.check()


async def test_the_first_reason_stands() -> None:
    asked: list[str] = []
    stop = RunStop(asked=lambda: asked[0] if asked else None, limits=Limits())
    stop.check()
    asked.append("cancelled by alice")
    with pytest.raises(RunStoppedError, match="cancelled by alice"):
        stop.check()
    stop.end("its limit of 1 min is met")
    assert stop.why == "cancelled by alice"
    assert stop.event.is_set()
