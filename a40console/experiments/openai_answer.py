"""The OpenAI dialect: chat completions and completions, streamed or whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a40console.experiments.answer import NO_CACHE_FIGURE, Answer, count, error_text, said

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_BROKEN_OFF = frozenset({"abort", "error"})


def read_done(answer: Answer) -> None:
    """The `[DONE]` after the last chunk."""
    answer.happened("[DONE]")


def read_chunk(answer: Answer, at_s: float, chunk: Mapping[str, Any]) -> None:
    """One chunk of a stream, or a whole body: they differ in one name."""
    if chunk.get("error") or chunk.get("object") == "error":
        answer.happened("error")
        answer.fail(f"the server reported in its answer: {error_text(chunk)}")
        return
    usage = chunk.get("usage")
    for choice in chunk.get("choices") or ():
        if choice.get("index", 0) == 0:
            _read_choice(answer, at_s, choice)
    if usage:
        if not chunk.get("choices"):
            answer.happened("usage")
        _read_usage(answer, usage, chunk.get("timings") or {})


def _read_choice(answer: Answer, at_s: float, choice: Mapping[str, Any]) -> None:
    delta = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
    has_content = _read_delta(answer, delta)
    finish = choice.get("finish_reason")
    answer.arrived(at_s, content=has_content)
    if "role" in delta and not has_content:
        answer.happened("role")
    if choice.get("logprobs"):
        answer.logprobs += _logprobs(choice["logprobs"])
    if finish is not None:
        answer.happened("finish")
        answer.stop_reason = said(finish)
        if finish in _BROKEN_OFF:
            answer.fail(f"the server broke the answer off: {finish}")
        answer.ended = True


def _read_delta(answer: Answer, delta: Mapping[str, Any]) -> bool:
    """Whether there was content in it."""
    found = False
    text = said(delta.get("content")) or said(delta.get("refusal"))
    if text:
        answer.block("text").pieces.append(text)
        answer.happened("content")
        found = True
    for name in _THOUGHTS:
        thought = said(delta.get(name))
        if thought:
            answer.block("thinking").pieces.append(thought)
            answer.happened("reasoning")
            found = True
            break  # some servers tell the same under two names
    for position, call in enumerate(delta.get("tool_calls") or ()):
        found = _read_call(answer, call, position) or found
    return found


def _read_call(answer: Answer, call: Mapping[str, Any], position: int) -> bool:
    block = answer.block("tool_use", call.get("index", position))
    block.id = said(call.get("id")) or block.id
    function = call.get("function") or {}
    name, arguments = said(function.get("name")), said(function.get("arguments"))
    block.name += name
    block.pieces.append(arguments)
    answer.happened("tool_calls")
    return bool(name or arguments)


def _read_usage(answer: Answer, usage: Mapping[str, Any], timings: Mapping[str, Any]) -> None:
    """What was counted; llama.cpp tells what was cached in its timings too."""
    answer.prompt_tokens = count(usage.get("prompt_tokens"), answer.prompt_tokens)
    answer.generated_tokens = count(usage.get("completion_tokens"), answer.generated_tokens)
    details = usage.get("prompt_tokens_details") or {}
    cached = count(timings.get("cache_n"), NO_CACHE_FIGURE)
    answer.cached_tokens = count(details.get("cached_tokens"), cached)


def _logprobs(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Per token, in the chat's shape; completions tell columns."""
    if told.get("content"):
        return [
            {
                "token": each["token"],
                "logprob": each["logprob"],
                "top_logprobs": [
                    {"token": other["token"], "logprob": other["logprob"]}
                    for other in each.get("top_logprobs") or ()
                ],
            }
            for each in told["content"]
        ]
    tokens = told.get("tokens") or ()
    tops = told.get("top_logprobs") or [None] * len(tokens)
    return [
        {
            "token": token,
            "logprob": value,
            "top_logprobs": [
                {"token": other, "logprob": its} for other, its in (top or {}).items()
            ],
        }
        for token, value, top in zip(tokens, told.get("token_logprobs") or (), tops, strict=True)
    ]
