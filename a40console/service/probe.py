"""A short request through our own gateway, as a client would send it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx

from a40console.errors import NotServingError

PROMPT = "Say hello in one short sentence."
MAX_TOKENS = 48


async def probe_request(url: str, token: str | None, model: str) -> dict[str, str]:
    """Send the prompt, and answer with the text, the tokens and how fast they came.

    Raises:
        NotServingError: If the gateway or the engine answers with an error.
    """
    headers = {"authorization": f"Bearer {token}"} if token else {}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": MAX_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began_s = time.monotonic()
    text, tokens, first_s, last_s = "", 0, began_s, began_s
    try:
        async with (
            httpx.AsyncClient(timeout=httpx.Timeout(120.0, connect=5.0)) as client,
            client.stream(
                "POST", f"{url}/v1/chat/completions", json=body,
                headers=headers | {"user-agent": "a40console-test"},
            ) as response,
        ):  # fmt: skip
            if response.is_error:
                raise _refused(await response.aread())
            async for chunk in _chunks(response):
                if piece := _piece(chunk):
                    last_s = time.monotonic()
                    first_s = first_s if text else last_s
                    text += piece
                if usage := chunk.get("usage"):
                    tokens = usage.get("completion_tokens", 0)
                if error := chunk.get("error"):
                    raise NotServingError("The engine broke off", evidence=str(error))
    except httpx.HTTPError as error:
        raise NotServingError(
            "The gateway does not answer", evidence=str(error) or type(error).__name__
        ) from error
    decode_s = last_s - first_s
    return {
        "prompt": PROMPT,
        "text": text.strip(),
        "tokens": str(tokens),
        "ttft_s": f"{first_s - began_s:.3f}",
        "tokens_per_s": f"{(tokens - 1) / decode_s:.1f}" if tokens > 1 and decode_s else "",
    }


async def _chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def _piece(chunk: dict[str, Any]) -> str:
    choices = chunk.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning") or ""


def _refused(body: bytes) -> NotServingError:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = body.decode(errors="replace")[:300]
    return NotServingError("The request was refused", evidence=str(message))
