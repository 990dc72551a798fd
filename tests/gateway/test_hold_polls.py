"""What costs the engine nothing and waits for one: apart from the requests, few, and not long."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from a40console.gateway import hold
from a40console.gateway.hold import HoldLimits
from tests.gateway.holding import WHY, asked, closed, is_held, serve, switched
from tests.gateway.messages_asked import MESSAGES, STREAM
from tests.gateway.stub import STOPPED, Received, Reply, StubEngine, call, gateway, until

POLLS = pytest.mark.parametrize("path", ["/v1/models", "/v1/models/other", "/version"])


async def answer(received: Received, reply: Reply) -> None:
    if received.body:
        await serve(received, reply)
    else:
        await reply.whole(b'{"data": [{"id": "smollm2"}]}')


@POLLS
async def test_those_who_poll_take_no_place_of_a_request(path: str) -> None:
    gate = closed(HoldLimits(requests=1))
    async with (
        StubEngine(answer) as engine,
        gateway(None, gate=gate) as served,
        AsyncExitStack() as stack,
    ):
        polls = [
            await stack.enter_async_context(call(served.port, path, begin=False))
            for _ in range(hold.POLLS)
        ]
        await until(lambda: gate.polls == hold.POLLS)
        assert gate.waiting == 0
        async with call(served.port, path) as one_more:
            assert (one_more.status, one_more.headers["retry-after"]) == (503, "10")
            assert f"{WHY}: questions like this one wait, as many as 16 at once" in str(
                await one_more.json()
            )
        async with asked(served, MESSAGES, STREAM) as message:
            await is_held(served, gate)
            switched(served, gate, engine)
            for poll in polls:
                await poll.begin()
                assert poll.status == 200
            await message.begin()
            assert message.status == 200
            await message.body()
        await until(lambda: gate.under_way == 0)


@POLLS
async def test_a_full_gate_lets_those_who_poll_wait_all_the_same(path: str) -> None:
    gate = closed(HoldLimits(requests=1))
    async with (
        StubEngine(answer) as engine,
        gateway(None, gate=gate) as served,
        asked(served, MESSAGES, STREAM),
    ):
        await is_held(served, gate)
        async with call(served.port, path, begin=False) as poll:
            await until(lambda: gate.polls == 1)
            switched(served, gate, engine)
            await poll.begin()
            assert poll.status == 200


@POLLS
async def test_a_poll_waits_no_longer_than_a_moment(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "POLL_S", 0.2)
    gate = closed()
    async with gateway(None, gate=gate) as served, call(served.port, path) as poll:
        assert (poll.status, poll.headers["retry-after"]) == (503, "10")
        assert "none longer than 0.2 s" in str(await poll.json())
    assert gate.polls == 0


@POLLS
async def test_behind_a_pause_alone_a_poll_is_told_at_once_why_none_serves(path: str) -> None:
    gate = closed()
    async with gateway(None, gate=gate) as served:
        async with call(served.port, path, begin=False) as waits:
            await until(lambda: gate.polls == 1)
            gate.close("admission is paused by alice", engine_expected=False)
            await waits.begin()
            assert waits.status == 503
        async with call(served.port, path) as poll:
            assert (poll.status, STOPPED.text in str(await poll.json())) == (503, True)


@POLLS
async def test_a_gateway_that_ends_dismisses_those_who_poll(path: str) -> None:
    gate = closed()
    async with gateway(None, gate=gate) as served, call(served.port, path, begin=False) as poll:
        await until(lambda: gate.polls == 1)
        gate.dismiss()
        await poll.begin()
        assert poll.status == 503
        assert "The gateway ends" in str(await poll.json())
