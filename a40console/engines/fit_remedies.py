"""The one setting that would make a model fit, as a change of the profile. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

Setting = str | int | float | None

HIGHEST_UTILIZATION = 0.92
"""Above vLLM's own default its last steps fail: at 0.93 Kimi-Linear ran out of memory in the
sampler on an A40, with 143 MiB left of the 160 MiB that it asked for."""

ROUND_TOKENS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A key of the profile, and the value with which it fits."""

    setting: str
    before: Setting
    after: Setting
    effect: str
    """What it costs or gives."""


def rounded_context(tokens: int) -> int:
    """A context that is not longer, as people write them."""
    return tokens // ROUND_TOKENS * ROUND_TOKENS or tokens


def context_remedy(before: int, longest: int) -> Iterator[Remedy]:
    """A shorter context, where one is left."""
    if 0 < (after := rounded_context(longest)) < before:
        yield Remedy(
            setting="max_model_len",
            before=before,
            after=after,
            effect=f"the longest context that fits; clients must compact before {after:,} tokens",
        )


def utilization_remedy(
    before: float, asked_named: bool, needed_share: float, held_by_others: float
) -> Iterator[Remedy]:
    """A larger share of the GPU, where that is enough and free."""
    after = ceil(needed_share * 100) / 100
    if before < after <= min(HIGHEST_UTILIZATION, 1.0 - held_by_others):
        yield Remedy(
            setting="gpu_memory_utilization",
            before=before if asked_named else None,
            after=after,
            effect=f"gives vLLM {after - before:.0%} more of the GPU; keep {HIGHEST_UTILIZATION} "
            "as the most, for its last steps need some",
        )


def cheaper_cache_remedy(before: str) -> Remedy:
    """Half the bytes a token; for engines and models that take it."""
    return Remedy(
        setting="kv_cache_dtype",
        before=None if before == "auto" else before,
        after="fp8",
        effect="halves what a token takes; what was cached in full precision is rounded",
    )
