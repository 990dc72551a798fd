"""The public Python clients of both APIs, before real engines through the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest

from a40console.gateway.probing import Dialects
from a40console.gateway.upstream import Upstream
from tests.gateway.conversations import CALLED, CITY, FORCED, OVERFLOW, WEATHER, user
from tests.gateway.stub import Gateway, gateway, until

MODEL = "smollm2"
LONG = {"max_tokens": 2000, "messages": [user("Tell a long story about the sea.")]}
FUNCTION: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather",
        "parameters": CITY,
        "strict": True,
    },
}


def for_anthropic(body: dict[str, Any]) -> Any:
    """A request in the client's words: it has none for the temperature any more."""
    kept = {name: value for name, value in body.items() if name != "temperature"}
    return {**kept, "model": MODEL, "extra_body": {"temperature": 0}}


@pytest.fixture
async def served(real_engine: Upstream) -> AsyncIterator[Gateway]:
    async with gateway(real_engine, dialects=Dialects()) as made:
        yield made


@asynccontextmanager
async def claude(served: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    url = f"http://127.0.0.1:{served.port}"
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
        yield client


@asynccontextmanager
async def gpt(served: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"http://127.0.0.1:{served.port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


async def test_anthropic_streams_what_it_answers_whole(served: Gateway) -> None:
    asked = for_anthropic({"max_tokens": 24, "messages": [user("Say hi")]})
    async with claude(served) as client:
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            pieces = [text async for text in stream.text_stream]
            streamed = await stream.get_final_message()
    assert whole.content[0].type == "text"
    assert whole.content[0].text == "".join(pieces)
    assert streamed.content[0].type == "text"
    assert streamed.content[0].text == whole.content[0].text
    assert len(pieces) > 3
    assert streamed.stop_reason == whole.stop_reason == "max_tokens"
    assert streamed.usage.output_tokens == whole.usage.output_tokens == 24
    assert streamed.usage.input_tokens > 0


def needs_forced_calls(engine: Upstream) -> None:
    if engine.kind == "llamacpp":
        pytest.skip("llama.cpp does not hold this model to a call, whatever tool_choice says")


async def test_anthropic_calls_a_tool_and_takes_its_result(
    served: Gateway, real_engine: Upstream
) -> None:
    needs_forced_calls(real_engine)
    forced = for_anthropic(FORCED["any tool"])
    async with claude(served) as client:
        async with client.messages.stream(**forced) as stream:
            message = await stream.get_final_message()
        (block,) = message.content
        assert block.type == "tool_use"
        assert (block.name, block.input) == ("get_weather", {"city": "Rome"})
        assert message.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": block.id, "content": "Sunny"}
        turns = [
            *forced["messages"],
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": [result]},
        ]
        again: Any = {"model": MODEL, "max_tokens": 8, "messages": turns, "tools": [WEATHER]}
        answered = await client.messages.create(**again)
    assert answered.usage.output_tokens > 0


async def test_anthropic_takes_the_results_of_tools(served: Gateway) -> None:
    asked = for_anthropic({"max_tokens": 8, "messages": CALLED, "tools": [WEATHER]})
    async with claude(served) as client:
        answer = await client.messages.create(**asked)
    assert answer.content[0].type == "text"
    assert answer.stop_reason in ("end_turn", "max_tokens")


async def test_anthropic_is_told_of_a_prompt_that_is_too_long(served: Gateway) -> None:
    asked = for_anthropic(OVERFLOW)
    async with claude(served) as client:
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            await client.messages.create(**asked)
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            async with client.messages.stream(**asked) as stream:
                await stream.get_final_message()


async def test_anthropic_counts_and_lists(served: Gateway) -> None:
    prompt: Any = {"model": "claude-sonnet-5", "messages": CALLED, "tools": [WEATHER]}
    async with claude(served) as client:
        counted = await client.messages.count_tokens(**prompt)
        asked = await client.messages.create(**prompt, max_tokens=1)
        models = [model.id async for model in client.models.list()]
    usage = asked.usage
    assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert MODEL in models


async def test_a_client_of_anthropic_that_leaves_frees_the_engine(served: Gateway) -> None:
    asked: Any = {"model": MODEL, **LONG}
    async with claude(served) as client:
        async with client.messages.stream(**asked) as stream:
            async for _ in stream.text_stream:
                break
        left_s = time.monotonic()
        await until(lambda: served.meter.counts().aborted == 1)
        assert time.monotonic() - left_s < 1.0
        await next_answer_is_quick(client)


async def test_a_call_of_anthropic_that_is_cancelled_frees_the_engine(served: Gateway) -> None:
    asked: Any = {"model": MODEL, **LONG}
    async with claude(served) as client:
        waiting = asyncio.create_task(client.messages.create(**asked, timeout=60))
        await until(lambda: served.meter.live())
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: served.meter.counts().aborted == 1, 1.0)
        await next_answer_is_quick(client)


async def next_answer_is_quick(client: anthropic.AsyncAnthropic) -> None:
    """The engine has a slot again: it would tell the long story for half a minute."""
    began_s = time.monotonic()
    asked: Any = {"model": MODEL, "max_tokens": 2, "messages": [user("Hi")]}
    await client.messages.create(**asked)
    assert time.monotonic() - began_s < 5.0


async def test_openai_streams_what_it_answers_whole(served: Gateway) -> None:
    asked: Any = {"model": MODEL, "max_tokens": 24, "temperature": 0, "messages": [user("Say hi")]}
    async with gpt(served) as client:
        whole = await client.chat.completions.create(**asked)
        stream = await client.chat.completions.create(
            **asked, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == chunks[-1].usage.completion_tokens == 24


async def test_openai_calls_a_tool(served: Gateway, real_engine: Upstream) -> None:
    needs_forced_calls(real_engine)
    asked: Any = {
        "model": MODEL,
        "max_tokens": 80,
        "temperature": 0,
        "messages": [user("How is the weather in Rome?")],
        "tools": [FUNCTION],
        "tool_choice": "required",
    }
    async with gpt(served) as client:
        answer = await client.chat.completions.create(**asked)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert "Rome" in call.function.arguments


async def test_openai_is_told_of_a_prompt_that_is_too_long(served: Gateway) -> None:
    asked: Any = {**OVERFLOW, "model": MODEL}
    async with gpt(served) as client:
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(**asked)


async def test_openai_lists_the_model(served: Gateway) -> None:
    async with gpt(served) as client:
        assert MODEL in [model.id async for model in client.models.list()]


async def test_a_client_of_openai_that_leaves_frees_the_engine(served: Gateway) -> None:
    asked: Any = {"model": MODEL, **LONG}
    async with gpt(served) as client:
        stream = await client.chat.completions.create(**asked, stream=True)
        async for _ in stream:
            break
        await stream.close()
        await until(lambda: served.meter.counts().aborted == 1, 1.0)
    async with claude(served) as other:
        await next_answer_is_quick(other)
