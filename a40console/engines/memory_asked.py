"""What a profile asks of a machine's memory, its own arguments read before its settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from a40console.engines import vllm
from a40console.engines.cache_layout import CPU_BLOCK_TOKENS, GPU_BLOCK_TOKENS, CacheAsked
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape

DEFAULT_UTILIZATION = 0.92
"""vLLM's own, 0.27 to 0.33."""

LARGE_GPU_BYTES = 70 * 2**30
"""From here on vLLM reads more tokens a pass and runs more sequences unless told otherwise."""

CACHE_SPACE = "VLLM_CPU_KVCACHE_SPACE"
"""GiB of cache of vLLM's CPU build."""

_FLAGS = {
    "tensor_parallel": ("--tensor-parallel-size", "-tp"),
    "pipeline_parallel": ("--pipeline-parallel-size", "-pp"),
    "utilization": ("--gpu-memory-utilization",),
    "cache_bytes": ("--kv-cache-memory-bytes", "--kv-cache-memory"),
    "context": ("--max-model-len",),
    "sequences": ("--max-num-seqs",),
    "batched": ("--max-num-batched-tokens",),
    "block": ("--block-size",),
}
_CACHE_TYPES = ("--kv-cache-dtype",)
_FULL_PRECISION = frozenset({"auto", "bfloat16", "float16", "half", "float32"})
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)i?")
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAsked:
    """A start of vLLM as far as memory goes."""

    context_tokens: int | Missing
    sequences: int
    tensor_parallel: int
    pipeline_parallel: int
    utilization: float
    cache_bytes: int | None
    """A cache of a fixed size; None leaves vLLM what is left of its share."""

    cache: CacheAsked
    cache_type: str
    """`auto` where nothing is asked."""


def memory_asked(
    profile: Profile, shape: ModelShape, gpu_bytes: int | Missing, *, on_cpu: bool
) -> MemoryAsked | Missing:
    """What the profile asks of vLLM; missing where the type of its cache is not known here."""
    own = own_amounts(profile.arguments)
    large = not isinstance(gpu_bytes, Missing) and gpu_bytes >= LARGE_GPU_BYTES
    speculates = profile.speculation is not None and profile.speculation.ready
    depth = profile.speculation.tokens if profile.speculation is not None and speculates else 0
    batched = int(own.get("batched") or vllm.batched_tokens(profile) or 0)
    kind = _cache_type(profile)
    if (element_bytes := cache_element_bytes(kind, shape)) is None:
        return Missing(f"how much a cache of type {kind} takes is not known here")
    context = int(own.get("context") or profile.max_model_len or shape.longest_context)
    prefix = profile.prefix_caching
    divided = max(1, int(own.get("tensor_parallel") or profile.tensor_parallel or 1))
    return MemoryAsked(
        context_tokens=context or Missing("neither profile nor model say how long a context is"),
        sequences=int(own.get("sequences") or profile.max_running or (1024 if large else 256)),
        tensor_parallel=divided,
        pipeline_parallel=max(1, int(own.get("pipeline_parallel", 1))),
        utilization=_utilization(profile, own),
        cache_bytes=fixed_cache_bytes(profile.environment, own) if on_cpu else _own_cache(own),
        cache=CacheAsked(
            element_bytes=element_bytes,
            tensor_parallel=divided,
            block_tokens=int(own.get("block", CPU_BLOCK_TOKENS if on_cpu else GPU_BLOCK_TOKENS)),
            # For models with recurrent layers vLLM leaves it off unless it is asked for.
            prefix_caching=bool(prefix) if shape.recurrent_layers else prefix is not False,
            draft_tokens=depth,
            batched_tokens=batched or (8192 if large and not depth else 2048),
        ),
        cache_type=kind,
    )


def fixed_cache_bytes(environment: Mapping[str, str], own: Mapping[str, float]) -> int | None:
    """The cache that vLLM's CPU build is given; None where it takes what it finds."""
    try:
        return int(float(environment[CACHE_SPACE]) * 2**30)
    except (KeyError, ValueError, OverflowError):
        return _own_cache(own)


def cache_element_bytes(kind: str, shape: ModelShape) -> int | None:
    """Of a cached key or value; None for a type that is not known here."""
    if kind == "auto":
        return shape.element_bytes
    if kind.startswith("fp8") or kind == "int8":
        return 1
    return {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4}.get(kind)


def more_room(profile: Profile | None) -> str:
    """What else would leave the cache more room, as a sentence; only what is not asked already.

    Args:
        profile: What was started; None where that is not known.
    """
    own = own_amounts(profile.arguments) if profile is not None else {}
    found = []
    if profile is None or _utilization(profile, own) < DEFAULT_UTILIZATION:
        found.append("raise gpu_memory_utilization")
    if profile is None or int(own.get("sequences") or profile.max_running or 2) > 1:
        found.append("lower max_running")
    if profile is None or _cache_type(profile) in _FULL_PRECISION:
        found.append("set kv_cache_dtype = 'fp8'")
    return f" Or {' or '.join(found)}." if found else ""


def utilization(profile: Profile) -> float:
    """The share of a GPU that a vLLM is to take."""
    return _utilization(profile, own_amounts(profile.arguments))


def _utilization(profile: Profile, own: Mapping[str, float]) -> float:
    return own.get("utilization") or profile.gpu_memory_utilization or DEFAULT_UTILIZATION


def _cache_type(profile: Profile) -> str:
    return own_word(profile.arguments, _CACHE_TYPES) or profile.kv_cache_dtype or "auto"


def own_amounts(arguments: Sequence[str]) -> dict[str, float]:
    """The amounts among a profile's own arguments; words such as `auto` are none."""
    found = {}
    for name, flags in _FLAGS.items():
        word = own_word(arguments, flags)
        if word is not None and (match := _AMOUNT.fullmatch(word)) is not None:
            found[name] = float(match[1]) * _TIMES[match[2]]
    return found


def own_word(arguments: Sequence[str], flags: Sequence[str]) -> str | None:
    """What follows the last of these flags; None where none is there."""
    words = [part for argument in arguments for part in argument.split("=", 1)]
    found = None
    for flag, after in pairwise([*words, ""]):
        if flag.startswith("-") and flag.replace("_", "-") in flags:
            found = after
    return found


def _own_cache(own: Mapping[str, float]) -> int | None:
    return int(own["cache_bytes"]) if own.get("cache_bytes") else None
