"""The idle-silicon probe: what it measures, what it concludes, and when it gives way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from a40console.errors import NotServingError, RefusedError
from a40console.operations.idle_silicon import Probe, Step, measure
from a40console.service.idle_probe import told


def probe(*speeds: float) -> Probe:
    return Probe(tuple(Step(n, speed, 5.0) for n, speed in zip((1, 2, 4), speeds, strict=True)))


def test_four_streams_that_bring_three_times_as_much_show_idle_silicon() -> None:
    found = probe(40.0, 75.0, 120.0)
    assert found.idles is True
    assert found.verdict() == (
        "idle silicon: 4 streams bring at most 3.00 times one, "
        "so one stream leaves at least 67% of it idle"
    )


def test_streams_that_only_share_show_none() -> None:
    found = probe(40.0, 41.0, 44.0)
    assert found.idles is False
    assert found.verdict().startswith("no idle silicon: 4 streams bring at most 1.10 times one")


def test_without_a_token_nothing_is_concluded() -> None:
    found = probe(0.0, 41.0, 44.0)
    assert found.idles is None
    assert "one stream brought no token" in found.verdict()


def test_a_simulated_engines_figures_say_so() -> None:
    said = told(probe(40.0, 75.0, 120.0), simulated=True)
    assert said["report"].startswith("SIMULATED: idle silicon")
    assert said["verdict"] == "SIMULATED: idle silicon"
    assert said["tokens_per_s_at_4"] == "120.0"
    assert said["window_s"] == "5.0 + 5.0 + 5.0"


async def steady(number: int) -> AsyncIterator[int]:
    tokens = 0
    while True:
        tokens += 1
        yield tokens
        await asyncio.sleep(0.01)


async def test_streams_of_one_speed_each_scale() -> None:
    found = await measure(steady, disturbed=lambda ours: "", seconds=1.2)
    assert [step.streams for step in found.steps] == [1, 2, 4]
    assert found.idles is True


async def test_every_stream_has_a_number_of_its_own_and_all_are_ended() -> None:
    begun: list[int] = []
    open_now: set[int] = set()

    async def counted(number: int) -> AsyncIterator[int]:
        begun.append(number)
        open_now.add(number)
        try:
            async for tokens in steady(number):
                yield tokens
        finally:
            open_now.discard(number)

    await measure(counted, disturbed=lambda ours: "", seconds=0.6)
    await asyncio.sleep(0)
    assert begun == list(range(7))
    assert open_now == set()


async def test_it_gives_way_to_somebody_elses_request() -> None:
    asked: list[int] = []

    def disturbed(ours: int) -> str:
        asked.append(ours)
        return "1 of the gateway's requests run" if ours == 2 else ""

    with pytest.raises(RefusedError) as refused:
        await measure(steady, disturbed=disturbed, seconds=0.6)
    assert "gave way: 1 of the gateway's requests run" in refused.value.message
    assert set(asked) == {1, 2}


async def test_a_stream_that_breaks_off_ends_it() -> None:
    async def broken(number: int) -> AsyncIterator[int]:
        yield 1
        raise NotServingError("A stream of the probe broke off")

    with pytest.raises(NotServingError):
        await measure(broken, disturbed=lambda ours: "", seconds=0.6)
