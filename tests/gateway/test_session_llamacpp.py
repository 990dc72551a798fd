"""A session before a real llama.cpp: what its prefix cache saved, and a change that cost it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from a40console.gateway import session_view
from a40console.gateway.session_records import Record
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import Upstream
from a40console.model.figures import Missing, number
from tests.gateway.stub import NATIVE_ENGINE, TRANSLATED_ENGINE, Speaks, call, gateway, until
from tests.gateway.test_live_llamacpp import MESSAGES, SHORT
from tests.gateway.test_live_llamacpp import engine as engine

pytestmark = [pytest.mark.engine, pytest.mark.slow]

WORDS = "the ledger keeps what the gauge drops and the window folds it again "


async def ask(port: int, body: dict[str, Any], session: str) -> dict[str, Any]:
    path = f"/s/{session}{MESSAGES}"
    async with call(port, path, body) as answer:
        message: dict[str, Any] = json.loads(await answer.body())
    return message


def told(book: SessionBook, session: str) -> Record:
    record = book.find(session)
    assert record is not None
    return record


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
async def test_the_cache_is_seen_to_hold_and_a_changed_system_prompt_to_lose_it(
    engine: Upstream, route: Speaks
) -> None:
    name = f"talk-{route.dialect.route}"
    book = SessionBook(run_id=lambda: "run-1")
    speaks = Speaks(replace(route.dialect, served_name="smollm2"))
    system = f"{name} Monday. {WORDS * 30}"
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Say hi to the sea."}]
    async with gateway(engine, dialects=speaks, book=book) as served:

        async def turn(question: str | None) -> dict[str, Any]:
            message = await ask(served.port, {**SHORT, "system": system, "messages": turns}, name)
            turns.append({"role": "assistant", "content": message["content"]})
            if question:
                turns.append({"role": "user", "content": question})
            return message

        await turn("And to the moon?")
        second = await turn("And to the stars?")
        system = system.replace("Monday", "Friday")
        third = await turn(None)
        await until(lambda: not told(book, name).live)

    rows = [session_view.request_row(entry) for entry in told(book, name).entries]
    assert [row.turn for row in rows] == [1, 2, 3]
    assert rows[1].reused_tokens == second["usage"]["cache_read_input_tokens"]
    # All of the first prompt is there again; its answer may be rendered anew.
    assert (number(rows[1].reused_tokens) or 0) >= (number(rows[0].prompt_tokens) or 0) - 8
    assert (number(rows[1].reread_tokens) or 0) <= 24
    assert rows[1].loss == Missing("nothing was lost")
    loss = rows[2].loss
    assert not isinstance(loss, Missing)
    assert (loss.kind, loss.block, loss.block_kind) == ("changed", 1, "system")
    assert loss.cause == "system changed, at the same length: a date, a counter or an id in it"
    computed = third["usage"]["input_tokens"]
    assert computed > 300
    assert number(loss.tokens) is not None
