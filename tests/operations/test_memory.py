"""A start waits for the GPU's memory, and never goes into certain want of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from a40console.errors import RefusedError
from a40console.model.figures import Figure, Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Gpu
from a40console.operations.memory import GpuMemory, GpuTakenError

GIB = 2**30


def gpu(used: Figure, total: Figure = 45 * GIB) -> Gpu:
    why = Missing("not asked")
    return Gpu(
        source="nvml",
        age_s=0.0,
        index=0,
        name="NVIDIA A40",
        memory_used_bytes=used,
        memory_total_bytes=total,
        memory_baseline_bytes=why,
        utilization_ratio=why,
        power_w=why,
        power_limit_w=why,
        temperature_c=why,
        sm_clock_mhz=why,
        throttle_reasons=why,
        read_bytes_per_s=why,
        peak_bytes_per_s=why,
    )


def memory(read: Callable[[], tuple[Gpu, ...] | Missing]) -> GpuMemory:
    return GpuMemory(read, period_s=0.01, wait_s=0.1)


def profile(kind: Literal["vllm", "llamacpp"] = "vllm") -> Profile:
    return Profile(name="x", kind=kind, model="m", gpu_memory_utilization=0.9)


async def test_it_waits_until_the_engine_before_has_let_go() -> None:
    readings = iter([40 * GIB, 40 * GIB, 20 * GIB, 1 * GIB])
    assert await memory(lambda: (gpu(next(readings)),)).wait_for_room(profile()) == 1 * GIB


async def test_memory_that_stays_held_is_refused_with_the_figures() -> None:
    with pytest.raises(RefusedError) as refused:
        await memory(lambda: (gpu(40 * GIB),)).wait_for_room(profile())
    assert "40.0 of 45.0 GiB" in refused.value.evidence
    assert "gpu_memory_utilization" in refused.value.remedy


async def test_without_a_reading_nothing_is_claimed() -> None:
    assert await memory(lambda: Missing("no driver")).wait_for_room(profile()) is None
    assert await memory(lambda: (gpu(Missing("lost")),)).wait_for_room(profile()) is None


async def test_an_engine_on_the_cpu_does_not_wait() -> None:
    assert await memory(lambda: (gpu(44 * GIB),)).wait_for_room(profile("llamacpp")) == 44 * GIB


async def test_what_the_arguments_ask_counts_before_the_setting() -> None:
    half = replace(profile(), arguments=("--gpu-memory-utilization=0.5",))
    assert await memory(lambda: (gpu(20 * GIB),)).wait_for_room(half) == 20 * GIB
    whole = replace(
        profile(), gpu_memory_utilization=0.5, arguments=("--gpu_memory_utilization", "0.9")
    )
    with pytest.raises(GpuTakenError, match="needs 90% of the GPU's memory"):
        await memory(lambda: (gpu(20 * GIB),)).wait_for_room(whole)
