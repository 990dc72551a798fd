"""The fit of llama.cpp: whole layers with their cells on each GPU, or all in memory. Pure."""

from __future__ import annotations

from typing import Any

from a40console.engines import llamacpp
from a40console.engines.cache_layout import layer_token_bytes
from a40console.engines.fit_remedies import Remedy, rounded_context
from a40console.engines.fit_result import Fit, gib, like, unknown
from a40console.engines.memory_asked import own_word
from a40console.engines.model_size import weights_bytes
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape

MARGIN_BYTES = 2**30
"""What its own fitting of layers leaves free on each GPU, for what it computes in."""

MASK_BYTES = 4
PASS_TOKENS = 512
"""Tokens of a pass: each has a mask over the whole context, in 32 bits."""

CELL_BYTES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""Bytes of an element by the cache's type: blocks of 32 with their scales."""

PLACEMENT = (
    "-ngl",
    "--n-gpu-layers",
    "--gpu-layers",
    "-ot",
    "--override-tensor",
    "-cmoe",
    "--cpu-moe",
    "-ncmoe",
    "--n-cpu-moe",
)
"""With one of these the operator says what lies where."""


def judge(
    profile: Profile,
    shape: ModelShape,
    vram_bytes: int | Missing,
    devices_here: int,
    host_bytes: int | Missing,
) -> Fit:
    """Whether all slots at their full context fit beside the weights."""
    on_gpu = profile.executable is not None and not isinstance(vram_bytes, Missing)
    memory = vram_bytes if on_gpu else host_bytes
    devices = devices_here if on_gpu else 1
    whole, tokens = weights_bytes(shape, profile.quantization), _context(profile, shape)
    if isinstance(tokens, Missing):
        return unknown(profile, tokens.reason)
    layer_bytes = _layer_bytes(profile, shape)
    if isinstance(layer_bytes, Missing):
        return unknown(profile, layer_bytes.reason)
    slots = llamacpp.slots(profile)
    per_token = round(layer_bytes) * _caching_layers(shape)
    state = _state_bytes(shape)
    needed = tokens * per_token + slots * state
    overhead = _overhead(tokens)
    known: dict[str, Any] = {
        "place": "gpu" if on_gpu else "host",
        "memory_bytes": memory,
        "devices": devices,
        "usable_bytes": memory,
        "weights_bytes": whole,
        "weights_origin": shape.origin
        if shape.weights_bytes
        else f"worked out from {shape.origin}",
        "overhead_bytes": Estimated(float(overhead)),
        "overhead_origin": f"1 GiB to compute in, and a mask of {PASS_TOKENS} × {tokens:,} tokens, "
        "on each device",
        "kv_bytes_per_token": per_token,
        "state_bytes_per_sequence": state,
        "needed_bytes": needed,
        "context_tokens": tokens // slots,
        "sequences_asked": slots,
    }
    size = number(whole)
    if size is None or isinstance(memory, Missing):
        lacking = next(each for each in (whole, memory) if isinstance(each, Missing))
        return unknown(profile, lacking.reason, **known)
    if placed := [flag for flag in PLACEMENT if own_word(profile.arguments, (flag,)) is not None]:
        return unknown(profile, f"{placed[0]} says what lies where, so it is not foreseen", **known)
    return _judged(profile, shape, known, (size, float(memory), devices, slots))


def _judged(
    profile: Profile, shape: ModelShape, known: dict[str, Any], case: tuple[float, float, int, int]
) -> Fit:
    size, memory, devices, slots = case
    per_token, state = known["kv_bytes_per_token"], known["state_bytes_per_sequence"]
    weights: Figure = known["weights_bytes"]

    def fits(tokens: int) -> bool:
        cells = tokens * per_token + slots * state
        return _fits(size + cells, _overhead(tokens), shape.layers, memory, devices)

    asked = known["context_tokens"] * slots
    longest = _longest(fits, asked)
    room = max(0.0, memory * devices - size - _overhead(asked) * devices)
    known |= {
        "room_bytes": Estimated(room),
        "capacity_tokens": asked if fits(asked) else like(longest, Estimated(0.0)),
        "sequences": slots if fits(asked) else like(longest // max(1, asked // slots), weights),
        "longest_tokens": Estimated(float(longest // slots)),
        "verdict": "fits" if fits(asked) else "too_large",
        "judged_by": "predicted",
        "remedies": () if fits(asked) else tuple(_remedies(profile, shape, asked, longest, slots)),
    }
    verb = "fit" if fits(asked) else "do not fit"
    where = f"{devices} GPUs of {gib(memory)}" if devices > 1 else gib(memory)
    free = f"≈ {gib(_overhead(asked))} of {'each' if devices > 1 else 'it'} left to compute in"
    reason = (
        f"weights of {gib(size)} and {asked:,} tokens of {gib(known['needed_bytes'])} {verb} into "
        f"{where}, {free}"
    )
    return unknown(profile, reason, **known)


def _remedies(
    profile: Profile, shape: ModelShape, asked: int, longest: int, slots: int
) -> list[Remedy]:
    found = []
    if (context := rounded_context(shape.within(longest // slots))) > 0:
        found.append(
            Remedy(
                setting="max_model_len",
                before=profile.max_model_len,
                after=context,
                effect="the longest context of each slot that fits",
            )
        )
    if slots > 1 and 0 < (fewer := longest // (asked // slots)) < slots:
        found.append(
            Remedy(
                setting="max_running",
                before=slots,
                after=fewer,
                effect="fewer slots with the whole context each",
            )
        )
    return found


def _fits(whole: float, overhead: int, layers: int, memory: float, devices: int) -> bool:
    """Whether the devices take all layers; a layer with its cells is never divided."""
    if devices == 1:
        return whole + overhead <= memory
    per_layer = whole / layers
    return int(max(0.0, memory - overhead) / per_layer) * devices >= layers


def _longest(fits: Any, asked: int) -> int:
    """The most tokens up to those asked that fit, to the token."""
    low, high = 0, asked
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _context(profile: Profile, shape: ModelShape) -> int | Missing:
    """Tokens of all slots together."""
    asked = llamacpp.context_tokens(profile) or shape.longest_context
    return asked or Missing("neither profile nor model say how long a context is")


def _layer_bytes(profile: Profile, shape: ModelShape) -> float | Missing:
    """What one layer keeps of one token: keys and values by the type of each, a latent as keys."""
    keys = _element_bytes(profile, ("-ctk", "--cache-type-k"))
    values = keys if shape.latent_dim else _element_bytes(profile, ("-ctv", "--cache-type-v"))
    if isinstance(keys, Missing):
        return keys
    if isinstance(values, Missing):
        return values
    value_elements = shape.kv_heads * (shape.value_head_dim or shape.head_dim)
    return layer_token_bytes(shape, 1) * keys + value_elements * (values - keys)


def _element_bytes(profile: Profile, flags: tuple[str, ...]) -> float | Missing:
    kind = own_word(profile.arguments, flags) or profile.kv_cache_dtype
    if (found := CELL_BYTES.get(kind or "f16")) is None:
        return Missing(f"how much a cache of type {kind} takes is not known here")
    return found


def _caching_layers(shape: ModelShape) -> int:
    return shape.attention_layers + shape.sliding_layers


def _state_bytes(shape: ModelShape) -> int:
    """Recurrent states of one slot, which llama.cpp keeps in 32 bits."""
    taps = shape.convolution_channels * shape.convolution_taps
    return shape.recurrent_layers * (shape.recurrent_elements + taps) * 4


def _overhead(tokens: int) -> int:
    return MARGIN_BYTES + tokens * PASS_TOKENS * MASK_BYTES
