"""Whether a model fits: weights, cache and overhead against the memory of a machine. Pure, total.

What an earlier start measured stands apart from what is worked out. Where nothing was measured, the
overhead is ≈: its formula was fitted to two starts of Kimi-Linear-48B on an A40 with vLLM 0.27.1
(0.64 GiB without speculation, 1.07 GiB with five draft tokens), whose caches of 1,505,550 and
1,416,566 tokens it gives within 2 %. "About 450,000 tokens" of Qwen3-Coder-30B are told without the
settings of their start: the formula gives them within 5 % for 24 draft tokens with 16,384 tokens a
pass. Without speculation it leaves more, 521,648 with vLLM's own share of 92 %, which no start has
measured: that figure may be 16 % too high.
"""

from __future__ import annotations

from dataclasses import replace

from a40console.engines import fit_llamacpp, fit_vllm
from a40console.engines.fit_result import NOT_MEASURED, Fit, MeasuredFit, unknown
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.model.shape import ModelShape

__all__ = ["Fit", "MeasuredFit", "fit"]

CPP = "vllm.cpp lays its cache out in a way of its own: the figures are what vLLM would take"
NOT_READ = Missing("the machine's memory was not read")


def fit(
    profile: Profile,
    shape: ModelShape | Missing,
    vram_bytes: int | Missing,
    *,
    devices: int = 1,
    taken_bytes: int = 0,
    host_bytes: int | Missing = NOT_READ,
    measured: MeasuredFit | Missing = NOT_MEASURED,
) -> Fit:
    """Whether a profile's model fits into a machine; never raises.

    Args:
        profile: What is asked.
        shape: The model's figures.
        vram_bytes: Of one GPU, all of it.
        devices: GPUs here.
        taken_bytes: What others hold of a GPU.
        host_bytes: What the container may use, for engines that run without a GPU.
        measured: What an earlier start told.
    """
    if not isinstance(vram_bytes, Missing) and vram_bytes <= 0:
        vram_bytes = Missing("the GPU does not say how much memory it has")
    if isinstance(shape, Missing):
        found = unknown(profile, shape.reason)
    elif profile.kind == "attached":
        found = unknown(profile, "its memory is another machine's")
    elif profile.is_cpp:
        told = fit_vllm.judge(profile, shape, vram_bytes, devices, taken_bytes, host_bytes)
        unsure = replace(told, verdict="unknown", judged_by="nothing", reason=CPP, remedies=())
        found = told if _too_heavy(told) else unsure
    elif profile.speaks_vllm:
        found = fit_vllm.judge(profile, shape, vram_bytes, devices, taken_bytes, host_bytes)
    else:
        found = fit_llamacpp.judge(profile, shape, vram_bytes, devices, host_bytes)
    found = replace(found, measured=measured)
    return found if isinstance(measured, Missing) else _by_measure(found, measured)


def _too_heavy(found: Fit) -> bool:
    """Whether the weights alone exceed the memory, however a cache is laid out."""
    weights, memory = number(found.weights_bytes), number(found.usable_bytes)
    return weights is not None and memory is not None and weights > memory


def _by_measure(found: Fit, measured: MeasuredFit) -> Fit:
    """A start that served with these settings decides, whatever was worked out."""
    tokens, context = number(measured.capacity_tokens), number(found.context_tokens)
    if not measured.same_settings or tokens is None or context is None or tokens < context:
        return found
    return replace(
        found,
        verdict="fits",
        judged_by="measured",
        reason=f"start {measured.start} with these settings had a cache of {tokens:,.0f} tokens, "
        f"for contexts of {context:,.0f}",
        remedies=(),
    )
