"""Limits for each client and each session: none by itself, and as the operator sets them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.config import GatewaySettings
from a40console.gateway.client_limits import (
    AskingBook,
    ClientLimits,
    Limits,
    client_key,
    client_limits,
    session_key,
)
from a40console.gateway.refusals import Refusal
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway, until

CHAT = "/v1/chat/completions"


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_by_itself_there_is_no_limit() -> None:
    limits = client_limits(GatewaySettings())
    assert not limits.client.any()
    assert not limits.session.any()
    book = AskingBook(limits.client)
    for _ in range(1000):
        book.enter("a")
    assert len(book) == 1


def test_each_setting_limits_what_it_names() -> None:
    limits = client_limits(
        GatewaySettings(
            client_requests=8,
            client_requests_per_minute=80,
            session_requests=2,
            session_requests_per_minute=20,
        )
    )
    assert limits.client == Limits(at_once=8, per_minute=80)
    assert limits.session == Limits(at_once=2, per_minute=20)


def test_requests_at_once_are_counted_for_each_client() -> None:
    book = AskingBook(Limits(at_once=2))
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
    book = AskingBook(Limits(per_minute=2), clock=clock)
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
    book = AskingBook(Limits(at_once=2, per_minute=1), clock=clock)
    for number in range(5000):
        book.enter(f"c{number}")
        book.leave(f"c{number}")
        clock.now_s += pause_s
    assert len(book) == 1024
    with pytest.raises(Refusal):
        book.enter("c4999")


def test_a_refused_client_costs_nobody_else_anything_however_many_there_are() -> None:
    clock = Clock()
    book = AskingBook(Limits(at_once=1, per_minute=1), clock=clock)
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
    book = AskingBook(Limits(per_minute=2), clock=Clock())
    for name in ("steady", "gone", "steady", *map(str, range(1023))):
        book.enter(name)
        book.leave(name)
    with pytest.raises(Refusal):
        book.enter("steady")


def asks(
    token: str = "secret", machine: str = "10.0.0.1", name: str = "mine"
) -> tuple[dict[str, Any], Headers]:
    headers = [
        (b"authorization", f"Bearer {token}".encode()),
        (b"x-a40console-session", name.encode()),
    ]
    scope: dict[str, Any] = {"type": "http", "path": "/v1/messages", "headers": headers}
    scope["client"] = (machine, 50_000)
    return scope, Headers(scope=scope)


def test_naming_anothers_session_uses_up_nothing_of_its_allowance() -> None:
    mine = session_key(*asks())
    assert session_key(*asks()) == mine
    assert session_key(*asks(token="secret-two")) != mine
    assert session_key(*asks(machine="10.0.0.2")) != mine
    assert "secret" not in mine


@pytest.mark.parametrize(
    ("machine", "key"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::1", "0::"),
        ("2001:db8:1:2::7", "20010db800010002::"),
        ("2001:db8:1:2:aaaa::8", "20010db800010002::"),
        ("2001:db8:1:3::7", "20010db800010003::"),
        ("a socket", "a socket"),
    ],
)
def test_a_client_is_its_machine(machine: str, key: str) -> None:
    assert client_key(asks(machine=machine)[0]) == key


async def test_new_names_keys_and_forwarded_addresses_evade_no_clients_limit() -> None:
    limits = ClientLimits(client=Limits(per_minute=3))
    async with (
        StubEngine(answers) as engine,
        gateway(engine.upstream, client_limits=limits) as served,
    ):
        told = []
        for number in range(5):
            headers = {
                "x-a40console-session": f"name-{number}",
                "x-api-key": f"key-{number}",
                "x-forwarded-for": f"10.0.0.{number}",
            }
            async with call(
                served.port, f"/s/path-{number}{CHAT}", {"model": "m"}, headers=headers
            ) as one:
                told.append(one.status)
                said = await one.json()
    assert told == [200, 200, 200, 429, 429]
    assert "client_requests_per_minute" in said["error"]["message"]
    assert len(engine.requests) == 3


async def test_what_a_sessions_limit_refuses_does_not_count_for_its_client() -> None:
    limits = ClientLimits(client=Limits(per_minute=3), session=Limits(per_minute=1))
    async with (
        StubEngine(answers) as engine,
        gateway(engine.upstream, client_limits=limits) as served,
    ):
        told = []
        for name in ("a", "a", "a", "b", "c", "d"):
            async with call(served.port, f"/s/{name}{CHAT}", {"model": "m"}) as one:
                told.append(one.status)
    assert told == [200, 429, 429, 200, 200, 429]


async def answers(received: Received, reply: Reply) -> None:
    await reply.whole(b"{}")


async def test_a_session_beyond_its_limit_is_told_in_its_grammar_and_others_are_served() -> None:
    gate = asyncio.Event()

    async def waits(received: Received, reply: Reply) -> None:
        await gate.wait()
        await reply.whole(b"{}")

    async with (
        StubEngine(waits) as engine,
        gateway(engine.upstream, client_limits=ClientLimits(session=Limits(at_once=1))) as served,
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
