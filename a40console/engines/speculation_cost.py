"""What an engine pays for speculation that is ready, whether it is on or off. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from a40console.engines.vllm import SYNCHRONOUS_METHODS
from a40console.model.profile import Profile


def costs_of_ready(profile: Profile) -> tuple[str, ...]:
    """Each cost in a sentence; none where the engine is started without speculation."""
    asked = profile.speculation
    if asked is None or not asked.ready or not profile.speaks_vllm:
        return ()
    return tuple(_costs(profile))


def _costs(profile: Profile) -> Iterator[str]:
    """As vLLM 0.27.1 and 0.32.0 do it: `SpeculativeConfig`, and the checks of sampling settings."""
    asked = profile.speculation
    if asked is None:
        return
    if asked.method in SYNCHRONOUS_METHODS:
        yield f"async scheduling stays off: the scheduler waits for the drafts of {asked.method}"
    yield "requests with min_p or logit_bias are refused (HTTP 400)"
    if asked.max_batched_tokens is not None:
        yield f"a pass takes up to {asked.max_batched_tokens:,} tokens, on and off"
    elif profile.max_batched_tokens is None:
        yield "vLLM lowers the tokens of a pass, unless max_batched_tokens says otherwise"
    if not profile.enforce_eager:
        yield (
            f"CUDA graphs are made for {asked.tokens + 1} tokens a sequence: off live is not "
            "what an engine started without it is"
        )
