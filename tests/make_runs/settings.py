"""Where a run was made, and what it would take."""

from __future__ import annotations

from typing import Any

from a40console.model.figures import Estimated
from a40console.model.run import RunEnvironment, RunPlan

ARMS = ("none", "cc-auto-48k", "cc-clear", "per-turn", "block")


def environment(**changes: Any) -> RunEnvironment:
    """A coder model on one A40 under vLLM."""
    values: dict[str, Any] = {
        "console": "0.1.0",
        "simulated": False,
        "engine_kind": "vllm",
        "engine_version": "0.32.0",
        "model": "Qwen3-Coder-30B-A3B-Instruct-AWQ",
        "model_digest": "9c1e" * 16,
        "config_digest": "51d7" * 16,
        "profile": "qwen3-coder",
        "argv": ("vllm", "serve", "--max-model-len", "262144", "--kv-cache-dtype", "fp8"),
        "effective": {
            "max_model_len": "262144",
            "prefix_caching": "on",
            "speculation": "ngram, 5 tokens",
        },
        "gpu": "NVIDIA A40",
        "gpu_count": 1,
        "driver": "570.86.15",
        "vcpu_quota": 9.0,
        "usd_per_h": 0.44,
        "host": "a91f03",
    }
    return RunEnvironment(**(values | changes))


def plan(**changes: Any) -> RunPlan:
    """What a compaction would take while a session is at work."""
    values: dict[str, Any] = {
        "arms": ARMS,
        "requests": 1_860,
        "seconds": Estimated(6_120.0),
        "usd": Estimated(0.748),
        "intrusion": "evicts",
        "consequences": (
            "It empties the prefix cache 15 times.",
            "Session 7f3a9c52 is active: its next prompt, 31,844 tokens, is read from its begin.",
        ),
    }
    return RunPlan(**(values | changes))
