"""An engine's errors, in the status and the words on which a client of the Messages API does right.

Claude Code compacts its conversation on a context overflow that it recognises by wording, asks
for less where only the answer does not fit, retries what is of class 500 or overloaded, and takes
any other 400 for its own fault. So statuses are mapped, and words pass as they are, except for
the overflow's.
"""

from __future__ import annotations

import json
import re
from typing import Any

from a40console.gateway.anthropic.answer_block import written
from a40console.gateway.refusals import ANTHROPIC_TYPES, Refusal

_RETRY_S = 2.0
_COMPACTING_ROOM = 1000
"""Tokens that Claude Code leaves free when it asks for a shorter answer."""

_WINDOW = re.compile(
    r"(?:maximum context length (?:is|of)|maximum\s+model length of|context size \(|"
    r"model's context length \(|max_model_len=(?:max_total_tokens=)?)\s*(\d+)"
)
_PROMPT = re.compile(
    r"(at least )?(?:(?<!for )\b(\d+) input tokens|request \((\d+) tokens\)|\(length (\d+)\)|"
    r"(\d+) in the messages|(\d+) tokens from the input|input \((\d+) tokens\))"
)
_WANTED = re.compile(
    r"requested (\d+) output tokens|(\d+) in the completion|(\d+) tokens for the completion|"
    r"tokens=(\d+) cannot be greater|too large: (\d+)\."
)
_TOO_LONG = re.compile(r"contains \d+ characters|prompt is too long", re.IGNORECASE)
_TOOL_JSON = re.compile(
    r"(?:Expecting|Unterminated string|Extra data|Invalid (?:control|\\))"
    r".*line \d+ column \d+ \(char"
)
_KNOWN_KINDS = frozenset(ANTHROPIC_TYPES.values()) | {"billing_error", "permission_error"}
_OF_THE_CLIENT = frozenset({"invalid_request_error", "request_too_large", "rate_limit_error"})
_SHOWN_CHARACTERS = 200
_STATUSES = {
    400: 400, 401: 502, 403: 502, 404: 502, 405: 502, 408: 504, 413: 413, 422: 400, 429: 429,
    500: 500, 501: 500, 502: 502, 503: 529, 504: 504, 529: 529,
}  # fmt: skip
"""What the client is told for an engine's status.

An engine that refuses the gateway's key or does not know the model or the route is no fault of
the client's: it would give up its session on a 401 or 404 that it cannot mend.
"""


class OverflowRefusal(Refusal):
    """The prompt, or the prompt and the answer asked for, do not fit the model's window."""


def refusal_of(
    status: int,
    body: bytes,
    *,
    retry_after: str | None = None,
    prompt_estimate: int | None = None,
) -> Refusal:
    """What the client is told for an answer of the engine's that is an error.

    Args:
        status: The engine's.
        body: The engine's, of any shape.
        retry_after: The engine's header.
        prompt_estimate: Tokens, for an overflow that does not name them.
    """
    error = _error_in(body)
    if error is None:
        return _no_json(status, body, retry_after)
    message = str(error["message"])
    if told := _overflow(message, error, prompt_estimate):
        return OverflowRefusal(400, told)
    if status in (400, 422) and _TOOL_JSON.search(message):
        return Refusal(
            500,
            f"The model wrote a tool call whose arguments are no JSON ({message}). "
            "Send the request again.",
        )
    mapped = _STATUSES.get(status, 400 if 400 <= status < 500 else 500 if status >= 500 else 502)
    if status in (401, 403):
        message = f"The engine refused the gateway's key: {message}"
    return Refusal(mapped, message, retry_after_s=_retry_s(mapped, retry_after))


def told_in_stream(error: object, *, begun: bool) -> tuple[str, str]:
    """The kind and the words for an error that came inside a stream, or before its first event.

    Before any content a client repeats an overload as a stream. What is its own fault is named as
    that; by an overflow's words it compacts, within a stream as well.
    """
    said = error if isinstance(error, dict) else {"message": error}
    message = str(said.get("message") or "The engine reported an error without a word.")
    if told := _overflow(message, said, None):
        return "invalid_request_error", told
    kind = said.get("type")
    if begun:
        return (str(kind) if kind in _KNOWN_KINDS else "api_error"), message
    return (str(kind) if kind in _OF_THE_CLIENT else "overloaded_error"), message


def told_late(refusal: Refusal) -> tuple[str, str]:
    """The kind and the words of a refusal for a client that has its status 200 already."""
    kind = ANTHROPIC_TYPES.get(refusal.status, "api_error")
    return told_in_stream({"type": kind, "message": refusal.message}, begun=False)


def error_event(kind: str, message: str, request_id: str) -> bytes:
    """An error as an event of the stream."""
    error = {"type": kind, "message": message}
    return written({"type": "error", "error": error, "request_id": request_id})


def _error_in(body: bytes) -> dict[str, Any] | None:
    """The engine's error with its `message`, whatever shape it came in; None for no JSON object."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    error = said.get("error", said)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return None
    message = error.get("message") or error.get("detail")
    if isinstance(message, list):
        message = json.dumps(message)
    return {**error, "message": message or "The engine reported an error without a word."}


def _no_json(status: int, body: bytes, retry_after: str | None) -> Refusal:
    text = " ".join(body.decode("utf-8", "replace").split())
    shown = "".join(filter(str.isprintable, text[:_SHOWN_CHARACTERS]))
    mapped = 529 if status in (429, 503, 529) else 502
    message = f"The engine answered with HTTP {status} and no JSON: {shown or 'nothing'}"
    return Refusal(mapped, message, retry_after_s=_retry_s(mapped, retry_after))


def _retry_s(status: int, retry_after: str | None) -> float | None:
    if status not in (429, 502, 529):
        return None
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else _RETRY_S


def _overflow(message: str, error: dict[str, Any], estimate: int | None) -> str | None:
    """The words for a context overflow that clients recognise; None where it is none.

    They compact on the first, and ask for a shorter answer on the second.
    """
    window = _count(error.get("n_ctx")) or _first(_WINDOW, message)
    prompt = _count(error.get("n_prompt_tokens")) or _first(_PROMPT, message)
    wanted = _first(_WANTED, message)
    if window is None or (prompt is None and wanted is None and not _TOO_LONG.search(message)):
        return message if "prompt is too long" in message.lower() else None
    # "At least" is where the engine's tokenizer stopped, not how long the prompt is.
    least = _PROMPT.search(message)
    if estimate is not None and (prompt is None or (least is not None and least[1])):
        prompt = max(prompt or 0, estimate)
    if wanted is not None and prompt is not None and prompt + _COMPACTING_ROOM < window:
        return (
            f"input length and `max_tokens` exceed context limit: {prompt} + {wanted} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )
    return f"prompt is too long: {max(prompt or 0, window + 1)} tokens > {window} maximum"


def _first(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    figures = [one for one in match.groups() if one and one.isdecimal()] if match else []
    return int(figures[0]) if figures else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
