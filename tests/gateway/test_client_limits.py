"""Limits for each client: none by itself, and as the operator sets them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.config import GatewaySettings
from a40console.gateway.client_limits import ClientBook, ClientLimits, client_key, client_limits
from a40console.gateway.refusals import Refusal
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway, until

CHAT = "/v1/chat/completions"


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_by_itself_there_is_no_limit() -> None:
    limits = client_limits(GatewaySettings())
    assert not limits.any()
    book = ClientBook(limits)
    for _ in range(1000):
        book.enter("a")


def test_requests_at_once_are_counted_for_each_client() -> None:
    book = ClientBook(ClientLimits(at_once=2))
    book.enter("a")
    book.enter("a")
    book.enter("b")
    with pytest.raises(Refusal) as refusal:
        book.enter("a")
    assert refusal.value.status == 429
    assert "client_requests" in refusal.value.message
    book.leave("a")
    book.enter("a")


def test_requests_within_a_minute_are_counted_and_the_wait_is_told() -> None:
    clock = Clock()
    book = ClientBook(ClientLimits(per_minute=2), clock=clock)
    book.enter("a")
    clock.now_s += 20
    book.enter("a")
    with pytest.raises(Refusal) as refusal:
        book.enter("a")
    assert (refusal.value.status, refusal.value.retry_after_s) == (429, 40)
    clock.now_s += 40
    book.enter("a")


@pytest.mark.parametrize("pause_s", [0.0, 1.0])
def test_clients_beyond_a_thousand_are_forgotten_the_oldest_first(pause_s: float) -> None:
    clock = Clock()
    book = ClientBook(ClientLimits(at_once=2, per_minute=1), clock=clock)
    for number in range(5000):
        book.enter(f"c{number}")
        book.leave(f"c{number}")
        clock.now_s += pause_s
    assert len(book) == 1024
    with pytest.raises(Refusal):
        book.enter("c4999")


def test_a_refused_client_costs_nobody_else_anything_however_many_there_are() -> None:
    clock = Clock()
    book = ClientBook(ClientLimits(at_once=1, per_minute=1), clock=clock)
    for number in range(3000):
        book.enter(f"c{number}")
    for number in range(3000):
        with pytest.raises(Refusal):
            book.enter(f"c{number}")
        clock.now_s += 0.1
        with pytest.raises(Refusal):
            book.enter(f"c{number}")
    book.enter("newcomer")
    for number in range(3000):
        book.leave(f"c{number}")
    assert len(book) == 1025
    book.enter("another")
    book.leave("another")
    clock.now_s += 61
    book.enter("c2999")


def test_a_client_that_asks_again_and_again_is_kept_before_one_that_does_not() -> None:
    book = ClientBook(ClientLimits(per_minute=2), clock=Clock())
    for name in ("steady", "gone", "steady", *map(str, range(1023))):
        book.enter(name)
        book.leave(name)
    with pytest.raises(Refusal):
        book.enter("steady")


def test_naming_anothers_session_uses_up_nothing_of_its_allowance() -> None:
    def key(token: str, machine: str = "10.0.0.1") -> str:
        headers = [
            (b"authorization", f"Bearer {token}".encode()),
            (b"x-a40console-session", b"mine"),
        ]
        scope: dict[str, Any] = {"type": "http", "path": "/v1/messages", "headers": headers}
        scope["client"] = (machine, 50_000)
        return client_key(scope, Headers(scope=scope))

    assert key("secret-one") == key("secret-one")
    assert len({key("secret-one"), key("secret-two"), key("secret-one", "10.0.0.2")}) == 3
    assert "secret" not in key("secret-one")


async def test_a_client_beyond_its_limit_is_told_in_its_grammar_and_others_are_served() -> None:
    gate = asyncio.Event()

    async def waits(received: Received, reply: Reply) -> None:
        await gate.wait()
        await reply.whole(b"{}")

    async with (
        StubEngine(waits) as engine,
        gateway(engine.upstream, client_limits=ClientLimits(at_once=1)) as served,
        call(served.port, f"/s/mine{CHAT}", {"model": "m"}, begin=False) as first,
    ):
        await until(lambda: engine.requests)
        async with call(served.port, f"/s/mine{CHAT}", {"model": "m"}) as second:
            error = (await second.json())["error"]
            assert (second.status, error["code"]) == (429, 429)
            assert second.headers["retry-after"] == "2"
        async with call(served.port, "/s/mine/v1/messages", {"model": "m"}) as third:
            error = (await third.json())["error"]
            assert (third.status, error["type"]) == (429, "rate_limit_error")
        async with call(served.port, CHAT, {"model": "m"}, begin=False) as other:
            await until(lambda: len(engine.requests) == 2)
            gate.set()
            await other.begin()
            assert other.status == 200
        await first.begin()
        assert first.status == 200
        async with call(served.port, f"/s/mine{CHAT}", {"model": "m"}) as again:
            assert again.status == 200
