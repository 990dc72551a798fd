"""What the gateway itself answers, in the grammar of the caller's API."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from starlette.responses import JSONResponse

Grammar: TypeAlias = Literal["openai", "anthropic"]

ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Anthropic's word for a status; `api_error` for any other."""

ENDED_BY_OPERATOR = (
    "The operator ended this request at the engine: its answer is not whole. It may be sent again."
)
_STOPPED_RETRY_S = 2.0

_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "service_unavailable",
}


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """The gateway answers instead of the engine.

    `retry_after_s` asks the client to come back by itself after so many seconds.
    """

    def __init__(self, status: int, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


def ended_by_operator() -> Refusal:
    """What the client of a request is told that the operator ended before anything went out."""
    return Refusal(529, ENDED_BY_OPERATOR, retry_after_s=_STOPPED_RETRY_S)


def grammar_of(path: str, headers: Mapping[str, str]) -> Grammar:
    """Which API the caller speaks: told by the route, else by Anthropic's version header."""
    anthropic = path.startswith("/v1/messages") or "anthropic-version" in headers
    return "anthropic" if anthropic else "openai"


def refuse(grammar: Grammar, refusal: Refusal, request_id: str | None = None) -> JSONResponse:
    """The refusal as a whole response."""
    headers: dict[str, str] = {}
    status = told_status(grammar, refusal.status)
    if request_id is not None:
        headers |= {"x-request-id": request_id, "request-id": request_id}
    if refusal.retry_after_s is not None:
        headers |= {
            "retry-after": str(max(1, math.ceil(refusal.retry_after_s))),
            "x-should-retry": "true",
        }
    return JSONResponse(
        _error(grammar, status, refusal.message, request_id),
        status_code=status,
        headers=headers,
    )


def told_status(grammar: Grammar, status: int) -> int:
    """The status in the words of the caller's API: 529 is Anthropic's alone."""
    return 503 if status == 529 and grammar == "openai" else status


def stream_end(message: str, *, begun: bool) -> bytes:
    """The events that end an OpenAI stream which the engine left unfinished.

    After some content it is an API error rather than an overload: what was shown already must not
    be repeated silently.
    """
    error = _error("openai", 502 if begun else 503, message, None)
    text = json.dumps(error, separators=(",", ":"))
    return f"data: {text}\n\ndata: [DONE]\n\n".encode()


def error_in_stream(status: int, body: bytes) -> bytes:
    """An engine's answer that is none, for a client that awaits an OpenAI stream."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "error" not in said:
        told = f"The engine answered with HTTP {status} and no stream. Send the request again."
        return stream_end(told, begun=False)
    text = json.dumps(said, separators=(",", ":"))
    return f"data: {text}\n\ndata: [DONE]\n\n".encode()


def _error(grammar: Grammar, status: int, message: str, request_id: str | None) -> dict[str, Any]:
    if grammar == "anthropic":
        kind = ANTHROPIC_TYPES.get(status, "api_error")
        body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
        return body if request_id is None else {**body, "request_id": request_id}
    kind = _OPENAI_TYPES.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}
