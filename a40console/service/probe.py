"""A short request through our own gateway, as a client would send it."""

from __future__ import annotations

import time

import httpx

from a40console.model.figures import Figure, Missing, number
from a40console.service.chat import CONNECT_TIMEOUT_S, Answer, stream_chat

PROMPT = "Say hello in one short sentence."
MAX_TOKENS = 48
SILENCE_TIMEOUT_S = 120.0
_HEADERS = {"User-Agent": "a40console-test"}


async def probe_request(url: str, token: str | None, model: str) -> dict[str, str]:
    """Send the prompt, and answer with the text, the tokens and how fast they came.

    A figure that is missing is told with its reason.

    Raises:
        ConsoleError: If the gateway or the engine answers with an error, or with no answer.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": MAX_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    # Without the environment's proxies: they know nothing of this machine's loopback.
    async with httpx.AsyncClient(timeout=timeout, trust_env=False, headers=_HEADERS) as http:
        answer = Answer(model=model, sent_at_s=time.monotonic())
        async for _ in stream_chat(http, f"{url}/v1/chat/completions", token, body, answer):
            pass
    return {
        "prompt": PROMPT,
        "text": (answer.text or answer.thinking).strip(),
        "tokens": _written(answer.generated_tokens, ".0f"),
        "ttft_s": _written(answer.ttft_s, ".3f"),
        "tokens_per_s": _written(answer.tokens_per_s, ".1f"),
    }


def _written(figure: Figure, form: str) -> str:
    if isinstance(figure, Missing):
        return f"— ({figure.reason})"
    return format(number(figure), form)
