"""Large bodies: read one at a time and within the budget, whoever leaves and whatever they ask."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from typing import Any

import pytest

from a40console.gateway.anthropic import counting, exchange
from a40console.gateway.anthropic.asked import read_asked
from a40console.gateway.bodies import Body, HeldBudget
from a40console.gateway.reading import LARGE_BYTES, BodyReading
from tests.gateway.messages_asked import ASK
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway, until

LARGE: dict[str, Any] = {**ASK, "messages": [{"role": "user", "content": "sea " * 200_000}]}
SIZE = len(json.dumps(LARGE))
COUNT = "/v1/messages/count_tokens"


class Gate:
    """Reading that stands still in its thread until it is let go."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside, self.most, self.times = 0, 0, 0
        self._lock = threading.Lock()

    def read(self, *args: Any, **more: Any) -> Any:
        with self._lock:
            self.inside += 1
            self.times += 1
            self.most = max(self.most, self.inside)
        self.open.wait(10)
        with self._lock:
            self.inside -= 1
        return read_asked(*args, **more)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made = Gate()
    monkeypatch.setattr(exchange, "read_asked", made.read)
    monkeypatch.setattr(counting, "read_asked", made.read)
    return made


async def body_of(budget: HeldBudget, size: int) -> Body:
    body = Body(budget)
    await body.reserve(size, 1)
    body.append(b"x" * size)
    return body


async def test_turn_and_room_stay_taken_until_the_thread_of_one_who_left_is_done() -> None:
    budget, reading, let_go = HeldBudget(2**24), BodyReading(), threading.Event()
    body = await body_of(budget, LARGE_BYTES)
    leaving = asyncio.create_task(reading.read(body, lambda: let_go.wait(10)))
    await until(lambda: reading.busy)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    body.discard()
    waiting = asyncio.create_task(reading.read(await body_of(budget, LARGE_BYTES), lambda: 7))
    await asyncio.sleep(0.05)

    assert leaving.cancelled()
    assert budget.held_bytes == 2 * LARGE_BYTES
    assert not waiting.done()
    let_go.set()
    assert await waiting == 7
    assert budget.held_bytes == LARGE_BYTES
    assert not reading.busy


async def test_what_was_read_is_not_kept_with_the_body() -> None:
    class Asked:
        """What a body holds, as objects."""

    budget, reading = HeldBudget(2**24), BodyReading()
    body = await body_of(budget, LARGE_BYTES)
    read = weakref.ref(await reading.read(body, Asked))
    await asyncio.sleep(0.01)
    gc.collect()

    assert read() is None
    assert budget.held_bytes == LARGE_BYTES
    body.discard()
    assert budget.held_bytes == 0


async def test_a_thread_that_fails_frees_its_turn() -> None:
    reading = BodyReading()
    body = await body_of(HeldBudget(2**24), LARGE_BYTES)

    with pytest.raises(ZeroDivisionError):
        await reading.read(body, lambda: 1 // 0)

    assert await reading.read(body, lambda: 7) == 7


async def test_clients_that_leave_do_not_let_the_next_bodies_in_beside_theirs(gate: Gate) -> None:
    async def never(received: Received, reply: Reply) -> None:
        await reply.gone.wait()

    async with StubEngine(never) as engine, gateway(engine.upstream) as served:
        for number in range(3):
            async with call(served.port, "/v1/messages", LARGE, begin=False) as answer:
                await until(lambda: served.meter.live())
                await until(lambda: gate.times)
                answer.leave()
            await served.ended(number + 1)
        outcomes = {row.finish_reason for row in served.meter.finished()}
        held = served.budget.held_bytes
        gate.open.set()
        await until(lambda: served.budget.held_bytes == 0)

    assert held == SIZE
    assert outcomes == {"aborted"}
    assert (gate.most, gate.times) == (1, 1)


async def test_counts_are_read_one_at_a_time_and_keep_their_room_until_they_are_answered(
    gate: Gate,
) -> None:
    answering = asyncio.Event()

    async def counted(received: Received, reply: Reply) -> None:
        await answering.wait()
        await reply.whole(b'{"input_tokens": 42}')

    async with StubEngine(counted) as engine, gateway(engine.upstream) as served:

        async def one() -> Any:
            async with call(served.port, COUNT, LARGE) as answer:
                return await answer.json()

        asking = [asyncio.create_task(one()) for _ in range(4)]
        await until(lambda: served.budget.held_bytes == 4 * SIZE)
        gate.open.set()
        await until(lambda: gate.times == 4 and len(engine.requests) == 2)
        held = served.budget.held_bytes
        answering.set()
        answers = await asyncio.gather(*asking)
        await until(lambda: served.budget.held_bytes == 0)

    assert answers == [{"input_tokens": 42}] * 4
    assert gate.most == 1
    assert held == 4 * SIZE
