"""The blocks of a snapshot of which nothing is known: everything missing, with the reason."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.latency import Latency
from a40console.model.snapshot import KvCache, PrefixCache, Requests, SpeculationInfo, Throughput

NO_SOURCE = "none"
"""The source of a block that none feeds."""


def throughput(why: Missing) -> Throughput:
    """No speed."""
    return Throughput(
        window_s=5.0,
        source=NO_SOURCE,
        age_s=why,
        generation_tokens_per_s=why,
        prefill_tokens_per_s=why,
        passes_per_s=why,
        sequences_per_pass=why,
    )


def requests(why: Missing) -> Requests:
    """No requests in an engine."""
    return Requests(
        source=NO_SOURCE,
        age_s=why,
        held=0,
        waiting=why,
        waiting_by_reason={},
        running=why,
        max_running=why,
        aborted=why,
        failed=why,
        preemptions=why,
        resent=why,
        gate=None,
    )


def latency(why: Missing) -> Latency:
    """No latencies."""
    return Latency(window_s=60.0, ttft_s=why, pass_s=why, queue_s=why)


def prefix_cache(why: Missing) -> PrefixCache:
    """No cache."""
    return PrefixCache(
        window_s=60.0,
        source=NO_SOURCE,
        age_s=why,
        hit_ratio=why,
        hit_tokens=why,
        queried_tokens=why,
        prompts=why,
        reusable_ratio=why,
        hit_ratio_since_start=why,
        last_loss=why,
    )


def speculation(why: Missing) -> SpeculationInfo:
    """No speculation."""
    return SpeculationInfo(
        window_s=60.0,
        source=NO_SOURCE,
        age_s=why,
        mode=why,
        control="none",
        started_with=why,
        depth=why,
        depth_max=why,
        method=why,
        tokens_per_pass=why,
        accepted_per_draft=why,
        acceptance_ratio=why,
        accepted_ratio_per_position=why,
        drafts=why,
        tail_verdict=why,
        locked_reason=None,
        off_tokens_per_s_at_this_load=why,
    )


def kv_cache(why: Missing) -> KvCache:
    """No KV cache."""
    return KvCache(
        source=NO_SOURCE,
        age_s=why,
        held_tokens=why,
        reusable_tokens=why,
        free_tokens=why,
        capacity_tokens=why,
        held_ratio=why,
        fits_more=why,
    )
