"""The fit of vLLM: its share of a GPU less weights and overhead is the cache. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from a40console.engines.cache_layout import CacheLayout, vllm_layout
from a40console.engines.capability import needs_gpu
from a40console.engines.fit_remedies import (
    Remedy,
    cheaper_cache_remedy,
    context_remedy,
    utilization_remedy,
)
from a40console.engines.fit_result import Fit, gib, like, unknown
from a40console.engines.memory_asked import MemoryAsked, memory_asked
from a40console.engines.model_size import weights_bytes
from a40console.model.figures import Estimated, Figure, Missing, combine, number
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape

FIXED_BYTES = int(0.42 * 2**30)
"""CUDA's context, graphs and the allocator's slack, as the fit of two measured starts left them."""

LOGIT_BYTES = 8
"""Of a word's score in the sampler: in 32 bits, twice."""

HIDDEN_COPIES = 4
"""Hidden states of a pass that live at once."""

NO_ROOM = Missing("nothing is left for a cache")
HOST_BYTES = int(3.6 * 2**30)
"""Of vLLM's three processes on the CPU besides weights and cache, as measured with 0.32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One start, its parts worked out; bytes are those of one device."""

    profile: Profile
    shape: ModelShape
    asked: MemoryAsked
    layout: CacheLayout
    memory_bytes: int | Missing
    devices_here: int
    taken_bytes: int
    weights: Figure
    weights_origin: str
    overhead: Figure
    on_gpu: bool

    @property
    def devices(self) -> int:
        return self.asked.tensor_parallel * self.asked.pipeline_parallel

    @property
    def lacks_devices(self) -> bool:
        """Whether GPUs are seen, and fewer than it asks for."""
        return self.on_gpu and 0 < self.devices_here < self.devices

    @property
    def usable(self) -> Figure:
        if isinstance(self.memory_bytes, Missing) or not self.on_gpu:
            return self.memory_bytes
        return int(self.memory_bytes * self.asked.utilization)

    @property
    def room(self) -> Figure:
        if self.asked.cache_bytes is not None:
            return self.asked.cache_bytes
        if not self.on_gpu:
            return Missing("VLLM_CPU_KVCACHE_SPACE is not set, and vLLM takes what it finds")
        return combine(
            lambda *parts: max(0.0, parts[0] - parts[1] - parts[2]),
            self.usable,
            self.weights,
            self.overhead,
        )


def judge(
    profile: Profile,
    shape: ModelShape,
    vram_bytes: int | Missing,
    devices_here: int,
    taken_bytes: int,
    host_bytes: int | Missing,
) -> Fit:
    """Whether vLLM would start: one sequence of the full context must fit, as it demands."""
    on_gpu = needs_gpu(profile) or profile.kind == "sim"
    asked = memory_asked(profile, shape, vram_bytes, on_cpu=not on_gpu)
    if isinstance(asked, Missing):
        return unknown(profile, asked.reason)
    divided = asked.tensor_parallel * asked.pipeline_parallel
    whole = weights_bytes(shape, profile.quantization)
    case = _Case(
        profile=profile,
        shape=shape,
        asked=asked,
        layout=vllm_layout(_stage(shape, asked.pipeline_parallel), asked.cache),
        memory_bytes=vram_bytes if on_gpu else host_bytes,
        devices_here=devices_here,
        taken_bytes=taken_bytes,
        weights=combine(lambda size: size / divided, whole) if divided > 1 else whole,
        weights_origin=_weights_origin(shape, whole),
        overhead=Estimated(float(overhead_bytes(shape, asked) if on_gpu else HOST_BYTES)),
        on_gpu=on_gpu,
    )
    return _judged(case)


