"""Feeds the answer's way with whatever a coverage-guided fuzzer finds; run by `test_sse`.

Run by hand for as long as wanted:
`python -m tests.fuzz.run_atheris tests.fuzz.sse_target CORPUS_FOLDER`.
"""

from __future__ import annotations

from a40console.gateway.anthropic.answers import NativeAnswer, TranslatedAnswer
from a40console.gateway.anthropic.guard import Guard
from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.meter import Meter
from a40console.gateway.openai import OpenAIReader
from a40console.gateway.translation import ChatToMessages
from tests.gateway.wire import read_stream


def once(data: bytes) -> None:
    """One engine's stream, by both routes, in pieces: the client's is valid.

    The first byte says how long the pieces are, and whether the engine's connection broke.
    """
    first, text = (data[0], data[1:]) if data else (0, b"")
    size, broken = 1 + first % 64, first >= 128
    for answer in (native(), translated()):
        passed = [answer.feed(text[at : at + size]) for at in range(0, len(text), size)]
        passed.append(answer.end("The engine ended this answer.", broken=broken))
        read_stream(b"".join(passed))


def native() -> NativeAnswer:
    """The way of an engine's own messages."""
    meter = Meter()
    reader = MessagesReader(meter, meter.accept("messages", "a40-1"))
    return NativeAnswer(reader, Guard(model="m", request_id="a40-1"))


def translated() -> TranslatedAnswer:
    """The way of a chat completion's chunks."""
    meter = Meter()
    reader = OpenAIReader(meter, meter.accept("messages", "a40-1"))
    guard = Guard(model="m", request_id="a40-1")
    return TranslatedAnswer(reader, guard, ChatToMessages("m", "msg_1"))
