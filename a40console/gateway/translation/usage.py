"""Tokens as chat completions count them, in the words of the Messages API."""

from __future__ import annotations

from typing import Any

from a40console.gateway.answer import tokens


def usage_of(chunk: dict[str, Any]) -> dict[str, int]:
    """What a chunk or an answer says of its tokens: empty where it says nothing.

    Anthropic's input is what was computed; what the cache gave stands beside it, so that the
    prompt is their sum. llama.cpp's `timings` say the same as usage does, on every chunk.
    """
    usage, timings = chunk.get("usage"), chunk.get("timings")
    if isinstance(usage, dict):
        details = usage.get("prompt_tokens_details")
        cached, created = tokens(details, "cached_tokens"), tokens(details, "created_cache_tokens")
        prompt, generated = tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")
        if prompt is not None:
            prompt = max(0, prompt - (cached or 0) - (created or 0))
    elif isinstance(timings, dict):
        prompt, generated = tokens(timings, "prompt_n"), tokens(timings, "predicted_n")
        cached, created = tokens(timings, "cache_n"), None
    else:
        return {}
    said = {
        "input_tokens": prompt,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": created,
        "output_tokens": generated,
    }
    return {name: count for name, count in said.items() if count is not None}
