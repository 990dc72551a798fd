"""The parts of an answer as they arrive, each of which becomes one block of a message."""

from __future__ import annotations

import json
from typing import Any, Literal, Protocol, TypeAlias

Event: TypeAlias = dict[str, Any]

UNPARSED = "__unparsedToolInput"
"""Where Claude Code keeps arguments that are no JSON; a call with it is refused, not guessed at."""


class Piece(Protocol):
    """One block in the making; what has come of it and not gone out is held here."""

    opened: bool
    """Whether the client has seen its start."""

    def flow(self, index: int) -> list[Event]:
        """The events for what has come since the last time."""

    def complete(self) -> bool:
        """Whether it may be closed as soon as something else has come."""

    def close(self, index: int) -> list[Event]:
        """The events that end the block; none for one that was never opened."""


class Words:
    """A text or a thought; it opens with the first character that is no white space."""

    def __init__(self, kind: Literal["text", "thinking"], signature: str) -> None:
        self.kind = kind
        self.opened = False
        self._signature = signature
        self._held: list[str] = []
        self._readable = False

    def add(self, text: str) -> None:
        """More of it has come."""
        self._held.append(text)
        self._readable = self._readable or not text.isspace()

    def flow(self, index: int) -> list[Event]:
        """Whatever is held, once any of it can be read."""
        if not self._readable:
            return []
        return self._say(index) if self._held else []

    def complete(self) -> bool:
        """Always: what comes after something else is a block of its own."""
        return True

    def close(self, index: int) -> list[Event]:
        """The block's end; a thought is signed, for clients that will not do without."""
        if not self.opened:
            return []
        end: Event = {"type": "content_block_stop", "index": index}
        if self.kind == "text":
            return [end]
        return [_delta(index, "signature_delta", "signature", self._signature), end]

    def say_blank(self, index: int) -> list[Event]:
        """White space that is all there is of an answer."""
        return self._say(index) if self._held and self.kind == "text" else []

    def _say(self, index: int) -> list[Event]:
        events = []
        if not self.opened:
            self.opened = True
            block = {"type": self.kind, self.kind: ""}
            if self.kind == "thinking":
                block["signature"] = ""
            events.append(_start(index, block))
        text, self._held = "".join(self._held), []
        return [*events, _delta(index, f"{self.kind}_delta", self.kind, text)]


class Call:
    """A call of a tool; its arguments flow as they come, from the brace that opens them.

    They may be long, as a file that is written: what comes is put together only where the whole
    is asked for, and none of it is looked through twice.
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.name = ""
        self.opened = False
        self._fragments: list[str] = []
        self._sent = 0
        self._begins = self._ends = ""
        self._whole_at = (0, False)

    def add(self, function: dict[str, Any]) -> None:
        """More of it has come: its name, or a piece of its arguments."""
        name, arguments = function.get("name"), function.get("arguments")
        if not self.name and isinstance(name, str):
            self.name = name
        text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
        if not isinstance(text, str) or not text:
            return
        self._fragments.append(text)
        if seen := text.strip():
            self._begins = self._begins or seen[0]
            self._ends = seen[-1]

    def flow(self, index: int) -> list[Event]:
        """Start and arguments as far as they came; nothing before the name is known."""
        if not self.name:
            return []
        events = [] if self.opened else [self._open(index)]
        if self._begins == "{" and self._sent < len(self._fragments):
            events.append(self._pass(index, "".join(self._fragments[self._sent :])))
            self._sent = len(self._fragments)
        return events

    def complete(self) -> bool:
        """Whether its arguments are a whole object: nothing can be missing of them."""
        if self._ends != "}":
            return False
        if self._whole_at[0] != len(self._fragments):
            self._whole_at = (len(self._fragments), _is_object("".join(self._fragments)))
        return self._whole_at[1]

    def close(self, index: int) -> list[Event]:
        """Arguments that did not flow, as an object where they can be one, and the end."""
        if not self.opened:
            return []
        end: Event = {"type": "content_block_stop", "index": index}
        if self._sent:
            return [end]
        return [self._pass(index, settled("".join(self._fragments))), end]

    def _open(self, index: int) -> Event:
        self.opened = True
        return _start(
            index, {"type": "tool_use", "id": self.identity, "name": self.name, "input": {}}
        )

    def _pass(self, index: int, arguments: str) -> Event:
        return _delta(index, "input_json_delta", "partial_json", arguments)


def settled(arguments: str) -> str:
    """Arguments that do not begin as an object: none are an empty one, a quoted one is unquoted."""
    if arguments.strip() in ("", "null"):
        return "{}"
    try:
        inner = json.loads(arguments)
        if isinstance(inner, str) and isinstance(json.loads(inner), dict):
            return inner
    except (ValueError, RecursionError):
        pass
    return arguments


def input_of(arguments: str) -> dict[str, Any]:
    """A call's input out of its arguments; what is no object is kept in Claude Code's words."""
    value = _read(arguments)
    if isinstance(value, dict):
        return value
    return {UNPARSED: {"raw": arguments, "len": len(arguments)}}


def _is_object(text: str) -> bool:
    return isinstance(_read(text), dict)


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _start(index: int, block: dict[str, Any]) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, kind: str, key: str, value: str) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}
