"""A change of a profile as it is offered after a failed start."""

from __future__ import annotations

from a40console.model.fix import FixOffer


def fix_offer() -> FixOffer:
    """The context is shortened to what fits the KV cache."""
    return FixOffer(
        id="0123456789ab",
        profile="mine",
        start="2026-11-30T10-00-00-ab-mine",
        code="kv-cache-too-small",
        cause="the KV cache has 4.00 GiB, and one request of 262144 tokens needs 9.00",
        evidence="ValueError: To serve at least one request with the model's max seq len (262144)",
        key="max_model_len",
        before="262144",
        after="116480",
        why="vLLM estimates that one request of that length fills the KV cache",
        file="/config/profiles/mine.toml",
        new_file=False,
        diff=("-max_model_len = 262144  # all", "+max_model_len = 116480  # all"),
    )
