"""Servers that send for ever, say what a terminal obeys, or give a key back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from a40console.experiments import response_reading
from a40console.experiments.server_address import without_key
from tests.experiments.stream_server import CHAT, Answering, Asked, frame, reply_to, request
from tests.experiments.test_client_streams import streamed

KEY = "sk-0123456789abcdefABCDEF"
PIECE = b"z" * 65_536


async def for_ever(asked: Asked, *pieces: bytes) -> None:
    """The first piece, then the last again and again, until the client has had enough."""
    for piece in pieces:
        asked.writer.write(piece)
    while not asked.writer.is_closing():
        asked.writer.write(pieces[-1])
        await asked.writer.drain()


def sending(*pieces: bytes) -> Answering:
    async def answer(asked: Asked) -> None:
        await for_ever(asked, *pieces)

    return answer


def in_a_stream(*pieces: bytes) -> Answering:
    async def answer(asked: Asked) -> None:
        asked.begin()
        await for_ever(asked, *(frame(piece) for piece in pieces))

    return answer


async def test_a_head_that_does_not_end_is_an_error_at_once() -> None:
    reply, _ = await reply_to(sending(b"HTTP/1.1 200 OK\r\nX-A: ", PIECE), request())
    assert reply.sample.error == "the answer's head does not end"


@pytest.mark.parametrize(
    "answer",
    [
        in_a_stream(b"data: ", PIECE),
        in_a_stream(b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n' * 500),
        in_a_stream(b": nothing\n\n" * 5_000),
        sending(b"HTTP/1.1 500 No\r\ncontent-type: text/plain\r\n\r\n", PIECE),
    ],
    ids=["one line", "content", "comments", "a refusal"],
)
async def test_a_body_that_does_not_end_is_an_error_before_it_fills_the_memory(
    answer: Callable[[Asked], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_reading, "LARGEST_BYTES", 1024 * 1024)
    reply, _ = await reply_to(answer, request())
    assert reply.sample.error == "the answer is larger than 1 MiB"
    assert reply.sample.gaps_s == ()


@pytest.mark.parametrize("before", range(360, 400, 3))
async def test_a_key_that_a_server_gives_back_is_in_no_error_even_cut_short(before: int) -> None:
    async def answer(asked: Asked) -> None:
        said = "x" * before + asked.headers["authorization"]
        asked.whole("500 No", {"error": {"message": said}})

    reply, _ = await reply_to(answer, request(), token=KEY)
    assert KEY[:4] not in reply.sample.error
    assert reply.sample.error.startswith("HTTP 500: xxx")


def test_only_a_key_is_covered() -> None:
    assert without_key(f"it says {KEY}, and {KEY[:9]}", KEY) == "it says ***, and ***"
    assert without_key("it says sk-", KEY) == "it says sk-"
    assert without_key("nothing", "") == "nothing"


async def test_what_a_terminal_obeys_is_escaped_in_errors() -> None:
    said = {"error": {"message": "\x1b[2J half \ud800 \u202e"}}
    reply, _ = await reply_to(streamed(said), request(CHAT))
    assert reply.sample.error.isprintable()
    reply.sample.error.encode()


async def test_a_model_whose_name_is_half_a_character_is_asked_for_all_the_same() -> None:
    body = {"model": "\ud800", "messages": []}
    reply, asked = await reply_to(streamed("[DONE]"), request(body=body))
    assert asked.body["model"] == "?"
    assert "without the answer's end" in reply.sample.error
