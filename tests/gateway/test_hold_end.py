"""A gateway that ends while it holds requests: each has an answer in words, of its own API."""

from __future__ import annotations

import json

import pytest

from tests.gateway.holding import CHAT, QUICK, asked, closed, is_held
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM
from tests.gateway.stub import gateway, until

WORDS = "The gateway ends while it holds this request. Send it again."


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_what_has_no_answer_yet_is_refused_in_words(path: str) -> None:
    gate = closed()
    async with gateway(None, gate=gate) as served, asked(served, path, ASK) as answer:
        await is_held(served, gate)
        gate.dismiss()
        await answer.begin()
        told = json.loads(await answer.body())
        await until(lambda: gate.waiting == 0)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "10"
    assert told["error"]["message"] == WORDS
    assert (gate.under_way, gate.held_bytes, served.budget.held_bytes) == (0, 0, 0)


async def test_a_stream_that_was_kept_alive_ends_with_the_error() -> None:
    gate = closed()
    async with (
        gateway(None, gate=gate, timing=QUICK) as served,
        asked(served, MESSAGES, STREAM) as answer,
    ):
        await answer.begin()
        assert answer.status == 200
        gate.dismiss()
        told = await answer.body()
    name, data = told.decode().strip().rsplit("\n\n", 1)[-1].split("\n")
    last = json.loads(data.removeprefix("data: "))
    assert name == "event: error"
    assert (last["type"], last["error"]["message"]) == ("error", WORDS)


async def test_who_comes_after_it_is_refused_too() -> None:
    gate = closed()
    gate.dismiss()
    async with gateway(None, gate=gate) as served, asked(served, CHAT, ASK) as answer:
        await answer.begin()
        assert answer.status == 503
    assert gate.waiting == 0
