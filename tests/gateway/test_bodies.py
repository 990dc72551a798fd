"""Bodies: spliced byte for byte, limited, and held within a budget that is given back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive

from a40console.gateway.bodies import MIB, Body, BodyLimits, HeldBudget, read_body
from a40console.gateway.departure import ClientLeftError
from a40console.gateway.refusals import Refusal

SMALL = BodyLimits(request_bytes=1000, held_bytes=2000, wait_s=0.05, idle_s=0.05)


def sending(*pieces: bytes, left: bool = False) -> Receive:
    waiting = list(pieces)

    async def receive() -> Message:
        if not waiting:
            if left:
                return {"type": "http.disconnect"}
            await asyncio.sleep(10)
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting) or left}

    return receive


async def read(*pieces: bytes, budget: HeldBudget | None = None) -> Body:
    length = sum(map(len, pieces))
    limits = BodyLimits()
    return await read_body(sending(*pieces), length, budget or HeldBudget(MIB), limits)


async def text_of(body: Body) -> bytes:
    sent: AsyncIterator[bytes | bytearray] = body.sent()
    return b"".join([piece async for piece in sent])


json_objects = st.dictionaries(
    st.text(max_size=8), st.none() | st.integers() | st.text() | st.lists(st.integers()), max_size=5
)


@given(json_objects, st.lists(st.integers(1, 40)), st.booleans())
def test_setting_a_value_changes_nothing_else(
    client: dict[str, Any], sizes: list[int], spaced: bool
) -> None:
    text = json.dumps(client, indent=1 if spaced else None).encode()
    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]

    async def spliced() -> tuple[bytes, int]:
        body = await read(*pieces, rest)
        body.set_values({"stream_options": {"include_usage": True}})
        length = body.length
        return await text_of(body), length

    result, length = asyncio.run(spliced())
    assert length == len(result)
    assert json.loads(result) == {**client, "stream_options": {"include_usage": True}}
    assert result.startswith(text[: text.rindex(b"}")])


async def test_an_old_value_is_replaced_in_its_place() -> None:
    text = b'{"stream":true,"stream_options": {"include_usage" : false} ,"n": 1.0}'
    for size in (1, 7, 30, 100):
        body = await read(*(text[at : at + size] for at in range(0, len(text), size)))
        assert body.values(["stream", "n", "absent"]) == {"stream": True, "n": 1.0}
        body.set_values({"stream_options": {"include_usage": True}})
        expected = b'{"stream":true,"stream_options": {"include_usage":true} ,"n": 1.0}'
        assert await text_of(body) == expected


async def test_several_values_are_set_at_once_wherever_they_stand() -> None:
    text = b'{"model": "old", "n": 1, "stream_options": {} }'
    for size in (1, 7, 100):
        body = await read(*(text[at : at + size] for at in range(0, len(text), size)))
        body.set_values({"a": 1, "stream_options": {"x": 1}, "model": "another", "b": 2})
        expected = b'{"model": "another", "n": 1, "stream_options": {"x":1} ,"a":1,"b":2}'
        assert await text_of(body) == expected


async def test_what_is_kept_is_there_again_after_it_was_changed_and_sent() -> None:
    budget = HeldBudget(MIB)
    body = await read(b'{"model": "old"}', budget=budget)
    body.keep()
    body.set_values({"model": "new"})
    assert await text_of(body) == b'{"model": "new"}'
    assert budget.held_bytes == 0
    body.restore()
    body.set_values({"model": "newer"})
    assert (body.length, await text_of(body)) == (18, b'{"model": "newer"}')
    body.let_go()
    body.restore()
    assert await text_of(body) == b""


async def test_what_is_no_object_stays_as_it_is() -> None:
    for text in (b"", b"{nope", b'{"a":1', b"[1]", b"\xff\xfe{\x00}\x00"):
        body = await read(text)
        body.set_values({"x": 1})
        assert body.values(["a"]) == {}
        assert await text_of(body) == text


async def test_room_is_given_back_piece_by_piece_as_the_body_is_sent() -> None:
    budget = HeldBudget(MIB)
    body = await read(b"a" * 70_000, b"b" * 70_000, budget=budget)
    assert budget.held_bytes == 140_000
    held = [budget.held_bytes async for _ in body.sent()]
    assert held == [140_000, 70_000]
    assert budget.held_bytes == 0


async def test_a_body_over_the_limit_is_refused_declared_or_not() -> None:
    budget = HeldBudget(2000)
    for declared in (1001, None):
        with pytest.raises(Refusal) as refusal:
            await read_body(sending(b"x" * 600, b"x" * 401), declared, budget, SMALL)
        assert refusal.value.status == 413
    assert budget.held_bytes == 0


async def test_without_room_it_waits_unread_and_is_told_to_come_back() -> None:
    budget = HeldBudget(2000)
    first = await read_body(sending(b"x" * 1000), 1000, budget, SMALL)
    second = await read_body(sending(b"x" * 900), 900, budget, SMALL)

    async def never_read() -> Message:
        raise AssertionError("the body was read though there was no room")

    with pytest.raises(Refusal) as refusal:
        await read_body(never_read, 500, budget, SMALL)
    assert (refusal.value.status, bool(refusal.value.retry_after_s)) == (503, True)
    waiting = asyncio.create_task(read_body(sending(b"x" * 500), 500, budget, SMALL))
    await asyncio.sleep(0)
    first.discard()
    third = await waiting
    second.discard()
    third.discard()
    assert budget.held_bytes == 0


async def test_whoever_waits_longest_is_next() -> None:
    budget = HeldBudget(10)
    assert await budget.take(10, 1)
    order: list[int] = []

    async def queue(size: int) -> None:
        assert await budget.take(size, 1)
        order.append(size)

    tasks = [asyncio.create_task(queue(size)) for size in (9, 1, 8)]
    await asyncio.sleep(0)
    budget.give_back(10)
    await asyncio.sleep(0.01)
    assert order == [9, 1]
    budget.give_back(9)
    await asyncio.gather(*tasks)
    assert (order, budget.held_bytes) == ([9, 1, 8], 9)


async def test_a_request_without_a_body_queues_behind_none() -> None:
    budget = HeldBudget(2000)
    full = await read_body(sending(b"x" * 1000), 1000, budget, SMALL)
    more = await read_body(sending(b"x" * 900), 900, budget, SMALL)
    waiting = asyncio.create_task(budget.take(500, 1))
    await asyncio.sleep(0)
    began = asyncio.get_running_loop().time()
    assert await budget.take(0, 1)
    assert asyncio.get_running_loop().time() - began < 0.5
    full.discard()
    more.discard()
    assert await waiting


async def test_a_waiter_that_is_cancelled_leaves_no_trace() -> None:
    budget = HeldBudget(10)
    assert await budget.take(10, 1)
    waiting = asyncio.create_task(budget.take(5, 1))
    await asyncio.sleep(0)
    budget.give_back(10)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert budget.held_bytes == 0
    assert await budget.take(10, 0.1)


async def test_a_client_that_stops_or_leaves_gives_its_room_back() -> None:
    budget = HeldBudget(2000)
    with pytest.raises(Refusal) as refusal:
        await read_body(sending(), 500, budget, SMALL)
    assert refusal.value.status == 408
    with pytest.raises(ClientLeftError):
        await read_body(sending(b"x", left=True), 500, budget, SMALL)
    assert budget.held_bytes == 0


async def test_a_dribbled_body_is_joined() -> None:
    body = await read(*(b"x" for _ in range(5000)))
    assert len([piece async for piece in body.sent()]) == 1


def test_a_body_must_fit_into_the_budget() -> None:
    with pytest.raises(ValueError, match="fit"):
        BodyLimits(request_bytes=2, held_bytes=1)


async def test_a_byte_now_and_then_does_not_hold_the_room() -> None:
    limits = BodyLimits(
        request_bytes=1000, held_bytes=1000, wait_s=1, idle_s=0.1, slowest_bytes_per_s=1000
    )
    budget = HeldBudget(limits.held_bytes)

    async def drip() -> Message:
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(Refusal) as refusal:
        await asyncio.wait_for(read_body(drip, 1000, budget, limits), 5)
    assert refusal.value.status == 408
    assert budget.held_bytes == 0
