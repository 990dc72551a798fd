"""Sessions behind the real gateway, before the simulated engine: what the client sends is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from a40console.gateway import session_view
from a40console.gateway.session_records import Record
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.sim.day import Agent, Conversation, Turn
from tests.gateway.session_clients import written
from tests.gateway.stub import NATIVE, Gateway, Speaks, gateway, until
from tests.sim.engine_process import SimProcess, sim_process

SESSION = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10"
EDIT = Turn(adds=300, answer_tokens=40, tool="Edit", then_s=0.5)


@pytest.fixture(scope="module")
def sim() -> Iterator[SimProcess]:
    with sim_process("--speed", "50") as process:
        yield process


@pytest.fixture
def upstream(sim: SimProcess) -> Upstream:
    endpoint = Endpoint("http://engine", str(sim.socket))
    model = sim.http.get("/v1/models").json()["data"][0]["id"]
    return Upstream(endpoint=endpoint, kind="sim", served_name=model, plugin=True, run_id="run-1")


def followed(upstream: Upstream, book: SessionBook) -> AbstractAsyncContextManager[Gateway]:
    """A gateway that knows its engine, and tells the book."""
    dialect = replace(NATIVE, served_name=upstream.served_name, max_model_len=262_144)
    return gateway(upstream, dialects=Speaks(dialect), book=book)


class Client:
    """Sends what Claude Code sends."""

    def __init__(self, served: Gateway, agent: Agent, model: str) -> None:
        self._url = f"http://127.0.0.1:{served.port}"
        self.conversation = Conversation(agent, model)

    async def ask(self, turn: Turn, number: int, **changes: Any) -> dict[str, Any]:
        """One turn; the whole answer, which stands in the history from then on."""
        body = self.conversation.body(turn, number) | {"stream": False} | changes
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            answer = await http.post(
                f"{self._url}/v1/messages?beta=true",
                json=body,
                headers=self.conversation.headers(),
            )
        answer.raise_for_status()
        message: dict[str, Any] = answer.json()
        (block,) = message["content"]
        text = block["input"]["command"] if block["type"] == "tool_use" else block["text"]
        self.conversation.answered(turn, text, block.get("id"))
        return message


def told(book: SessionBook, session: str = SESSION) -> Record:
    record = book.find(session)
    assert record is not None
    return record


async def test_two_turns_a_tool_and_a_sub_agent_are_one_session(upstream: Upstream) -> None:
    book = SessionBook(run_id=lambda: "run-1")
    async with followed(upstream, book) as served:
        main = Client(served, Agent(session=SESSION, system_words=900), upstream.served_name)
        explore = Agent(session=SESSION, name="Explore", system_words=500)
        await main.ask(EDIT, 0)
        await asyncio.sleep(0.2)
        await Client(served, explore, upstream.served_name).ask(Turn(adds=200, answer_tokens=9), 0)
        second = await main.ask(Turn(adds=300, answer_tokens=20), 1)
        await until(lambda: not told(book).live)

    record = told(book)
    first, sub, last = (session_view.request_row(entry) for entry in record.entries)
    assert (record.turns, record.sums().requests, record.origin) == (2, 3, "header")
    assert (first.agent, last.agent) == ("main", "main")
    assert sub.agent.startswith("Explore a")
    assert (sub.reread_tokens, sub.loss) == (0, Missing("nothing was lost"))
    (tool,) = first.tools
    assert (tool.name, tool.duration_s, tool.origin) == ("Edit", 0.5, "client")
    assert first.finish_reason == "tool_use"
    usage = second["usage"]
    assert last.reused_tokens == usage["cache_read_input_tokens"]
    assert last.prompt_tokens == usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert last.generated_tokens == 20
    # All but the last, unfilled block of the first prompt and its answer was found again.
    assert isinstance(last.reread_tokens, int)
    assert 0 <= last.reread_tokens < 32
    assert record.busy_s > 0


async def test_a_pruned_result_is_named_as_the_loss(upstream: Upstream) -> None:
    book = SessionBook()
    async with followed(upstream, book) as served:
        client = Client(served, Agent(session=SESSION, system_words=300), upstream.served_name)
        for number in range(4):
            await client.ask(EDIT, number)
        pruning = Turn(adds=100, answer_tokens=9, prunes=True)
        message = await client.ask(pruning, 4)
        await until(lambda: not told(book).live)

    (loss,) = told(book).losses
    assert (loss.kind, loss.turn, loss.block_kind, loss.message) == (
        "changed",
        5,
        "tool_result",
        3,
    )
    assert loss.cause == "tool_result of message 3 was pruned"
    lost = told(book).entries[-1].reread()
    assert lost is not None
    # What the engine computed is what was lost and what is new: some hundred words.
    computed = message["usage"]["input_tokens"]
    assert computed - 300 < lost[0] < computed


async def test_a_stream_that_its_client_leaves_is_aborted_and_over(upstream: Upstream) -> None:
    book = SessionBook()
    async with followed(upstream, book) as served:
        conversation = Conversation(Agent(session=SESSION, system_words=200), upstream.served_name)
        body = conversation.body(Turn(adds=20, answer_tokens=100_000), 0)
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as http,
            http.stream(
                "POST",
                f"http://127.0.0.1:{served.port}/v1/messages",
                json=body | {"max_tokens": 90_000},
                headers=conversation.headers(),
            ) as answer,
        ):
            lines = answer.aiter_lines()
            while "delta" not in await anext(lines):
                pass
            assert len(told(book).live) == 1
        await until(lambda: not told(book).live)

    record = told(book)
    assert (record.aborted, record.failed, record.sums().requests) == (1, 0, 1)
    assert session_view.request_row(record.entries[0]).finish_reason == "aborted"


async def test_a_prompt_that_does_not_fit_is_counted_as_an_overflow(upstream: Upstream) -> None:
    book = SessionBook()
    async with followed(upstream, book) as served:
        client = Client(served, Agent(session=SESSION, system_words=400_000), upstream.served_name)
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            await client.ask(Turn(adds=20, answer_tokens=5), 0)
        await until(lambda: not told(book).live)

    record = told(book)
    assert (record.overflows, record.failed, record.sums().prompt) == (1, 1, 0)


async def test_a_count_agrees_with_what_the_engine_then_reads(upstream: Upstream) -> None:
    book = SessionBook()
    async with followed(upstream, book) as served:
        client = Client(served, Agent(session=SESSION, system_words=200), upstream.served_name)
        body = client.conversation.body(EDIT, 0)
        counted = {key: body[key] for key in ("model", "messages", "system", "tools")}
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            url = f"http://127.0.0.1:{served.port}/v1/messages"
            answer = await http.post(f"{url}/count_tokens", json=counted)
            await http.post(url, json=body, headers=client.conversation.headers())
        await until(lambda: bool(told(book).entries) and not told(book).live)

    assert answer.json()["input_tokens"] == told(book).sums().prompt
    assert (book.counts.agreed, book.counts.error) == (1, None)


async def test_an_address_names_a_session_and_an_openai_client_has_one(upstream: Upstream) -> None:
    book = SessionBook()
    chat = {
        "model": upstream.served_name,
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 4,
    }
    async with followed(upstream, book) as served:
        url = f"http://127.0.0.1:{served.port}"
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            await http.post(f"{url}/s/night-run/v1/messages", json=chat)
            await http.post(f"{url}/v1/chat/completions", json=chat)
        await until(lambda: len(book.records()) == 2 and not any(r.live for r in book.records()))

    named, plain = book.records()
    assert (named.session, named.origin) == ("night-run", "prefix")
    assert plain.origin == "connection"
    assert plain.session.startswith("client-")
    row = session_view.request_row(plain.entries[0])
    assert (row.generated_tokens, row.reread_tokens) == (4, Missing("its prompt is not outlined"))


async def test_neither_a_text_nor_anything_personal_is_kept(upstream: Upstream) -> None:
    book = SessionBook()
    async with followed(upstream, book) as served:
        client = Client(served, Agent(session=SESSION, system_words=50), upstream.served_name)
        user = {"device_id": "d" * 64, "account_uuid": "acc-0001", "session_id": SESSION}
        body = {"metadata": {"user_id": json.dumps(user)}}
        await client.ask(EDIT, 0, **body)
        await client.ask(Turn(adds=30, answer_tokens=12), 1, **body)
        await until(lambda: not told(book).live)

    text = written(book)
    for word in ("window", "ledger", "socket", "gauge", "d" * 64, "acc-0001"):
        assert word not in text.replace("window_", "")
