"""OpenAI's routes: what is added to a request so that it can be counted, and taken off again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from a40console.gateway.answer import finish_reason, text_length, tokens
from a40console.gateway.members import without
from a40console.gateway.meter import Meter, Passage
from a40console.gateway.sse import data_span
from a40console.gateway.upstream import Upstream

_DONE = b"[DONE]"
_TEXTS = frozenset({"content", "reasoning", "reasoning_content", "refusal", "text"})


@dataclass(frozen=True, slots=True)
class Additions:
    """What a request gets that its client did not ask for, and what comes back because of it."""

    member: tuple[str, Any] | None = None
    """A top-level member to set in the body."""

    chunk_usage: bool = False
    """Usage on chunks with choices is ours."""

    final_usage: bool = False
    """The last chunk, usage without choices, is ours."""

    chunk_timings: bool = False
    """llama.cpp's timings on chunks before the last are ours; on the last one they always stand."""


NOTHING = Additions()


def additions_for(upstream: Upstream, asked: dict[str, Any]) -> Additions:
    """How this request is counted on this engine.

    `asked` holds what the client wrote for `stream`, `stream_options` and `timings_per_token`.
    vLLM reports its exact count on each chunk with `continuous_usage_stats`; llama.cpp ignores
    that and has `timings_per_token`. An engine that is not ours gets only what OpenAI defines.
    """
    if asked.get("stream") is not True or upstream.plugin:
        return NOTHING
    if upstream.kind == "llamacpp":
        return _timings(asked.get("timings_per_token"))
    wanted: tuple[str, ...] = ("include_usage",)
    if upstream.kind not in ("foreign", "attached"):
        wanted = ("include_usage", "continuous_usage_stats")
    return _usage(asked.get("stream_options"), wanted)


def _timings(asked: object) -> Additions:
    if asked is True:
        return NOTHING
    return Additions(("timings_per_token", True), chunk_timings=True)


def _usage(asked: object, wanted: tuple[str, ...]) -> Additions:
    options = {} if asked is None else asked
    if not isinstance(options, dict) or all(options.get(name) for name in wanted):
        return NOTHING
    return Additions(
        ("stream_options", {**options, **dict.fromkeys(wanted, True)}),
        chunk_usage=True,
        final_usage=not options.get("include_usage"),
    )


class OpenAIReader:
    """Reads the answers of chat completions and completions."""

    def __init__(self, meter: Meter, passage: Passage, additions: Additions = NOTHING) -> None:
        self.passage = passage
        self.complete = False
        self.failed = False
        self._meter = meter
        self._additions = additions
        self._by_choice: dict[int, int] = {}

    def event(self, event: bytes) -> bytes:
        """Read one event of the stream, and cut from it what the client did not ask for."""
        span = data_span(event)
        if span is None:
            return event
        data = event[span[0] : span[1]]
        if data == _DONE:
            self.complete = True
            return event
        try:
            text = data.decode()
            chunk = json.loads(text)
            if not isinstance(chunk, dict):
                return event
            choices = _objects(chunk.get("choices"))
            self._read(chunk, choices)
            ours = self._ours(chunk, choices)
            if ours is None:
                return event
            passed = without(text, ours) if choices else None
        except (ValueError, RecursionError):
            return event
        return b"" if passed is None else event[: span[0]] + passed.encode() + event[span[1] :]

    def ended(self) -> bool:
        """Whether a stream that the engine closes here is whole: `[DONE]` or at least a finish."""
        return self.complete or self.passage.finish_reason is not None

    def whole(self, body: bytes) -> None:
        """Read an answer that is not a stream: its counts and how it finished."""
        try:
            answer = json.loads(body.decode())
        except (ValueError, RecursionError):
            return
        if not isinstance(answer, dict):
            return
        for choice in _objects(answer.get("choices")):
            self._finish(choice)
            message = choice.get("message")
            self.passage.characters += _length(message if isinstance(message, dict) else choice)
        self._count(answer, choices=[])

    def read(self, chunk: dict[str, Any]) -> None:
        """Read one chunk of the stream, for a client that is told of it in another API."""
        self._read(chunk, _objects(chunk.get("choices")))

    def _read(self, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        """Take a chunk's content, counts and end."""
        if chunk.get("error") and not choices:
            self.failed = True
        length = 0
        for choice in choices:
            delta = choice.get("delta")
            length += _length(delta if isinstance(delta, dict) else choice)
            self._finish(choice)
        if length:
            self._meter.content(self.passage, length)
        self._count(chunk, choices)

    def _ours(self, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> str | None:
        """The member that the client did not ask for; without choices the chunk is all ours."""
        added = self._additions
        if "usage" in chunk and (added.chunk_usage if choices else added.final_usage):
            return "usage"
        running = choices and all(choice.get("finish_reason") is None for choice in choices)
        return "timings" if added.chunk_timings and running and "timings" in chunk else None

    def _count(self, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        """Usage if the chunk has any, else llama.cpp's timings."""
        passage = self.passage
        if isinstance(usage := chunk.get("usage"), dict):
            details = usage.get("prompt_tokens_details")
            prompt, cached = tokens(usage, "prompt_tokens"), tokens(details, "cached_tokens")
            generated = tokens(usage, "completion_tokens")
        elif isinstance(timings := chunk.get("timings"), dict):
            computed, cached = tokens(timings, "prompt_n"), tokens(timings, "cache_n")
            prompt = None if computed is None else computed + (cached or 0)
            generated = tokens(timings, "predicted_n")
        else:
            return
        passage.prompt_tokens = passage.prompt_tokens if prompt is None else prompt
        passage.cached_tokens = passage.cached_tokens if cached is None else cached
        if generated is None:
            return
        if choices:
            # A chunk counts the tokens of its own choice only.
            index = choices[0].get("index")
            self._by_choice[index if isinstance(index, int) else 0] = generated
            passage.progressed(self._meter.clock(), sum(self._by_choice.values()))
        else:
            passage.totalled(generated)

    def _finish(self, choice: dict[str, Any]) -> None:
        reason = finish_reason(choice.get("finish_reason"))
        if reason is not None:
            self.passage.finish_reason = reason


def _length(delta: dict[str, Any]) -> int:
    """The characters that a delta, a message or a text completion adds for the reader."""
    length = 0
    for key, value in delta.items():
        if isinstance(value, str):
            length += len(value) if key in _TEXTS else 0
        elif key == "tool_calls":
            length += sum(map(_call_length, _objects(value)))
    return length


def _call_length(call: dict[str, Any]) -> int:
    function = call.get("function")
    if not isinstance(function, dict):
        return 0
    return text_length(function.get("name")) + text_length(function.get("arguments"))


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
