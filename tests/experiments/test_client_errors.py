"""What goes wrong is an error, and never a latency or a figure."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence

import pytest

from a40console.experiments.arm_totals import client_totals, doubts_of_arm
from a40console.experiments.bench import RunStoppedError
from a40console.experiments.client import STOPPED
from a40console.model.figures import Missing, number
from a40console.model.run_record import Sample
from tests.experiments.stream_server import (
    CHAT,
    MESSAGES,
    Answering,
    Asked,
    Server,
    chunk,
    client_of,
    reply_to,
    request,
    serving,
    usage,
)
from tests.experiments.test_client_streams import MESSAGE, streamed

LONG_S = 60.0


async def error_of(answer: Answering, path: str = CHAT, **given: object) -> Sample:
    reply, _ = await reply_to(answer, request(path, **given), token="k-secret")
    sample = reply.sample
    assert isinstance(sample.ttft_s, Missing)
    assert isinstance(sample.total_s, Missing)
    assert sample.gaps_s == ()
    return sample


ENDS = {
    "event: error": (
        (*MESSAGE[:8], {"type": "error", "error": {"type": "overloaded", "message": "too busy"}}),
        "the server reported in its answer: too busy",
    ),
    "no message_stop": (MESSAGE[:-1], "the stream stopped without the answer's end"),
    "an event that is no JSON": ((*MESSAGE[:8], "{oh"), "an event that nobody understands: {oh"),
}


@pytest.mark.parametrize("case", ENDS)
async def test_a_message_that_does_not_end_well(case: str) -> None:
    events, why = ENDS[case]
    assert (await error_of(streamed(*events), MESSAGES)).error == why


CHATS: dict[str, tuple[Sequence[object], str]] = {
    "vLLM's error before [DONE]": (
        (chunk("a"), {"error": {"message": "EngineCore died", "code": 500}}, "[DONE]"),
        "the server reported in its answer: EngineCore died",
    ),
    "only [DONE]": ((chunk("a"), "[DONE]"), "the stream stopped without the answer's end"),
    "aborted": (
        (chunk("a"), chunk("", "abort"), "[DONE]"),
        "the server broke the answer off: abort",
    ),
    "another shape": (
        ({"choices": [{"index": 0, "delta": 3}]},),
        'an event that nobody understands: {"choices": [{"index": 0, "delta": 3}]}',
    ),
}


@pytest.mark.parametrize("case", CHATS)
async def test_a_chat_that_does_not_end_well(case: str) -> None:
    events, why = CHATS[case]
    assert (await error_of(streamed(*events))).error == why


async def test_a_connection_that_is_cut() -> None:
    sample = await error_of(streamed(chunk("a"), chunk("b"), ends=False))
    assert sample.error.startswith("the connection was closed in the middle of the answer")


REFUSALS = {
    '{"error":{"message":"The engine is busy","code":503}}': "HTTP 503: The engine is busy",
    '{"error":"Unauthorized"}': "HTTP 503: Unauthorized",
    '{"detail":[{"msg":"Field required"}]}': "HTTP 503: Field required",
    "<html>Bad gateway</html>": "HTTP 503: <html>Bad gateway</html>",
    "": "HTTP 503: no reason given",
    '"no such key: k-secret"': "HTTP 503: no such key: ***",
}


@pytest.mark.parametrize("body", REFUSALS)
async def test_a_refusal_says_why_and_never_the_key(body: str) -> None:
    async def answer(asked: Asked) -> None:
        asked.whole("503 Service Unavailable", body)

    assert (await error_of(answer)).error == REFUSALS[body]


async def test_an_answer_that_is_no_stream_and_one_that_is_no_http() -> None:
    async def whole(asked: Asked) -> None:
        asked.whole("200 OK", {"choices": []})

    async def noise(asked: Asked) -> None:
        asked.writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    assert "as a whole where a stream was asked for" in (await error_of(whole)).error
    assert "the answer is no HTTP" in (await error_of(noise)).error


async def test_an_answer_that_does_not_end_in_time() -> None:
    async def answer(asked: Asked) -> None:
        asked.begin()
        asked.write(chunk("a"))
        await asyncio.sleep(LONG_S)

    sample = await error_of(answer, timeout_s=0.3)
    assert sample.error == "the answer did not end within 0.3 s"


async def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with client_of(Server(f"http://127.0.0.1:{port}")) as run:
        sample = (await run.client.send(request())).sample
    assert sample.error.startswith("cannot connect: ")
    assert "refused" in sample.error.lower()


async def test_an_address_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=re.escape("'localhost:8000' is no address")):
        async with client_of(Server("localhost:8000")):
            pass


async def test_one_in_ten_fails_and_is_in_no_latency() -> None:
    """Failed requests that end at once make a mean better (guidellm#444)."""
    answered = 0

    async def answer(asked: Asked) -> None:
        nonlocal answered
        answered += 1
        if answered % 10 == 0:
            asked.whole("500 Internal Server Error", {"error": "no"})
            return
        await asyncio.sleep(0.1)
        asked.begin()
        asked.write(chunk("a", "stop"), usage(10, 1, 0), "[DONE]")
        asked.end()

    async with serving(answer) as server, client_of(server) as run:
        await run.client.closed([[request(index=i) for i in range(5)] for _ in range(8)])
    failed = [sample for sample in run.samples if sample.error]
    times = [number(sample.total_s) for sample in run.samples if not sample.error]
    assert (len(failed), len(times)) == (4, 36)
    assert all(time is not None and time >= 0.1 for time in times)
    totals = client_totals(run.samples)
    assert (totals["requests"], totals["errors"], totals["prompt_tokens"]) == (36, 4, 360)
    (doubt,) = doubts_of_arm("a", wall_s=1.0, client=totals, server={}, machine={})
    assert (doubt.code, doubt.invalidates) == ("request-errors", False)
    assert "4 of 40" in doubt.text


async def test_stopping_ends_what_is_in_flight_and_what_is_still_to_come() -> None:
    begun = asyncio.Event()

    async def answer(asked: Asked) -> None:
        asked.begin()
        asked.write(chunk("a"))
        begun.set()
        await asyncio.sleep(LONG_S)

    async with serving(answer) as server, client_of(server) as run:
        streams = [[request(), request()], [request(due_s=LONG_S)]]
        work = asyncio.create_task(run.client.closed(streams))
        await begun.wait()
        run.stop.set()
        with pytest.raises(RunStoppedError):
            async with asyncio.timeout(LONG_S / 2):
                await work
        with pytest.raises(RunStoppedError):
            await run.client.send(request())
    assert [sample.error for sample in run.samples] == [STOPPED]
    assert len(server.asked) == 1


async def test_a_connection_that_the_server_closed_meanwhile_costs_no_request() -> None:
    """llama.cpp's server promises to keep a connection, and closes it after a stream."""

    async def once(asked: Asked) -> None:
        if asked.writer in used:
            asked.writer.close()
            return
        used.add(asked.writer)
        asked.begin()
        asked.write(chunk("so", "stop"), usage(2, 1), "[DONE]")
        asked.end()

    used: set[asyncio.StreamWriter] = set()
    async with serving(once) as server, client_of(server) as run:
        replies = [await run.client.send(request()) for _ in range(3)]
    assert [reply.text for reply in replies] == ["so"] * 3
    assert [sample.error for sample in run.samples] == [""] * 3
    assert server.connections == 3


async def test_a_server_that_closes_at_every_request_is_asked_no_third_time() -> None:
    async def never(asked: Asked) -> None:
        asked.writer.close()

    async with serving(never) as server, client_of(server) as run:
        reply = await run.client.send(request())
    assert "closed before it answered" in reply.sample.error
    assert len(server.asked) == 1
