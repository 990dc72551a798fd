"""Answers of NVML as figures, and what is known about a card by its name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a40console.model.figures import Figure, Missing, measured

PEAK_BYTES_PER_S: Mapping[str, float] = {
    "NVIDIA A40": 696e9,
    "NVIDIA A10": 600e9,
    "NVIDIA A10G": 600e9,
    "NVIDIA A30": 933e9,
    "NVIDIA A100-SXM4-40GB": 1555e9,
    "NVIDIA A100-PCIE-40GB": 1555e9,
    "NVIDIA A100-SXM4-80GB": 2039e9,
    "NVIDIA A100 80GB PCIe": 1935e9,
    "NVIDIA H100 80GB HBM3": 3350e9,
    "NVIDIA H200": 4800e9,
    "NVIDIA L4": 300e9,
    "NVIDIA L40": 864e9,
    "NVIDIA L40S": 864e9,
    "NVIDIA RTX A4000": 448e9,
    "NVIDIA RTX A4500": 640e9,
    "NVIDIA RTX A5000": 768e9,
    "NVIDIA RTX A6000": 768e9,
    "NVIDIA RTX 4000 Ada Generation": 360e9,
    "NVIDIA RTX 5000 Ada Generation": 576e9,
    "NVIDIA RTX 6000 Ada Generation": 960e9,
    "NVIDIA GeForce RTX 3090": 936e9,
    "NVIDIA GeForce RTX 4090": 1008e9,
    "NVIDIA GeForce RTX 5090": 1792e9,
}
"""Memory bandwidth by product name as NVML spells it, from the vendor's data sheets."""

THROTTLE_REASONS: Mapping[int, str] = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of `nvmlDeviceGetCurrentClocksEventReasons`."""

_GPU_IDLE = 0x1
"""Clocks are low because nothing runs: no throttle."""


def memory(answer: Any) -> tuple[Figure, Figure]:
    """Used and total bytes of `nvmlDeviceGetMemoryInfo`; used includes what the driver reserves."""
    if isinstance(answer, Missing):
        return answer, answer
    used, whole = int(answer.used), int(answer.total)
    if used > whole:
        wrong = Missing(f"driver reported {used} of {whole} bytes")
        return wrong, wrong
    return used, whole


def utilization(rates: Any) -> Figure:
    """Share of the time in which any kernel ran: not how much of the GPU it used.

    Drivers are known to answer far above 100 % from stale samples: that is no reading.
    """
    if isinstance(rates, Missing):
        return rates
    percent = int(rates.gpu)
    return percent / 100 if 0 <= percent <= 100 else Missing(f"driver reported {percent} %")


def scaled(value: Any, unit: float) -> Figure:
    """An answer in units of ours."""
    return value if isinstance(value, Missing) else int(value) * unit


def reasons(bits: Any) -> tuple[str, ...] | Missing:
    """The bits that hold the clocks down, as words."""
    if isinstance(bits, Missing):
        return bits
    known = tuple(word for bit, word in THROTTLE_REASONS.items() if bits & bit)
    unknown = int(bits) & ~(_GPU_IDLE | sum(THROTTLE_REASONS))
    return (*known, f"reason {unknown:#x}") if unknown else known


def peak(name: str | Missing) -> Figure:
    """Bytes a second that the card's memory can deliver at most."""
    if isinstance(name, Missing):
        return name
    return measured(PEAK_BYTES_PER_S.get(name), f"the bandwidth of {name} is not known here")


def pids(processes: Any) -> set[int]:
    """The pids that `nvmlDeviceGetComputeRunningProcesses` lists; none where it does not answer."""
    if isinstance(processes, Missing):
        return set()
    return {int(process.pid) for process in processes}


def hidden(number: int) -> str:
    """What is said of processes that the driver lists and the pod does not see."""
    return f"{number} process{'es' if number != 1 else ''} not visible from this pod"
