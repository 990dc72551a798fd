"""From a request's body to an order for the engine, and the refusals that vLLM would give. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, get_args
from zlib import crc32

from a40console.sim.requests import Order
from a40console.sim.script import Piece, tokens_of
from a40console.sim.settings import Settings
from a40console.sim.sheets import Regime
from a40console.sim.text import token_ids, tokenize

SHORTEST_ANSWER, LONGEST_ANSWER = 40, 420
"""Tokens of an answer whose length nobody asked for."""

_REGIMES: tuple[Regime, ...] = get_args(Regime)
_GIBBERISH = ("!",) * LONGEST_ANSWER
"""As from weights that are none: one token without end."""

_CODE_MARKS = ("```", "def ", "class ", "refactor", "rename", "type annotation")


class RefusedError(Exception):
    """A request that vLLM would refuse; the text is its message."""

    def __init__(self, message: str, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was understood."""

    order: Order
    model: str
    stream: bool
    tool: str | None
    """The tool that the answer calls; None for an answer in words."""

    pieces: tuple[Piece, ...] = ()
    """What a script answers; empty where none does."""

    include_usage: bool = False
    continuous_usage: bool = False

    @property
    def calls(self) -> bool:
        """Whether the answer calls a tool."""
        return self.tool is not None or any(piece.kind == "tool" for piece in self.pieces)


def read(
    settings: Settings, route: str, body: Mapping[str, Any], request_id: str, *, depth: int
) -> Asked:
    """The request.

    What the model says is asked for under `vllm_xargs`, vLLM's own member for extensions:
    `answer_tokens`, `regime` and `tool`. No tool is called that was not asked for there, or forced
    by a chat request's `tool_choice`.

    Args:
        settings: How the engine was started.
        route: `messages`, `chat` or `completions`.
        body: As it came.
        request_id: What the client or its proxy calls it.
        depth: Draft tokens of a pass, in force now.

    Raises:
        RefusedError: If vLLM would not serve it.
    """
    model = body.get("model")
    if model is not None and model != settings.served_name:
        aliases = f"Valid aliases: {settings.served_name}."
        raise RefusedError(f"The model `{model}` does not exist. {aliases}", 404, "model")
    text = _prompt_text(route, body)
    prompt = token_ids(text)
    extras = body.get("vllm_xargs")
    extras = extras if isinstance(extras, dict) else {}
    seed = crc32(text[-4096:].encode()) ^ _whole(body.get("seed"), 0)
    longest = _longest(settings, route, body, len(prompt))
    regime = _regime(extras, text[-2000:], body)
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    junk = settings.faults.has("junk")
    script = settings.script
    pieces = () if junk else script.answer(newest_turn(route, body)) or _forced(route, body)
    words = _GIBBERISH if junk else tokens_of(pieces)
    external = f"cmpl-{request_id}-0" if route == "completions" else f"chatcmpl-{request_id}"
    order = Order(
        request_id=f"{external}-{crc32(request_id.encode()):08x}",
        external_id=external,
        prompt=prompt,
        max_tokens=longest,
        answer_tokens=len(words) or _answer_tokens(extras, body, longest, seed),
        words=words,
        regime=regime,
        seed=seed,
        garbled=settings.sheet.corrupts_code and depth > 0 and regime != "prose",
    )
    return Asked(
        order=order,
        model=settings.served_name,
        stream=body.get("stream") is True,
        tool=str(extras["tool"]) if extras.get("tool") and not pieces else None,
        pieces=pieces,
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )


