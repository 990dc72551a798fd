"""Whatever comes from the engine, what goes to the client is a valid stream of the Messages API.

A client of this API builds the answer from the events and trusts their order: a message that
starts complete, blocks with dense indexes of which one is open at a time, deltas of the block's
kind, a stop reason, usage, and an end. Engines and bridges get each of these wrong now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from a40console.gateway.anthropic.answer_block import (
    AnswerBlock,
    is_canonical,
    kind_of,
    read_block,
    words_of,
    written,
)
from a40console.gateway.anthropic.failures import error_event, told_in_stream
from a40console.gateway.anthropic.shape import Usage, message_head, stop_reason, stop_sequence

Called: TypeAlias = Callable[[str, str], None]
"""Told the name and the id of each tool call that went out whole."""

Parked: TypeAlias = tuple[dict[str, Any], bytes | None]

PING = written({"type": "ping"})
PARKED_LIMIT_BYTES = 8 * 1024 * 1024
"""What may wait for the open call to be complete; beyond it the call is closed as it is."""


class Guard:
    """The events of one answer: the engine's in, the client's out.

    A healthy delta passes as the same bytes. What belongs to a block that may not open yet waits
    for it; what belongs to none is left out, and counted. With `started` the client has the
    message's start already, of an engine that was lost with it.
    """

    def __init__(
        self,
        *,
        model: str | None,
        request_id: str,
        prompt_estimate: int | None = None,
        called: Called | None = None,
        started: bool = False,
    ) -> None:
        self.ended = False
        """The client was told the end, good or bad."""

        self.failed = False
        """The end was an error."""

        self.dropped = 0
        """Events that no client could have read."""

        self._model = model
        self._request_id = request_id
        self._tell_called = called
        self._usage = Usage(prompt_estimate)
        self._out: list[bytes] = []
        self._started = started
        self._open: AnswerBlock | None = None
        self._closed: set[int | None] = set()
        self._ignored: set[int | None] = set()
        self._count = 0
        self._blank: AnswerBlock | None = None
        self._parked: list[Parked] = []
        self._parked_sources: set[int | None] = set()
        self._parked_bytes = 0
        self._called_ids: set[str] = set()
        self._last_call_complete = False
        self._stop: tuple[object, object] | None = None
        self._characters = 0
        self._handlers = {
            "content_block_delta": self._delta,
            "content_block_start": self._block,
            "content_block_stop": self._block_stop,
            "message_start": self._message,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "ping": self._ping,
            "error": self._error,
        }

    @property
    def begun(self) -> bool:
        """Whether the client has content."""
        return self._count > 0

    @property
    def started(self) -> bool:
        """Whether the client has anything of the message."""
        return self._started

    @property
    def finished(self) -> bool:
        """Whether the engine has said why the answer stopped: nothing can be missing then."""
        return self._stop is not None

    def take(self, data: dict[str, Any], raw: bytes | None = None) -> bytes:
        """What goes out for an event of the engine; `raw` are its bytes, where it has any."""
        if self.ended:
            return b""
        if raw is not None and data.get("type") == "content_block_delta":
            block = self._open
            if block is not None and block.saying and self._passes(block, data, raw):
                return raw
        self._out = []
        self._handle(data, raw)
        return b"".join(self._out)

    def end(self, message: str) -> bytes:
        """What goes out when the engine sends no more; `message` says so, where it is a failure."""
        if self.ended:
            return b""
        self._out = []
        if self.finished:
            self._finish(None)
        else:
            self.fail("api_error" if self.begun else "overloaded_error", message)
        return b"".join(self._out)

    def fail(self, kind: str, message: str) -> bytes:
        """End the stream with an error, in the words of this API."""
        self.ended = self.failed = True
        event = error_event(kind, message, self._request_id)
        self._out.append(event)
        return event

    def _handle(self, data: dict[str, Any], raw: bytes | None) -> None:
        kind = data.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            self.dropped += 1
        else:
            handler(data, raw)

    def _ping(self, data: dict[str, Any], raw: bytes | None) -> None:
        self._out.append(PING)

    def _error(self, data: dict[str, Any], raw: bytes | None) -> None:
        self.fail(*told_in_stream(data.get("error"), begun=self.begun))

    # --- the message -----------------------------------------------------------------------------

    def _message(self, data: dict[str, Any], raw: bytes | None) -> None:
        """Its head; said twice, only its counts are news."""
        message = data.get("message")
        head = message if isinstance(message, dict) else {}
        self._usage.take(head.get("usage"))
        if not self._started:
            self._start(head)

    def _start(self, head: dict[str, Any]) -> None:
        if self._started:
            return
        self._started = True
        told = message_head(head, self._model, f"msg_{self._request_id}", self._usage.told())
        self._out.append(written({"type": "message_start", "message": told}))

    def _message_delta(self, data: dict[str, Any], raw: bytes | None) -> None:
        """Counts and the reason to stop; the client is told at the very end, once."""
        self._usage.take(data.get("usage"))
        delta = data.get("delta")
        if isinstance(delta, dict) and (delta.get("stop_reason") or self._stop is None):
            self._stop = (delta.get("stop_reason"), delta.get("stop_sequence"))

    def _message_stop(self, data: dict[str, Any], raw: bytes | None) -> None:
        self._finish(raw)

    def _finish(self, raw: bytes | None) -> None:
        self._start({})
        while self._open is not None or self._parked:
            self._close()
            self._unpark()
        if not self.begun and self._blank is not None:
            self._announce(self._blank)
            self._out += self._blank.held
            self._out.append(self._stop_event(self._blank, None))
        reason, sequence = self._stop or (None, None)
        told = stop_reason(reason, called=bool(self._called_ids), complete=self._last_call_complete)
        delta = {"stop_reason": told, "stop_sequence": stop_sequence(told, sequence)}
        usage = self._usage.told(self._characters)
        self._out.append(written({"type": "message_delta", "delta": delta, "usage": usage}))
        own = raw if is_canonical("message_stop", raw) else None
        self._out.append(own or written({"type": "message_stop"}))
        self.ended = True

    # --- its blocks ------------------------------------------------------------------------------

    def _block(self, data: dict[str, Any], raw: bytes | None) -> None:
        source = _source(data)
        spare = f"toolu_{self._request_id}_{len(self._called_ids)}"
        block = read_block(source, data.get("content_block"), spare)
        if block is None:
            self._ignored.add(source)
            self.dropped += 1
            return
        self._ignored.discard(source)
        before = self._open
        if before is not None:
            if before.source == source and before.is_same(block):
                return
            if before.source != source and self._must_wait(before):
                self._parked_sources.add(source)
                self._park(data, raw)
                return
            self._close()
        if block.head == data["content_block"] and is_canonical("content_block_start", raw):
            block.start = raw
        self._begin(block)

    def _must_wait(self, block: AnswerBlock) -> bool:
        """Whether what comes for another block waits for this one: its call is not complete."""
        return not block.complete() and self._parked_bytes < PARKED_LIMIT_BYTES

    def _begin(self, block: AnswerBlock) -> None:
        """Open a block; a text is announced once it says something, so that no empty one is."""
        self._start({})
        self._open = block
        self._closed.discard(block.source)
        if block.kind == "tool_use" and block.head["id"] in self._called_ids:
            block.head["id"] = f"toolu_{self._request_id}_{len(self._called_ids)}"
            block.start = None
        if block.kind != "text":
            self._announce(block)
        if block.kind == "tool_use":
            self._called_ids.add(block.head["id"])
        elif block.given is not None:
            self._say(block, block.given)

    def _announce(self, block: AnswerBlock) -> None:
        block.index, self._count = self._count, self._count + 1
        event = {"type": "content_block_start", "index": block.index, "content_block": block.head}
        own = block.start if block.index == block.source else None
        self._out.append(own or written(event))

    def _delta(self, data: dict[str, Any], raw: bytes | None) -> None:
        source, delta = _source(data), data.get("delta")
        kind = kind_of(delta)
        if kind is None or not isinstance(delta, dict) or source in self._ignored:
            self.dropped += 1
            return
        if source in self._parked_sources:
            self._park(data, raw)
            return
        block = self._open
        if block is None or block.kind != kind or source not in (None, block.source):
            block = self._place(source, kind, data, raw)
        if block is not None:
            self._say(block, delta, data, raw)

    def _place(
        self, source: int | None, kind: str, data: dict[str, Any], raw: bytes | None
    ) -> AnswerBlock | None:
        """The block for a delta that does not fit the open one."""
        block, delta = self._open, data["delta"]
        if kind == "tool_use":
            lost = block is None or block.kind != "tool_use" or source in self._closed
            self.dropped += lost
            return None if lost else block
        if block is not None and block.kind == kind:
            return block
        if delta["type"] == "signature_delta" or not words_of(delta).strip():
            return None  # what parsers leave between two calls
        if block is not None and self._must_wait(block):
            self._park(data, raw)
            return None
        self._close()
        begun = read_block(source, {"type": kind}, "")
        if begun is not None:
            self._begin(begun)
        return begun

    def _passes(self, block: AnswerBlock, data: dict[str, Any], raw: bytes) -> bool:
        """Whether a delta of a block under way goes out as it came; it is then counted."""
        delta: Any = data.get("delta")
        if (
            data.get("index") != block.index
            or block.index != block.source
            or self._parked
            or kind_of(delta) != block.kind
            or not is_canonical("content_block_delta", raw)
        ):
            return False
        if block.kind == "thinking" and delta["type"] == "signature_delta":
            return False
        words = words_of(delta)
        self._characters += len(words)
        if block.kind == "tool_use":
            block.arguments.append(words)
        return True

    def _say(
        self,
        block: AnswerBlock,
        delta: dict[str, Any],
        data: dict[str, Any] | None = None,
        raw: bytes | None = None,
    ) -> None:
        """Send a delta of the open block, or hold it while the block has said nothing yet."""
        words = words_of(delta)
        index = self._count if block.index is None else block.index
        same = data is not None and data.get("index") == index
        own = raw if same and is_canonical("content_block_delta", raw) else None
        event = own or written({"type": "content_block_delta", "index": index, "delta": delta})
        if delta["type"] == "signature_delta":
            block.signature = block.signature or event
            return
        self._characters += len(words)
        block.held.append(event)
        if block.kind == "tool_use":
            block.arguments.append(words)
        if not block.saying and not _says(block, delta, words):
            return
        block.saying = True
        if block.index is None:
            self._announce(block)
        self._out += block.held
        block.held.clear()
        if self._parked and words.endswith("}") and block.complete():
            self._close()
            self._unpark()

    def _block_stop(self, data: dict[str, Any], raw: bytes | None) -> None:
        source = _source(data)
        if source in self._parked_sources:
            self._park(data, raw)
            return
        if self._open is not None and source in (None, self._open.source):
            self._close(raw)
            self._unpark()

    def _close(self, raw: bytes | None = None) -> None:
        """Stop the open block, complete."""
        block, self._open = self._open, None
        if block is None:
            return
        self._closed.add(block.source)
        if block.index is None:
            self._blank = self._blank or block
            return
        if block.kind == "tool_use":
            self._complete_call(block)
        if block.signature is not None:
            self._out.append(block.signature)
        self._out.append(self._stop_event(block, raw))

    def _complete_call(self, block: AnswerBlock) -> None:
        """A call without arguments gets an empty object: nothing is no JSON."""
        if not block.saying:
            delta = block.given or {"type": "input_json_delta", "partial_json": "{}"}
            block.arguments = [delta["partial_json"]]
            event = {"type": "content_block_delta", "index": block.index, "delta": delta}
            self._out.append(written(event))
        self._last_call_complete = block.complete()
        if self._last_call_complete and self._tell_called is not None:
            self._tell_called(block.head["name"], block.head["id"])

    def _stop_event(self, block: AnswerBlock, raw: bytes | None) -> bytes:
        same = block.index == block.source and is_canonical("content_block_stop", raw)
        if same and raw is not None:
            return raw
        return written({"type": "content_block_stop", "index": block.index})

    def _park(self, data: dict[str, Any], raw: bytes | None) -> None:
        self._parked.append((data, raw))
        self._parked_bytes += len(raw) if raw is not None else len(str(data))
        if self._parked_bytes > PARKED_LIMIT_BYTES:
            self._close()
            self._unpark()

    def _unpark(self) -> None:
        """Take what waited, in its order; what must wait once more is parked again."""
        parked, self._parked = self._parked, []
        self._parked_sources.clear()
        self._parked_bytes = 0
        for data, raw in parked:
            self._handle(data, raw)


def _source(data: dict[str, Any]) -> int | None:
    """The index that the engine gives an event's block."""
    index = data.get("index")
    return index if type(index) is int else None


def _says(block: AnswerBlock, delta: dict[str, Any], words: str) -> bool:
    """Whether a delta is the first of its block that says something.

    Blank text does not, nor do arguments of which only white space or `null` is known.
    """
    if block.kind == "tool_use":
        return not "null".startswith("".join(block.arguments).strip())
    return bool(words.strip()) or block.kind == "thinking" or delta["type"] == "citations_delta"
