"""What the client makes of streams: tokens from usage, stamps of content, every kind of end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from a40console.experiments.client import NOT_STREAMED
from a40console.model.figures import Missing, number
from a40console.model.run_record import NO_USAGE
from tests.experiments.stream_server import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    Answering,
    Asked,
    chunk,
    client_of,
    reply_to,
    request,
    role,
    serving,
    usage,
)

LATE_S = 0.2


def streamed(*events: object, ends: bool = True) -> Answering:
    """Everything at once."""

    async def answer(asked: Asked) -> None:
        asked.begin()
        asked.write(*events)
        if ends:
            asked.end()
        else:
            await asked.writer.drain()
            asked.writer.close()

    return answer


async def test_tokens_come_from_usage_and_not_from_chunks() -> None:
    """With speculation a chunk holds a pass (vllm#35471)."""
    four = [chunk("four tokens at once ") for _ in range(4)]
    answer = streamed(role(), *four, chunk("", "length"), usage(9, 16, 4), "[DONE]")
    reply, asked = await reply_to(answer, request())
    sample = reply.sample
    assert sample.error == ""
    assert (sample.prompt_tokens, sample.cached_tokens, sample.generated_tokens) == (9, 4, 16)
    assert len(sample.gaps_s) == 3
    assert reply.text == "four tokens at once " * 4
    assert reply.events == ("role", "content", "finish", "usage", "[DONE]")
    assert (reply.status, reply.stop_reason) == (200, "length")
    assert asked.body["stream_options"] == {"include_usage": True}


async def test_without_usage_the_tokens_are_missing() -> None:
    reply, _ = await reply_to(streamed(chunk("a"), chunk("b", "stop"), "[DONE]"), request())
    sample = reply.sample
    assert sample.error == ""
    assert sample.generated_tokens == sample.prompt_tokens == NO_USAGE
    assert number(sample.total_s) is not None


async def test_first_content_begins_and_last_content_ends_the_latencies() -> None:
    """Neither the role, nor `[DONE]`, nor what is sent after the last word counts."""

    async def answer(asked: Asked) -> None:
        asked.begin()
        asked.write(role())
        await asyncio.sleep(LATE_S)
        asked.write(chunk("first"))
        await asyncio.sleep(LATE_S)
        asked.write(chunk(" last"))
        await asyncio.sleep(5 * LATE_S)
        asked.write(chunk("", "stop"), usage(3, 2), "[DONE]")
        asked.end()

    async with serving(answer) as server, client_of(server) as run:
        sample = (await run.client.send(request())).sample
        took_s = run.clock()
    ttft_s, total_s = number(sample.ttft_s), number(sample.total_s)
    assert ttft_s is not None
    assert total_s is not None
    assert ttft_s >= LATE_S
    assert total_s - ttft_s == pytest.approx(sum(sample.gaps_s), abs=1e-5)
    assert took_s - sample.due_s - total_s >= 4 * LATE_S
    assert len(sample.gaps_s) == 1


async def test_thoughts_and_tool_calls_are_content() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"a'}}
    more = {"index": 0, "function": {"arguments": '": 1}'}}
    events = [
        role(),
        {"choices": [{"index": 0, "delta": {"reasoning": "hm"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [more]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        usage(5, 9),
        "[DONE]",
    ]
    reply, _ = await reply_to(streamed(*events), request())
    assert reply.sample.error == ""
    assert len(reply.sample.gaps_s) == 2
    assert reply.text == ""
    assert reply.blocks == (
        {"type": "thinking", "text": "hm"},
        {"type": "tool_use", "name": "read", "id": "c1", "arguments": '{"a": 1}'},
    )


async def test_a_piece_of_a_character_is_a_pass_but_not_the_first_content() -> None:
    events = [chunk(""), chunk("a"), chunk(""), chunk("é"), chunk(""), chunk("", "stop")]
    reply, _ = await reply_to(streamed(*events, usage(1, 5), "[DONE]"), request())
    assert len(reply.sample.gaps_s) == 2


MESSAGE = (
    {"type": "message_start", "message": {"usage": {"input_tokens": 37, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "so"},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "yes"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t1", "name": "read", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"p": 1}'},
    },
    {"type": "content_block_stop", "index": 2},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 32, "output_tokens": 19},
    },
    {"type": "message_stop"},
)


async def test_messages_of_the_anthropic_dialect() -> None:
    reply, asked = await reply_to(
        streamed(*MESSAGE), request(MESSAGES), token="k-secret", dialect="anthropic"
    )
    sample = reply.sample
    assert sample.error == ""
    assert (sample.prompt_tokens, sample.cached_tokens, sample.generated_tokens) == (37, 32, 19)
    assert (reply.text, reply.stop_reason) == ("yes", "tool_use")
    assert [block["type"] for block in reply.blocks] == ["thinking", "text", "tool_use"]
    assert reply.blocks[2]["arguments"] == '{"p": 1}'
    assert reply.events[:3] == ("message_start", "ping", "content_block_start")
    assert reply.events[-2:] == ("message_delta", "message_stop")
    assert "stream_options" not in asked.body
    assert asked.headers["x-api-key"] == "k-secret"
    assert asked.headers["authorization"] == "Bearer k-secret"


async def test_a_message_without_usage_at_its_end_has_no_count() -> None:
    """The 1 of `message_start` is no figure."""
    bare = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
        if event["type"] == "message_delta"
        else event
        for event in MESSAGE
    ]
    reply, _ = await reply_to(streamed(*bare), request(MESSAGES))
    assert reply.sample.error == ""
    assert reply.sample.generated_tokens == NO_USAGE


async def test_logprobs_of_chats_and_completions_look_alike() -> None:
    top = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2.0}]
    content = [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": top}]
    chat = chunk("a", "stop")
    chat["choices"][0]["logprobs"] = {"content": content}
    columns = {
        "tokens": ["a"],
        "token_logprobs": [-0.1],
        "top_logprobs": [{"a": -0.1, "b": -2.0}],
    }
    line = {"choices": [{"index": 0, "text": "a", "logprobs": columns, "finish_reason": "stop"}]}
    for path, event in ((CHAT, chat), (COMPLETIONS, line)):
        reply, _ = await reply_to(streamed(event, usage(1, 1), "[DONE]"), request(path))
        assert reply.sample.error == ""
        assert reply.logprobs == ({"token": "a", "logprob": -0.1, "top_logprobs": top},)


async def test_events_of_any_size_come_whole() -> None:
    """64 KB buffers are what other clients stumble over (vllm#39963)."""
    big = "x" * 1_000_000
    answer = streamed(chunk(big), chunk("y" * 200_000, "stop"), usage(1, 2))
    reply, _ = await reply_to(answer, request())
    assert reply.sample.error == ""
    assert len(reply.text) == 1_200_000


async def test_an_answer_that_is_not_streamed() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    message = {"role": "assistant", "content": "ok", "tool_calls": [call]}
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }

    async def answer(asked: Asked) -> None:
        asked.whole("200 OK", body)

    async with serving(answer) as server, client_of(server) as run:
        reply = await run.client.send_whole(request())
    assert "stream" not in server.asked[0].body
    assert reply.sample.error == ""
    assert reply.sample.ttft_s == NOT_STREAMED
    assert number(reply.sample.total_s) is not None
    assert (reply.text, reply.stop_reason, reply.sample.generated_tokens) == ("ok", "tool_calls", 3)
    assert reply.blocks[1]["name"] == "read"
    assert isinstance(reply.sample.cached_tokens, Missing)


async def test_counting_tokens_is_no_request_of_the_engine() -> None:
    async def answer(asked: Asked) -> None:
        asked.whole("200 OK", {"input_tokens": 21})

    async with serving(answer) as server, client_of(server) as run:
        reply = await run.client.send_whole(request(MESSAGES + "/count_tokens"))
    assert (reply.sample.role, reply.sample.prompt_tokens, reply.sample.error) == ("count", 21, "")


async def test_a_unix_socket_and_an_address_that_ends_in_v1(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    async with serving(streamed(chunk("a", "stop"), usage(1, 1)), path) as server:
        server.url += "/v1"
        async with client_of(server, socket_path=path) as run:
            assert (await run.client.send(request())).sample.error == ""
    assert server.asked[0].path == CHAT