def overhead_bytes(shape: ModelShape, asked: MemoryAsked) -> int:
    """≈ what a pass and the sampler take at their largest, and what is there whatever is asked."""
    shared = asked.tensor_parallel
    wide = shape.expert_intermediate_size or shape.intermediate_size
    at_once = max(1, shape.experts_per_token)
    elements = (
        at_once * (shape.hidden_size + wide // shared) if shape.experts else 3 * wide // shared
    )
    elements += HIDDEN_COPIES * shape.hidden_size
    batch = asked.cache.batched_tokens * elements * shape.element_bytes
    rows = min(asked.sequences * (1 + asked.cache.draft_tokens), asked.cache.batched_tokens)
    return FIXED_BYTES + batch + rows * shape.vocabulary * LOGIT_BYTES


def _stage(shape: ModelShape, stages: int) -> ModelShape:
    """The layers of the largest pipeline stage."""
    if stages == 1:
        return shape
    return replace(
        shape,
        attention_layers=-(-shape.attention_layers // stages),
        sliding_layers=-(-shape.sliding_layers // stages),
        recurrent_layers=-(-shape.recurrent_layers // stages),
    )


def _judged(case: _Case) -> Fit:
    context, room = case.asked.context_tokens, number(case.room)
    if isinstance(context, Missing):
        return unknown(case.profile, context.reason, **_known(case))
    needed = case.layout.bytes_for(context)
    known = _known(case) | {"needed_bytes": needed, "context_tokens": context}
    if refusal := _refusal(case):
        known |= dict.fromkeys(("capacity_tokens", "sequences", "longest_tokens"), NO_ROOM)
        known |= {"judged_by": "predicted", "verdict": "too_large"}
        return unknown(case.profile, refusal, **known | {"remedies": tuple(_remedies(case))})
    if room is None:
        reason = case.room.reason if isinstance(case.room, Missing) else ""
        return unknown(case.profile, reason, **known)
    room_bytes = int(room)
    enough = needed <= room_bytes
    known |= {
        "capacity_tokens": like(case.layout.capacity_tokens(room_bytes, context), case.room),
        "sequences": like(round(case.layout.sequences(room_bytes, context), 2), case.room),
        "longest_tokens": like(case.layout.longest(room_bytes), case.room),
        "verdict": "fits" if enough else "too_large",
        "judged_by": "predicted",
        "remedies": () if enough else tuple(_remedies(case)),
    }
    return unknown(case.profile, _reason(case, context, needed, room_bytes), **known)


def _known(case: _Case) -> dict[str, Any]:
    return {
        "place": "gpu" if case.on_gpu else "host",
        "memory_bytes": case.memory_bytes,
        "devices": case.devices,
        "usable_bytes": case.usable,
        "weights_bytes": case.weights,
        "weights_origin": case.weights_origin,
        "overhead_bytes": case.overhead,
        "overhead_origin": _overhead_origin(case),
        "kv_bytes_per_token": case.layout.bytes_per_token,
        "state_bytes_per_sequence": case.layout.state_blocks * case.layout.block_bytes,
        "room_bytes": case.room,
        "context_tokens": case.asked.context_tokens,
        "sequences_asked": case.asked.sequences,
    }


def _refusal(case: _Case) -> str:
    """Why it does not fit whatever its cache; empty where that decides."""
    if case.lacks_devices:
        return f"it asks for {case.devices} GPUs, and {case.devices_here} {_are(case.devices_here)}"
    if isinstance(case.memory_bytes, Missing):
        return ""
    weights, overhead = number(case.weights), number(case.overhead)
    if case.on_gpu:
        free = case.memory_bytes - case.taken_bytes
        share = case.asked.utilization * case.memory_bytes
        if free < share and case.taken_bytes:
            return (
                f"vLLM asks for {case.asked.utilization:.0%} of the GPU, {gib(share)}, and others "
                f"hold {gib(case.taken_bytes)}: lower gpu_memory_utilization to "
                f"{free / case.memory_bytes - 0.005:.2f}, or end what holds it"
            )
    if weights is None or overhead is None:
        return ""
    fixed = case.asked.cache_bytes or 0
    whole, most = weights + overhead + fixed, number(case.usable) or 0.0
    if fixed and case.on_gpu:
        most = float(case.memory_bytes)
    if whole < most:
        return ""
    named = f" and a cache of {gib(fixed)}" if fixed else ""
    return f"weights of {gib(weights)}, ≈ {gib(overhead)} besides{named} exceed {_of(case, most)}"


def _of(case: _Case, most: float) -> str:
    if not case.on_gpu:
        return f"the {gib(most)} of memory here"
    per_gpu = "" if case.devices == 1 else " of each"
    more = "a smaller quantisation, or more GPUs (tensor_parallel), is needed"
    return f"the {gib(most)}{per_gpu} GPU that vLLM may use: {more}"


def _are(count: int) -> str:
    return "is here" if count == 1 else "are here"


def _reason(case: _Case, context: int, needed: int, room_bytes: int) -> str:
    about = "≈ " if isinstance(case.room, Estimated) else ""
    verb = "fits into" if needed <= room_bytes else "does not fit into"
    where = "each GPU's cache" if case.devices > 1 else "the cache"
    return (
        f"a context of {context:,} tokens takes {gib(needed)} and {verb} {where} of "
        f"{about}{gib(room_bytes)}"
    )


def _remedies(case: _Case) -> Iterator[Remedy]:
    """Each change that alone makes it fit, the cheapest to live with first."""
    asked, shape, context = case.asked, case.shape, case.asked.context_tokens
    if isinstance(context, Missing):
        return
    if not case.lacks_devices and (room := number(case.room)) is not None:
        yield from context_remedy(context, shape.within(case.layout.longest(int(room))))
    if not case.on_gpu or asked.cache_bytes is not None or isinstance(case.memory_bytes, Missing):
        return
    if not (asked.cache_type.startswith("fp8") or shape.latent_dim or shape.recurrent_layers):
        half = replace(asked, cache=replace(asked.cache, element_bytes=1))
        if _enough(_with(case, half)):
            yield cheaper_cache_remedy(asked.cache_type)
    whole = case.layout.bytes_for(context) + (number(case.weights) or 0.0)
    share = (whole + (number(case.overhead) or 0.0)) / case.memory_bytes
    named = case.profile.gpu_memory_utilization is not None
    if not case.lacks_devices:
        held = case.taken_bytes / case.memory_bytes
        yield from utilization_remedy(asked.utilization, named, share, held)
    yield from _fewer_sequences(case)
    yield from _more_gpus(case)


def _fewer_sequences(case: _Case) -> Iterator[Remedy]:
    """Fewer rows for the sampler, by halves."""
    fewer = case.asked.sequences // 2
    while fewer >= 1:
        if _enough(_with(case, replace(case.asked, sequences=fewer))):
            before = case.profile.max_running
            effect = "leaves the sampler fewer rows; more clients wait in the queue"
            yield Remedy(setting="max_running", before=before, after=fewer, effect=effect)
            return
        fewer //= 2


def _more_gpus(case: _Case) -> Iterator[Remedy]:
    """Each layer divided among twice as many GPUs, as far as there are some."""
    count = case.asked.tensor_parallel * 2
    while count * case.asked.pipeline_parallel <= case.devices_here:
        divided = replace(case.asked.cache, tensor_parallel=count)
        if _enough(_with(case, replace(case.asked, tensor_parallel=count, cache=divided))):
            before = case.profile.tensor_parallel
            effect = f"divides each layer among {count} GPUs"
            yield Remedy(setting="tensor_parallel", before=before, after=count, effect=effect)
            return
        count *= 2


def _with(case: _Case, asked: MemoryAsked) -> _Case:
    """The same start, asked for otherwise."""
    before, after = case.devices, asked.tensor_parallel * asked.pipeline_parallel
    overhead = overhead_bytes(case.shape, asked) if case.on_gpu else HOST_BYTES
    return replace(
        case,
        asked=asked,
        layout=vllm_layout(_stage(case.shape, asked.pipeline_parallel), asked.cache),
        weights=combine(lambda size: size * before / after, case.weights),
        overhead=Estimated(float(overhead)),
    )


def _enough(case: _Case) -> bool:
    """Whether one sequence of the full context fits."""
    room, context = number(case.room), number(case.asked.context_tokens)
    if room is None or context is None or _refusal(case):
        return False
    return case.layout.bytes_for(int(context)) <= room


def _weights_origin(shape: ModelShape, whole: Figure) -> str:
    if isinstance(whole, Missing):
        return whole.reason
    if isinstance(whole, Estimated):
        return f"worked out from {shape.origin}"
    return f"by {shape.origin}"


def _overhead_origin(case: _Case) -> str:
    if not case.on_gpu:
        return "vLLM's processes on the CPU, as measured with 0.32"
    return (
        f"graphs and context, a pass of {case.asked.cache.batched_tokens:,} tokens, the sampler's "
        f"rows for {case.asked.sequences:,} sequences; fitted to measured starts on an A40"
    )
