"""What an answer of the Messages API must have, whatever the engine left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a40console.gateway.answer import tokens

PROMPT_PARTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for text, used where an engine does not count."""

_STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
_OTHER_WORDS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_CUT = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
"""Ends that hold whatever was called before."""


class Usage:
    """The counts of one answer as they become known; none of them is ever taken back."""

    def __init__(self, prompt_estimate: int | None = None) -> None:
        self._prompt_estimate = prompt_estimate
        self._known: dict[str, int] = {}

    def take(self, usage: object) -> None:
        """Counts that the engine tells; what is no count is passed over."""
        for name in (*PROMPT_PARTS, "output_tokens"):
            count = tokens(usage, name)
            if count is not None:
                least = self._known.get(name, 0) if name == "output_tokens" else 0
                self._known[name] = max(count, least)

    def told(self, characters: int | None = None) -> dict[str, int]:
        """All four counts; where the engine tells nothing, an estimate stands for it.

        Args:
            characters: What the answer has of them, once it is complete.
        """
        told = {name: self._known.get(name, 0) for name in PROMPT_PARTS}
        if not any(told.values()):
            told["input_tokens"] = self._prompt_estimate or 0
        generated = self._known.get("output_tokens", 0)
        if not generated and characters:
            generated = -(-characters // CHARACTERS_PER_TOKEN)
        return {**told, "output_tokens": generated}


def stop_reason(reason: object, *, called: bool, complete: bool) -> str:
    """Why an answer stopped, as the client must be told to go on rightly.

    Args:
        reason: The engine's word for it.
        called: The answer calls a tool.
        complete: The last call's arguments are whole; one that a stop sequence cut must not run.
    """
    word = _OTHER_WORDS.get(reason, reason) if isinstance(reason, str) else None
    if word in _CUT:
        return str(word)
    if called and (complete or word != "stop_sequence"):
        return "tool_use"
    return str(word) if word in _STOP_REASONS and word != "tool_use" else "end_turn"


def stop_sequence(reason: str, sequence: object) -> str | None:
    """The sequence that stopped an answer; None where it stopped for another reason."""
    return sequence if reason == "stop_sequence" and isinstance(sequence, str) else None


def message_head(
    message: Mapping[str, Any], model: str | None, message_id: str, usage: dict[str, int]
) -> dict[str, Any]:
    """A message without content, complete; the model is named as the client named it."""
    identity, served = message.get("id"), message.get("model")
    return {
        "id": identity if isinstance(identity, str) and identity else message_id,
        "type": "message",
        "role": "assistant",
        "model": model or (served if isinstance(served, str) else ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
