"""What the output of an earlier start says of its memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from a40console.engines.fit_result import MeasuredFit
from a40console.engines.logs import strip_escapes
from a40console.model.figures import Figure, Missing
from a40console.model.profile import Profile

GIB = 2**30
_UNSAID = Missing("its output does not say")
_PATTERNS = {
    "weights_gib": re.compile(r"[Mm]odel loading took (?P<value>[\d.]+) ?Gi?B"),
    "room_gib": re.compile(r"Available KV cache memory: (?P<value>[\d.]+) GiB"),
    "capacity": re.compile(r"[CG]PU KV cache size: (?P<value>[\d,]+) tokens"),
    "context": re.compile(r"Maximum concurrency for (?P<value>[\d,]+) tokens per request"),
    "sequences": re.compile(r"tokens per request: (?P<value>[\d.]+)x"),
}
MEMORY_KEYS = (
    "kind",
    "model",
    "max_model_len",
    "max_running",
    "max_batched_tokens",
    "kv_cache_dtype",
    "gpu_memory_utilization",
    "quantization",
    "implementation",
    "tensor_parallel",
    "prefix_caching",
    "async_scheduling",
    "enforce_eager",
    "speculation",
    "arguments",
    "environment",
)
"""What of a profile a start's memory depends on."""


def read_measured(
    start: str, asked_then: Profile, asked_now: Profile, lines: Iterable[str]
) -> MeasuredFit | Missing:
    """The figures of one start; missing where it never came to size its cache.

    Args:
        start: Its id.
        asked_then: The profile that it was started with.
        asked_now: The one whose fit is asked.
        lines: Its output; what is said last counts.
    """
    said: dict[str, float] = {}
    for line in lines:
        clean = strip_escapes(line)
        for name, pattern in _PATTERNS.items():
            if (match := pattern.search(clean)) is not None:
                said[name] = float(match["value"].replace(",", "").rstrip("."))
    if "capacity" not in said:
        return Missing("the output of earlier starts does not say what they took")
    return MeasuredFit(
        start=start,
        same_settings=same_memory(asked_then, asked_now),
        weights_bytes=_bytes(said, "weights_gib"),
        room_bytes=_bytes(said, "room_gib"),
        capacity_tokens=int(said["capacity"]),
        context_tokens=int(said["context"]) if "context" in said else _UNSAID,
        sequences=said.get("sequences", _UNSAID),
    )


def same_memory(first: Profile, second: Profile) -> bool:
    """Whether two profiles ask the same of a machine's memory."""
    return all(getattr(first, key) == getattr(second, key) for key in MEMORY_KEYS)


def _bytes(said: Mapping[str, float], name: str) -> Figure:
    return int(said[name] * GIB) if name in said else _UNSAID