def _forced(route: str, body: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The call of the function that the client insists on, each argument as its schema allows."""
    choice = body.get("tool_choice")
    if route != "chat" or not isinstance(choice, dict):
        return ()
    wanted = (choice.get("function") or {}).get("name")
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        if function.get("name") == wanted:
            schema = (function.get("parameters") or {}).get("properties") or {}
            given = {name: (each.get("enum") or [""])[0] for name, each in schema.items()}
            return (Piece("tool", tuple(tokenize(json.dumps(given))), str(wanted)),)
    raise RefusedError(f"The tool `{wanted}` is not among the tools.", param="tool_choice")


def newest_turn(route: str, body: Mapping[str, Any]) -> str:
    """The words of all that came after the last answer."""
    if route == "completions":
        return _prompt_text(route, body)
    turn: list[str] = []
    for message in reversed(body.get("messages") or ()):
        if not isinstance(message, dict) or message.get("role") == "assistant":
            break
        turn = [*_texts(message.get("content")), *turn]
    return "\n".join(turn)


def call_id(order: Order) -> str:
    """The id of the tool call that an order is answered with."""
    return f"chatcmpl-tool-{order.seed:08x}"


def prompt_ids(body: Mapping[str, Any]) -> tuple[int, ...]:
    """Tokens of a chat or Messages request's prompt."""
    return token_ids(_prompt_text("messages", body))


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Tokens of a Messages request, for `count_tokens`."""
    return len(prompt_ids(body))


def _longest(settings: Settings, route: str, body: Mapping[str, Any], prompt: int) -> int:
    """The most tokens that it may be answered with: what is left of the context at the most."""
    room = settings.options.max_model_len - prompt
    if room <= 0:
        raise RefusedError(
            f"This model's maximum context length is {settings.options.max_model_len} tokens. "
            f"However, your prompt contains {prompt} input tokens, which exceeds this limit even "
            "without any output tokens. Please reduce the length of the input prompt. "
            f"(parameter=input_tokens, value={prompt})",
            param="input_tokens",
        )
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if asked is None:
        if route == "messages":
            raise RefusedError("1 validation error: max_tokens is missing", param="max_tokens")
        asked = 16 if route == "completions" else room
    if not isinstance(asked, int) or asked < 1:
        raise RefusedError(f"max_tokens must be at least 1, got {asked}.", param="max_tokens")
    return min(asked, room)


def _answer_tokens(
    extras: Mapping[str, Any], body: Mapping[str, Any], longest: int, seed: int
) -> int:
    if body.get("ignore_eos"):
        return longest + 1  # ends by length
    drawn = Random(seed).randint(SHORTEST_ANSWER, LONGEST_ANSWER)  # noqa: S311 - to be repeated
    return max(1, _whole(extras.get("answer_tokens"), drawn))


def _regime(extras: Mapping[str, Any], end: str, body: Mapping[str, Any]) -> Regime:
    named = extras.get("regime")
    for regime in _REGIMES:
        if named == regime:
            return regime
    if any(mark in end for mark in _CODE_MARKS):
        return "code_edit"
    return "session" if body.get("tools") else "prose"


def _whole(value: Any, default: int) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return default


def _prompt_text(route: str, body: Mapping[str, Any]) -> str:
    if route == "completions":
        prompt = body.get("prompt")
        return "\n".join(map(str, prompt)) if isinstance(prompt, list) else str(prompt or "")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RefusedError("1 validation error: messages is missing or empty", param="messages")
    turns = _turns(body, [each for each in messages if isinstance(each, dict)])
    open_end = body.get("add_generation_prompt") is False
    return "".join(turns) + ("" if open_end else _opening("assistant"))


def _turns(body: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The conversation as a chat template writes it: what stands first changes least."""
    head = [json.dumps(tool, sort_keys=True) for tool in body.get("tools") or ()]
    head += list(_texts(body.get("system")))
    if head:
        yield _turn("system", "\n".join(head))
    for message in messages:
        parts = [*_texts(message.get("content")), *_calls(message.get("tool_calls"))]
        yield _turn(str(message.get("role", "user")), "\n".join(parts))


def _turn(role: str, text: str) -> str:
    return f"{_opening(role)}{text}\n"


def _opening(role: str) -> str:
    return f"<|{role}|>\n"


def _call(block: Mapping[str, Any]) -> str:
    """A call in the words in which the model made it: its command alone."""
    given = block.get("input")
    if isinstance(given, dict) and given.keys() == {"command"}:
        return str(given["command"])
    return f"{block.get('name')} {json.dumps(given, sort_keys=True)}"


def _calls(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        yield json.dumps(call, sort_keys=True)


def _texts(content: Any) -> Iterator[str]:
    """The words of a message, whatever they are wrapped in."""
    if isinstance(content, str):
        yield content
        return
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        match block.get("type"):
            case "tool_use":
                yield _call(block)
            case "tool_result":
                yield from _texts(block.get("content"))
            case "image" | "image_url":
                yield "[image]"
            case _:
                yield str(block.get("text") or block.get("thinking") or "")
