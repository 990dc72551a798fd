"""A chat completion's answer, chunk by chunk or whole, as a message of the Messages API."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from a40console.gateway.translation.pieces import Call, Event, Words, input_of
from a40console.gateway.translation.usage import usage_of

_FORCED_ENDS = frozenset({"abort", "error"})
"""Ends that the engine forced: the answer is not what the model would have said."""

_FORCED = "The engine ended this answer before it was complete. Send the request again."


class ChatToMessages:
    """Chunks in, events out; the events are a valid stream whatever the chunks are.

    Only one block may be open at a time, and its deltas may not wait for a later one. So what
    comes is put in order: the oldest block flows, and what belongs to another is kept until the
    oldest is complete. A call is complete when its arguments are a whole object, so that
    arguments of several calls may come in any order.
    """

    def __init__(self, model: str, message_id: str) -> None:
        self.finished = False
        """The engine has said why the answer ends."""

        self._model = model
        self._id = message_id
        self._started = False
        self._ended = False
        self._index = 0
        self._pieces: deque[Words | Call] = deque()
        self._calls: dict[int, Call] = {}
        self._called = 0
        self._last_call: Call | None = None
        self._spoken = False
        self._blank: Words | None = None
        self._finish: str | None = None
        self._stopped_by: str | None = None
        self._usage: dict[str, int] = {}
        self._characters = 0

    def feed(self, data: dict[str, Any]) -> list[Event]:
        """The events for one chunk, which may be none."""
        if self._ended:
            return []
        if data.get("error") and not data.get("choices"):
            return self._fail(_error_text(data["error"]))
        self._usage |= usage_of(data)
        events = [] if self._started else [self._start()]
        choice = _first_choice(data)
        if choice is not None:
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._take(delta)
            self._end_of(choice)
            if self._finish in _FORCED_ENDS:
                return [*events, *self._fail(_FORCED)]
            events += self._advance()
        return events

    def end(self) -> list[Event]:
        """The events after the last chunk; none after an error.

        What is said of a stream that broke is for the gateway, which knows what became of the
        engine.
        """
        if self._ended:
            return []
        self._ended = True
        events = [] if self._started else [self._start()]
        while self._pieces:
            events += self._pieces[0].flow(self._index)
            events += self._close()
        if not self._spoken and not self._called and self._blank is not None:
            events += self._blank.say_blank(self._index) + self._blank.close(self._index)
        reason, sequence = self._stop()
        usage = {"output_tokens": self._estimate(), **self._usage}
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
        return [*events, {"type": "message_stop"}]

    def whole(self, chat_answer: dict[str, Any]) -> dict[str, Any]:
        """A whole answer as a whole message: one chunk of it all, and its events put together.

        An error of the engine comes back as the error's body.
        """
        choice = _first_choice(chat_answer) or {}
        message = choice.get("message")
        delta = dict(message) if isinstance(message, dict) else {}
        calls = delta.get("tool_calls")
        delta["tool_calls"] = [
            {**call, "index": place}
            for place, call in enumerate(calls if isinstance(calls, list) else ())
            if isinstance(call, dict)
        ]
        chunk = {**chat_answer, "choices": [{**choice, "delta": delta}] if choice else []}
        return _put_together([*self.feed(chunk), *self.end()])

    def _take(self, delta: dict[str, Any]) -> None:
        """Put what a chunk brings where it belongs: thought, text and calls, in that order."""
        self._say("thinking", delta.get("reasoning") or delta.get("reasoning_content"))
        self._say("text", delta.get("content"))
        self._say("text", delta.get("refusal"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._call(call)

    def _say(self, kind: Literal["text", "thinking"], said: object) -> None:
        text = _text_of(said)
        if not text:
            return
        self._characters += len(text)
        last = self._pieces[-1] if self._pieces else None
        if not isinstance(last, Words) or last.kind != kind:
            last = Words(kind, self._id)
            self._pieces.append(last)
        last.add(text)

    def _call(self, said: dict[str, Any]) -> None:
        """A piece of a call: of the one at its index, unless it brings an id of its own."""
        function = said.get("function")
        function = function if isinstance(function, dict) else {}
        index, identity = said.get("index"), said.get("id")
        index = index if isinstance(index, int) else max(self._calls, default=0)
        identity = identity if isinstance(identity, str) and identity else None
        call = self._calls.get(index)
        if call is None or (function.get("name") and identity not in (None, call.identity)):
            call = Call(identity or f"toolu_{self._id}_{self._called}")
            self._called += 1
            self._calls[index] = call
            self._last_call = call
            self._pieces.append(call)
        call.add(function)
        self._characters += len(str(function.get("arguments") or ""))

    def _advance(self) -> list[Event]:
        """Let the oldest piece flow, and the next ones as far as those before are complete."""
        events: list[Event] = []
        while self._pieces:
            events += self._pieces[0].flow(self._index)
            if len(self._pieces) == 1 or not self._pieces[0].complete():
                break
            events += self._close()
        return events

    def _close(self) -> list[Event]:
        piece = self._pieces.popleft()
        events = piece.close(self._index)
        if piece.opened:
            self._index += 1
            self._spoken = self._spoken or (isinstance(piece, Words) and piece.kind == "text")
        elif isinstance(piece, Words) and piece.kind == "text":
            self._blank = piece
        return events

    def _start(self) -> Event:
        self._started = True
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, **self._usage},
        }
        return {"type": "message_start", "message": message}

    def _end_of(self, choice: dict[str, Any]) -> None:
        reason, stopped_by = choice.get("finish_reason"), choice.get("stop_reason")
        if isinstance(reason, str):
            self._finish = reason
            self.finished = True
        if isinstance(stopped_by, str):
            self._stopped_by = stopped_by

    def _stop(self) -> tuple[str, str | None]:
        """Why it ended: a limit wins, then a call that is whole, then a stop sequence."""
        if self._finish == "length":
            return "max_tokens", None
        if self._finish == "content_filter":
            return "refusal", None
        called = self._last_call is not None and self._last_call.opened
        if called and self._last_call is not None and self._last_call.complete():
            return "tool_use", None
        if self._stopped_by is not None:
            return "stop_sequence", self._stopped_by
        return ("tool_use" if called else "end_turn"), None

    def _estimate(self) -> int:
        """Tokens of an answer whose engine does not count: a quarter of its characters."""
        return -(-self._characters // 4)

    def _fail(self, text: str) -> list[Event]:
        self._ended = True
        return [{"type": "error", "error": {"type": "api_error", "message": text}}]


def _first_choice(data: dict[str, Any]) -> dict[str, Any] | None:
    choices = data.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return None


def _text_of(said: object) -> str:
    """A delta's text; some engines send it in parts."""
    if isinstance(said, str):
        return said
    parts = said if isinstance(said, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _error_text(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or "The engine reported an error without a word.")


def _put_together(events: list[Event]) -> dict[str, Any]:
    """The message that a client makes of a stream, or the error that ended it."""
    message: dict[str, Any] = {}
    content: list[dict[str, Any]] = []
    for event in events:
        match event["type"]:
            case "error":
                return event
            case "message_start":
                message = event["message"]
            case "content_block_start":
                content.append(dict(event["content_block"]))
            case "content_block_delta":
                _add(content[-1], event["delta"])
            case "message_delta":
                message |= {**event["delta"], "usage": message["usage"] | event["usage"]}
    return {**message, "content": [_settle(block) for block in content]}


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key != "type":
            block[key] = block.get(key, "") + value


def _settle(block: dict[str, Any]) -> dict[str, Any]:
    """A block as a message has it: a call's arguments read into its input."""
    if block["type"] == "tool_use":
        block["input"] = input_of(block.pop("partial_json"))
    return block
