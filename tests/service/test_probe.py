"""The test request tells what came, and what did not."""

from __future__ import annotations

import json

import pytest

from a40console.errors import NotServingError
from a40console.service.probe import probe_request
from tests.gateway.stub import SSE, Received, Reply, StubEngine, gateway


def answering(*events: object) -> StubEngine:
    async def handler(received: Received, reply: Reply) -> None:
        await reply.start(headers=SSE)
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            await reply.chunk(f"data: {text}\n\n".encode())
        await reply.chunk(b"data: [DONE]\n\n")
        await reply.end()

    return StubEngine(handler, plugin=True)


END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


async def probe(engine: StubEngine) -> dict[str, str]:
    async with engine, gateway(engine.upstream) as served:
        return await probe_request(f"http://127.0.0.1:{served.port}", None, "smollm2")


async def test_an_answer_with_its_figures() -> None:
    told = await probe(
        answering(
            {"choices": [{"delta": {"content": "Hel"}}]},
            {"choices": [{"delta": {"content": "lo"}}]},
            END,
            {"choices": [], "usage": {"completion_tokens": 2}},
        )
    )
    assert (told["text"], told["tokens"]) == ("Hello", "2")
    assert float(told["ttft_s"]) > 0


async def test_without_content_there_is_no_time_to_first_token() -> None:
    told = await probe(answering(END))
    assert told["text"] == ""
    assert told["ttft_s"] == "— (no content came)"
    assert told["tokens"] == "— (the engine sent no usage)"


@pytest.mark.parametrize("event", ["{not json", "[1]", "7", '{"choices": {"a": 1}}'])
async def test_what_is_no_event_is_the_engines_fault(event: str) -> None:
    with pytest.raises(NotServingError) as told:
        await probe(answering(event))
    assert told.value.evidence == event
