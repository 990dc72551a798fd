"""The blocks of a streamed answer: what may stand in each, and how its events are written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use"]

_DELTAS: dict[str, tuple[Kind, str | None]] = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", None),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_OPENINGS = {
    kind: f"event: {kind}\ndata: ".encode()
    for kind in ("content_block_start", "content_block_delta", "content_block_stop", "message_stop")
}


@dataclass(slots=True)
class AnswerBlock:
    """One block of the answer, from its start to its stop."""

    kind: Kind
    source: int | None
    """Its index in the engine's stream."""

    head: dict[str, Any]
    """The block as it is announced: empty."""

    given: dict[str, Any] | None = None
    """A delta that the engine wrote into the announcement."""

    index: int | None = None
    """Its index in the client's stream; None until it is announced."""

    held: list[bytes] = field(default_factory=list)
    """Deltas that go out with the first one that says something."""

    saying: bool = False
    """Something was said: every further delta goes out at once."""

    arguments: list[str] = field(default_factory=list)
    signature: bytes | None = None
    """The event that goes out right before the stop."""

    start: bytes | None = None
    """The engine's own announcement, where it is as it should be."""

    def complete(self) -> bool:
        """Whether a call's arguments are whole; other blocks are at any time."""
        if self.kind != "tool_use":
            return True
        try:
            json.loads("".join(self.arguments) or words_of(self.given or {}))
        except (ValueError, RecursionError):
            return False
        return True

    def is_same(self, other: AnswerBlock) -> bool:
        """Whether the other is this one, announced once more."""
        return self.kind == other.kind and self.head.get("id") == other.head.get("id")


def read_block(source: int | None, block: object, spare_id: str) -> AnswerBlock | None:
    """A block as an engine announces it; None for what no client of ours understands.

    `spare_id` is for a call that comes without one.
    """
    if not isinstance(block, dict):
        return None
    match block.get("type"):
        case "text":
            given = _given("text_delta", "text", block.get("text"))
            return AnswerBlock("text", source, {"type": "text", "text": ""}, given)
        case "thinking":
            given = _given("thinking_delta", "thinking", block.get("thinking"))
            signature = block.get("signature")
            signature = signature if isinstance(signature, str) else ""
            head = {"type": "thinking", "thinking": "", "signature": signature}
            return AnswerBlock("thinking", source, head, given)
        case "redacted_thinking":
            data = block.get("data")
            head = {"type": "redacted_thinking", "data": data if isinstance(data, str) else ""}
            return AnswerBlock("redacted_thinking", source, head)
        case "tool_use":
            return _call(source, block, spare_id)
    return None


def _call(source: int | None, block: dict[str, Any], spare_id: str) -> AnswerBlock | None:
    name, identity, given = block.get("name"), block.get("id"), block.get("input")
    if not isinstance(name, str) or not name:
        return None
    identity = identity if isinstance(identity, str) and identity else spare_id
    head = {"type": "tool_use", "id": identity, "name": name, "input": {}}
    text = given if isinstance(given, str) else json.dumps(given) if given else None
    return AnswerBlock("tool_use", source, head, _given("input_json_delta", "partial_json", text))


def _given(kind: str, key: str, text: object) -> dict[str, Any] | None:
    return {"type": kind, key: text} if isinstance(text, str) and text else None


def kind_of(delta: object) -> Kind | None:
    """In which kind of block a delta may stand; None where in none, or its text is no text."""
    if not isinstance(delta, dict) or not isinstance(delta.get("type"), str):
        return None
    kind, key = _DELTAS.get(delta["type"], (None, None))
    return kind if key is None or isinstance(delta.get(key), str) else None


def words_of(delta: dict[str, Any]) -> str:
    """The text of a delta of a known kind; empty for one that brings something else."""
    _, key = _DELTAS.get(str(delta.get("type")), (None, None))
    text = delta.get(key) if key is not None else None
    return text if isinstance(text, str) else ""


def written(data: dict[str, Any]) -> bytes:
    """An event as bytes."""
    text = json.dumps(data, separators=(",", ":"))
    return f"event: {data['type']}\ndata: {text}\n\n".encode()


def is_canonical(kind: str, raw: bytes | None) -> bool:
    """Whether an engine's bytes are the event as any client reads it: two lines, well ended."""
    return (
        raw is not None
        and raw.startswith(_OPENINGS[kind])
        and raw.endswith(b"\n\n")
        and raw.count(b"\n") == 3
        and b"\r" not in raw
    )
