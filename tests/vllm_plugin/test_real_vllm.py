"""The plugin inside a real vLLM: every row against what the clients and vLLM's counters say.

A40CONSOLE_TEST_ENGINES names the folder that ``.ci/engines.sh`` prepared, and
A40CONSOLE_TEST_VLLM the releases to start, one after the other (default 0.27.1).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.vllm_plugin import real_engine
from tests.vllm_plugin.real_engine import REPEATING, Engine, Server

pytestmark = real_engine.marks


@pytest.fixture(scope="module", params=real_engine.VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with real_engine.running(request.param) as started:
        yield started


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with real_engine.connected(server) as opened:
        yield opened


@pytest.fixture
def engine(server: Server, client: httpx.AsyncClient) -> Engine:
    return Engine(server, client)


async def test_nothing_is_told_without_the_token(server: Server, client: httpx.AsyncClient) -> None:
    wrong = {"Authorization": "Bearer " + "0" * 32}
    for headers in ({}, wrong, {"Authorization": server.token}):
        answer = await client.get("/a40console/v1/state", headers=headers)
        assert answer.status_code == 401
        assert server.token not in answer.text


async def test_streams_agree_with_their_clients_and_the_counters(engine: Engine) -> None:
    before = await engine.settled()
    prompts = ["Tell me of rain.", "Count from 1 to 40.", "Why is the sky blue?", REPEATING]
    chats = [
        asyncio.create_task(engine.chat(f"four-{number}", prompt, 40 + 10 * number))
        for number, prompt in enumerate(prompts)
    ]
    seen: dict[str, int] = {}
    while not all(chat.done() for chat in chats):
        state = await engine.state(before["sequence"])
        told = state["totals"]["generated_tokens"] - before["totals"]["generated_tokens"]
        rows = state["running"] + state["finished"]
        assert sum(row["generated_tokens"] for row in rows) == told
        for row in state["running"]:
            assert row["generated_tokens"] >= seen.get(row["id"], 0)
            seen[row["id"]] = row["generated_tokens"]
        await asyncio.sleep(0.1)
    usages = [await chat for chat in chats]

    after = await engine.settled(before["sequence"])
    rows_by_name = {row["external_id"]: row for row in after["finished"]}
    assert len(seen) == len(after["finished"]) == 4
    for number, usage in enumerate(usages):
        row = rows_by_name[f"chatcmpl-four-{number}"]
        assert row["generated_tokens"] == usage["completion_tokens"]
        assert row["prompt_tokens"] == usage["prompt_tokens"]
        assert row["cached_tokens"] == (usage["prompt_tokens_details"] or {})["cached_tokens"]
        assert row["max_tokens"] == 40 + 10 * number
        assert row["finish_reason"] in {"stop", "length"}
        assert 0 < row["first_token_s"] < 60
        assert row["queued_s"] >= 0
        assert row["prefill_s"] > 0
        assert row["arrival_unix_s"] + row["first_token_s"] <= row["last_token_unix_s"] + 0.001
    await _assert_books_balance(engine, after)


async def _assert_books_balance(engine: Engine, state: dict[str, Any]) -> None:
    """Rows, totals and vLLM's own counters say the same of the engine's whole life."""
    totals, counters = state["totals"], await engine.counters()
    every = (await engine.state())["finished"]
    assert sum(row["generated_tokens"] for row in every) == totals["generated_tokens"]
    assert counters["vllm:generation_tokens_total"] == (
        totals["generated_tokens"] + totals["discarded_tokens"]
    )
    assert counters["vllm:prompt_tokens_total"] == totals["prompt_tokens"]
    assert totals["prompt_tokens"] - totals["cached_tokens"] == totals["computed_prompt_tokens"]
    assert counters["vllm:iteration_tokens_total_count"] == totals["steps"]
    assert counters["vllm:num_preemptions_total"] == totals["preemptions"]
    assert counters["vllm:spec_decode_num_drafts_total"] == totals["drafts"]
    assert counters["vllm:spec_decode_num_draft_tokens_total"] == totals["draft_tokens"]
    assert counters["vllm:spec_decode_num_accepted_tokens_total"] == totals["accepted_tokens"]
    assert sum(totals["accepted_per_position"]) == totals["accepted_tokens"]
    assert sum(totals["drafted_per_position"]) == totals["draft_tokens"]
    assert totals["started"] == totals["finished"] + totals["aborted"] == state["sequence"]


async def test_speculation_shows_in_tokens_per_pass(engine: Engine) -> None:
    before = await engine.settled()
    usage = await engine.chat("repeat", REPEATING, 80)
    after = await engine.settled(before["sequence"])
    (row,) = after["finished"]
    assert row["generated_tokens"] == usage["completion_tokens"]
    assert 0 < row["passes"] < row["generated_tokens"]
    # Alone in the engine, it took part in every step that gave tokens.
    assert row["passes"] == after["totals"]["steps"] - before["totals"]["steps"]
    assert after["totals"]["prefill_only_steps"] - before["totals"]["prefill_only_steps"] == 1
    accepted = after["totals"]["accepted_tokens"] - before["totals"]["accepted_tokens"]
    assert 0 <= row["passes"] + accepted - row["generated_tokens"] <= 5


async def test_a_client_that_leaves_is_counted(engine: Engine) -> None:
    before = await engine.settled()
    chat = asyncio.create_task(engine.chat("leaver", "Write a long story.", 2000, ignore_eos=True))
    row: dict[str, Any] = {"generated_tokens": 0}
    while row["generated_tokens"] < 5:
        await asyncio.sleep(0.1)
        rows = (await engine.state())["running"]
        row = rows[0] if rows else row
    assert row["phase"] == "decode"
    chat.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await chat
    after = await engine.settled(before["sequence"])
    (ended,) = after["finished"]
    assert ended["finish_reason"] == "abort"
    assert ended["external_id"] == "chatcmpl-leaver"
    assert row["generated_tokens"] <= ended["generated_tokens"] < 2000
    assert after["totals"]["aborted"] == before["totals"]["aborted"] + 1
    await _assert_books_balance(engine, after)


async def test_parallel_choices_are_a_row_each(engine: Engine) -> None:
    before = await engine.settled()
    usage = await engine.chat("choices", "Name a colour.", 20, n=2, temperature=0.8, seed=1)
    after = await engine.settled(before["sequence"])
    assert [row["external_id"] for row in after["finished"]] == ["chatcmpl-choices"] * 2
    generated = sum(row["generated_tokens"] for row in after["finished"])
    assert generated == usage["completion_tokens"]
    await _assert_books_balance(engine, after)


async def test_a_stop_string_ends_a_row_where_the_client_does(engine: Engine) -> None:
    before = await engine.settled()
    usage = await engine.chat("stopped", REPEATING, 80, stop=[" mat"])
    after = await engine.settled(before["sequence"])
    (row,) = after["finished"]
    assert row["finish_reason"] == "stop"
    assert row["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] > 0
    assert row["generated_tokens"] == usage["completion_tokens"] < 80
    await _assert_books_balance(engine, after)


async def test_messages_agree_with_their_usage(engine: Engine) -> None:
    before = await engine.settled()
    body = {
        "model": "smollm2",
        "max_tokens": 24,
        "messages": [{"role": "user", "content": "Say something of the sea."}],
    }
    answer = await engine.client.post("/v1/messages", json=body)
    assert answer.status_code == 200, answer.text
    after = await engine.settled(before["sequence"])
    (row,) = after["finished"]
    assert row["generated_tokens"] == answer.json()["usage"]["output_tokens"]


async def test_phases_before_the_first_token_are_told_truly(engine: Engine) -> None:
    before = await engine.settled()
    long_prompts = [f"{number} " * 900 + "What was that?" for number in range(2)]
    chats = [
        asyncio.create_task(engine.chat(f"long-{number}", prompt, 60, ignore_eos=True))
        for number, prompt in enumerate([*long_prompts, *["Tell me a tale."] * 5])
    ]
    phases: dict[str, list[str | None]] = {}
    waited = False
    while not all(chat.done() for chat in chats):
        state = await engine.state(before["sequence"])
        told = [row["phase"] for row in state["running"]]
        assert told.count("queued") <= (state["scheduler"] or {"waiting": 0})["waiting"]
        assert told.count("prefill") + told.count("decode") <= 4
        waited = waited or told.count("queued") >= 2
        for row in state["running"]:
            phases.setdefault(row["external_id"], []).append(row["phase"])
        await asyncio.sleep(0.05)
    for chat in chats:
        await chat
    assert waited
    order = {"queued": 1, "prefill": 2, "decode": 3}
    for name, ever in phases.items():
        known = [order[phase] for phase in ever if phase]
        assert known == sorted(known), name
    assert any("prefill" in ever for ever in phases.values())
    await _assert_books_balance(engine, await engine.settled())


async def test_a_pause_is_told(engine: Engine) -> None:
    assert (await engine.settled())["paused"] is False
    (await engine.control("pause")).raise_for_status()
    chat = asyncio.create_task(engine.chat("paused", "Say hello.", 8))
    try:
        await asyncio.sleep(0.5)
        state = await engine.state()
        assert state["paused"] is True
        assert [row["phase"] for row in state["running"]] in ([None], ["queued"])
    finally:
        (await engine.control("resume")).raise_for_status()
    await chat
    assert (await engine.settled())["paused"] is False


def test_polls_stay_out_of_the_access_log_and_refusals_do_not(server: Server) -> None:
    lines = [line for line in server.log.read_text().splitlines() if "/a40console/v1/state" in line]
    assert any("401" in line for line in lines)
    assert not any('" 200' in line for line in lines)
