"""A short question to the engine beside what passes through: counting, models."""

from __future__ import annotations

import asyncio
import io
import json
import secrets
from dataclasses import dataclass
from typing import Any

import aiohttp

from a40console.gateway.refusals import Refusal
from a40console.gateway.upstream import EngineSessions, Upstream, request_headers, upstream_url

_ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
_RETRY_S = 2.0


class NoAnswerRefusal(Refusal):
    """The engine gave no answer: it could not be reached, or ended before it was done."""


@dataclass(frozen=True, slots=True)
class Said:
    """An engine's answer."""

    status: int
    raw: bytes

    def body(self) -> dict[str, Any]:
        """The answer as an object; empty where it is none."""
        try:
            read = json.loads(self.raw)
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


async def ask_engine(
    sessions: EngineSessions,
    upstream: Upstream,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    timeout_s: float,
) -> Said:
    """Ask by POST with a body, else by GET.

    Raises:
        Refusal: If the engine gives no answer, in words for the client.
    """
    data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
    headers = request_headers(
        (), upstream.endpoint, f"a40-{secrets.token_hex(8)}", None if data is None else len(data)
    )
    if data is not None:
        headers["Content-Type"] = "application/json"
    method = "GET" if data is None else "POST"
    try:
        async with (
            asyncio.timeout(timeout_s),
            sessions.lease(upstream.endpoint) as session,
            session.request(
                method,
                upstream_url(upstream.endpoint, path, b""),
                data=None if data is None else io.BytesIO(data),  # sent in pieces
                headers=headers,
                allow_redirects=False,
            ) as response,
        ):
            return Said(response.status, await response.content.read(_ANSWER_LIMIT_BYTES))
    except TimeoutError as error:
        raise Refusal(
            529,
            f"The engine is busy: no answer within {timeout_s:g} s. Send the request again.",
            retry_after_s=_RETRY_S,
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswerRefusal(
            503,
            f"The engine cannot be reached: {str(error) or type(error).__name__}. "
            "Send the request again.",
            retry_after_s=_RETRY_S,
        ) from error
