"""Puts a request of the Messages API into the one form in which our engines take it.

Pure. Bodies are an open list: what is unknown goes on or is dropped, and never fails.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any

from a40console.gateway.anthropic.busters import Tally
from a40console.gateway.anthropic.outline import outline_of
from a40console.gateway.anthropic.settings import fitted_limit, read_limit, read_settings
from a40console.gateway.anthropic.tools import read_choice, read_tools
from a40console.gateway.anthropic.turns import Conversation
from a40console.gateway.dialect import Dialect
from a40console.gateway.refusals import Refusal
from a40console.model.session import Outline, Purpose

_COMPACTING = (
    "CRITICAL: Respond with TEXT ONLY",
    "Your task is to create a detailed summary of the conversation so far",
)
"""How Claude Code's requests for a conversation's summary begin, by version."""


@dataclass(frozen=True, slots=True)
class Normalised:
    """A request, ready for the engine, and what was learned on the way."""

    body: dict[str, Any]
    model: str | None
    max_tokens: int | None
    outline: Outline
    tool_answers: tuple[tuple[str, bool], ...]
    removed: dict[str, int]
    billed_as_subagent: bool
    purpose: Purpose


def normalise(asked: dict[str, Any], dialect: Dialect, *, counting: bool = False) -> Normalised:
    """Normalise a parsed body; with `counting` one of count_tokens, which has no limit.

    Raises:
        Refusal: If a known field is of a wrong type or missing.
    """
    tally: Tally = Counter()
    talk = _conversation(asked, dialect, tally)
    tools = read_tools(asked.get("tools"), talk.changes, tally)
    body: dict[str, Any] = {"model": dialect.served_name}
    head = [piece.block["text"] for piece in talk.head]
    if head:
        # One text: engines join several in ways of their own.
        body["system"] = "\n\n".join(head)
    body["messages"] = talk.messages()
    if tools:
        body["tools"] = tools
        choice = read_choice(asked.get("tool_choice"), tools)
        if choice is not None:
            body["tool_choice"] = choice
    outline, prompt_bytes = outline_of(
        tools, chain(talk.head, *(turn.pieces for turn in talk.turns))
    )
    limit = None
    if not counting:
        limit = read_limit(asked.get("max_tokens"))
        body["max_tokens"] = fitted_limit(limit, prompt_bytes, dialect)
        body["stream"] = asked.get("stream") is True
    body |= read_settings(
        asked, talk.effort, body.get("max_tokens"), tally, budgets=dialect.budgets
    )
    model = asked.get("model")
    return Normalised(
        body=body,
        model=model if isinstance(model, str) else None,
        max_tokens=limit,
        outline=outline,
        tool_answers=tuple(talk.answers()),
        removed={kind: times for kind, times in tally.items() if times},
        billed_as_subagent=talk.billed_as_subagent,
        purpose=_purpose(talk, bool(tools)),
    )


def _conversation(asked: dict[str, Any], dialect: Dialect, tally: Tally) -> Conversation:
    messages = asked.get("messages")
    if messages is None:
        raise Refusal(400, "messages: Field required")
    if not isinstance(messages, list):
        raise Refusal(400, "messages: must be a list.")
    if not messages:
        raise Refusal(400, "messages: at least one message is required")
    talk = Conversation(keep=dialect.system_turns == "keep", images=dialect.images, tally=tally)
    talk.system(asked.get("system"))
    for number, message in enumerate(messages):
        talk.message(number, message)
    return talk


def _purpose(talk: Conversation, has_tools: bool) -> Purpose:
    """What the request is for, as far as its form tells.

    Claude Code's side requests (titles, summaries of pages, checks of the connection) come in its
    name, which its system prompt bears, and without tools.
    """
    last = talk.turns[-1] if talk.turns else None
    if last is not None and last.role == "user":
        for piece in reversed(last.pieces):
            if piece.kind == "user text" and piece.block["text"].lstrip().startswith(_COMPACTING):
                return "compaction"
    if not has_tools and talk.billed:
        return "other"
    return "turn"
