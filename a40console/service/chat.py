"""A streamed chat completion, timed: what `a40console ask` and the test request send."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from a40console.errors import ConsoleError, NotServingError, RefusedError, TimedOutError
from a40console.model.figures import Figure, Missing

CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 600.0
"""A long prompt's prefill is silent, a held request too."""

NO_USAGE = Missing("the engine sent no usage")


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event of the stream adds."""

    text: str = ""
    thinking: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Answer:
    """An answer as it grows, with the times of its tokens."""

    model: str
    sent_at_s: float
    text: str = ""
    thinking: str = ""
    finish_reason: str | None = None
    prompt_tokens: Figure = NO_USAGE
    generated_tokens: Figure = NO_USAGE
    first_at_s: float | None = None
    last_at_s: float | None = None

    def add(self, piece: Piece, now_s: float) -> None:
        """Take in one piece."""
        self.text += piece.text
        self.thinking += piece.thinking
        if piece.text or piece.thinking:
            self.first_at_s = self.first_at_s or now_s
            self.last_at_s = now_s
        self.finish_reason = piece.finish_reason or self.finish_reason
        if piece.usage is not None:
            self.prompt_tokens = _tokens(piece.usage, "prompt_tokens")
            self.generated_tokens = _tokens(piece.usage, "completion_tokens")

    @property
    def ttft_s(self) -> Figure:
        """Seconds from sending to the first content."""
        if self.first_at_s is None:
            return Missing("no content came")
        return self.first_at_s - self.sent_at_s

    @property
    def tokens_per_s(self) -> Figure:
        """(n − 1) ÷ (last − first token time), as for a finished slot."""
        tokens = self.generated_tokens
        if not isinstance(tokens, int | float):
            return tokens
        if self.first_at_s is None or self.last_at_s is None or tokens < 2:
            return Missing("fewer than two tokens")
        spent_s = self.last_at_s - self.first_at_s
        return (tokens - 1) / spent_s if spent_s > 0 else Missing("it came in one piece")


def _tokens(usage: Mapping[str, Any], name: str) -> Figure:
    count = usage.get(name)
    return count if isinstance(count, int) else Missing("the usage does not say")


async def stream_chat(
    http: httpx.AsyncClient, url: str, token: str | None, body: Mapping[str, Any], answer: Answer
) -> AsyncIterator[Piece]:
    """Send a chat request and yield what comes; `answer` has grown by it.

    Raises:
        RefusedError: If the request is refused.
        NotServingError: If nothing serves there, or the answer breaks off.
        TimedOutError: If nothing comes for 10 minutes.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with http.stream("POST", url, json=body, headers=headers) as response:
            if response.is_error:
                raise _refusal(response.status_code, await response.aread())
            async for line in response.aiter_lines():
                piece = parse_event(line)
                if piece is not None:
                    answer.add(piece, time.monotonic())
                    yield piece
    except httpx.ReadTimeout as error:
        raise TimedOutError(f"No token came for {SILENCE_TIMEOUT_S:.0f} s", evidence=url) from error
    except httpx.HTTPError as error:
        raise NotServingError(
            "The answer broke off" if answer.first_at_s else "The gateway does not answer",
            evidence=f"{url}: {str(error) or type(error).__name__}",
            remedy="See what happened with: a40console status",
        ) from error
    if answer.finish_reason is None:
        raise NotServingError("The answer broke off", evidence="it ended without a finish reason")


def parse_event(line: str) -> Piece | None:
    """One line of the event stream; None where it carries nothing.

    Raises:
        NotServingError: If it carries an error.
    """
    if not line.startswith("data:"):
        return None
    payload = line.removeprefix("data:").strip()
    if payload == "[DONE]":
        return None
    try:
        return _piece(json.loads(payload))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise NotServingError("The answer is not readable", evidence=payload[:200]) from error


def _piece(event: Any) -> Piece:
    if "error" in event:
        raise NotServingError("The engine broke off", evidence=_error_text(event))
    choice = (event.get("choices") or [{}])[0]
    delta = choice.get("delta") or {}
    usage = event.get("usage")
    return Piece(
        text=delta.get("content") or "",
        thinking=delta.get("reasoning_content") or delta.get("reasoning") or "",
        finish_reason=choice.get("finish_reason"),
        usage=usage if isinstance(usage, dict) else None,
    )


def _refusal(status: int, body: bytes) -> ConsoleError:
    try:
        text = _error_text(json.loads(body))
    except ValueError:
        text = body[:200].decode(errors="replace")
    if status >= 500:
        return NotServingError(
            "The engine does not serve",
            evidence=f"HTTP {status}: {text}",
            remedy="See why with: a40console status",
        )
    return RefusedError("The request was refused", evidence=f"HTTP {status}: {text}")


def _error_text(body: Any) -> str:
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        return str(error.get("message", error))
    return str(error)
