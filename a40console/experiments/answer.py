"""An answer as it comes in: its text and blocks, its usage, and when its content arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from a40console.model.figures import Figure, Missing
from a40console.model.run_record import NO_USAGE
from a40console.model.run_words import visible

NO_CACHE_FIGURE = Missing("the server does not tell what was cached")
NO_CONTENT = Missing("the answer is empty")
LONGEST_ERROR = 400
_DIGITS = 6


@dataclass(slots=True)
class Block:
    """One content block or tool call, in pieces."""

    kind: str
    """`text`, `thinking` or `tool_use`."""

    name: str = ""
    id: str = ""
    pieces: list[str] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        """As `Reply.blocks` has it."""
        joined = "".join(self.pieces)
        if self.kind == "tool_use":
            return {"type": self.kind, "name": self.name, "id": self.id, "arguments": joined}
        return {"type": self.kind, "text": joined}


@dataclass(slots=True)
class Answer:
    """What has come so far; the dialects' readers fill it."""

    blocks: dict[tuple[str, int], Block] = field(default_factory=dict)
    """By kind and index, in order of their beginning."""

    events: list[str] = field(default_factory=list)
    logprobs: list[Mapping[str, Any]] = field(default_factory=list)
    stop_reason: str = ""
    ended: bool = False
    """Whether the server said that the answer is complete."""

    error: str = ""
    prompt_tokens: Figure = NO_USAGE
    cached_tokens: Figure = NO_USAGE
    generated_tokens: Figure = NO_USAGE
    _arrivals_s: list[float] = field(default_factory=list)
    _silent_s: list[float] = field(default_factory=list)

    def happened(self, event: str) -> None:
        """An event of this type; a run of equal ones stands once."""
        if not self.events or self.events[-1] != event:
            self.events.append(event)

    def arrived(self, at_s: float, *, content: bool) -> None:
        """Something generated came.

        A token whose characters are not whole yet comes as an empty piece: it is a pass all the
        same, and so a gap of its own, where content stands before and after it.
        """
        if content:
            self._arrivals_s += self._silent_s
            self._silent_s.clear()
            self._arrivals_s.append(at_s)
        elif self._arrivals_s:
            self._silent_s.append(at_s)

    def block(self, kind: str, index: int = 0) -> Block:
        """The block of this kind and index, begun if need be."""
        key = (kind, index)
        found = self.blocks.get(key)
        if found is None:
            found = self.blocks[key] = Block(kind)
        return found

    def fail(self, text: str) -> None:
        """The first thing that went wrong is kept, with nothing in it that a terminal obeys."""
        self.error = self.error or visible(text)[:LONGEST_ERROR]

    @property
    def first_s(self) -> float | None:
        """When the first content came."""
        return self._arrivals_s[0] if self._arrivals_s else None

    @property
    def last_s(self) -> float | None:
        """When the last content came."""
        return self._arrivals_s[-1] if self._arrivals_s else None

    def gaps_s(self) -> tuple[float, ...]:
        """Between arrivals; what came in one piece is 0 apart."""
        return tuple(
            round(later - earlier, _DIGITS) for earlier, later in pairwise(self._arrivals_s)
        )

    @property
    def text(self) -> str:
        """What was said, without thoughts and tool calls."""
        said = (block.pieces for block in self.blocks.values() if block.kind == "text")
        return "".join(piece for pieces in said for piece in pieces)

    def whole_blocks(self) -> tuple[Mapping[str, Any], ...]:
        """Every block as it ended up."""
        return tuple(block.whole() for block in self.blocks.values())


def said(value: object) -> str:
    """A text out of JSON; null is none.

    Raises:
        TypeError: If it is something else.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def count(value: object, otherwise: Figure) -> Figure:
    """A count of tokens out of JSON; what is none is missing, never 0."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return otherwise


def error_text(told: object) -> str:
    """What a server's error object says, in whichever of their shapes."""
    if isinstance(told, Mapping):
        for key in ("message", "error", "detail", "msg", "type"):
            if told.get(key):
                return error_text(told[key])
    if isinstance(told, Sequence) and not isinstance(told, str) and told:
        return error_text(told[0])
    return " ".join(str(told).split())
