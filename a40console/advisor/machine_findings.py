"""Findings about the machine: its GPUs, memory, disk and vCPU."""

from __future__ import annotations

from a40console.advisor import hardware
from a40console.advisor.evidence import Evidence
from a40console.advisor.judgement import Spoken, as_finding
from a40console.advisor.readings import THROTTLED_MS_PER_S, Readings, is_fresh, shown
from a40console.advisor.wording import brief, count, gibibytes, gigabytes, sentence
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.figures import Missing, combine, number
from a40console.model.snapshot import Snapshot, SourceStatus

GPU_SOURCE = "nvml"

HELD_BYTES = 2 * 2**30
"""GPU memory in use without an engine: below it is the driver's own."""

DISK_SHORT_BYTES = 2e9

_WITHOUT_ENGINE = frozenset({EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED})
_DOWN = _WITHOUT_ENGINE | {EngineState.FETCHING, EngineState.ORPHANED}


def gpu_unread(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The driver does not answer; the engine is none the worse for it."""
    lost = [source for source in snapshot.sources if source.name == GPU_SOURCE and is_lost(source)]
    if not lost:
        return None
    words = Readings(snapshot).throttle_words or ()
    return Finding(
        code="gpu-degraded",
        severity="warn",
        title="The GPU cannot be read",
        evidence=sentence([*map(source_text, lost), *_faults(words)]),
        since=snapshot.at,
        remedy="Engine figures go on; follow the reason, it is tried again by itself.",
    )


def gpu_slowed(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Heat or the power supply hold the clocks down; a power cap is no fault."""
    faults = _faults(Readings(snapshot).throttle_words or ())
    if not faults:
        return None
    return Finding(
        code="gpu-degraded",
        severity="warn",
        title="The GPU is slowed down by its machine",
        evidence=sentence(faults),
        since=snapshot.at,
        remedy=hardware.BAD_MACHINE,
    )


def gpu_memory_held(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Somebody else's memory: a start would fail for want of it."""
    if snapshot.engine.state not in _WITHOUT_ENGINE or extra.survivors:
        return None
    used = [
        f"GPU {gpu.index}: {shown(gpu.memory_used_bytes, gibibytes)} used"
        for gpu in Readings(snapshot).fresh_gpus
        if (number(gpu.memory_used_bytes) or 0) >= HELD_BYTES
    ]
    if not used:
        return None
    hidden = extra.hidden_processes
    unseen = f"{count(hidden, 'process', 'processes')} not visible from this pod" if hidden else ""
    return Finding(
        code="gpu-memory-held",
        severity="warn",
        title="GPU memory is in use though no engine of ours runs",
        evidence=sentence([*used, unseen]),
        since=snapshot.at,
        remedy="End what holds it where it was started; what this pod does not see cannot be"
        " ended from here.",
    )


def oom_killed(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The kernel chose a process of this container, whichever it was."""
    if not number(extra.trends.oom_kills):
        return None
    verdict = hardware.memory(Readings(snapshot, extra))
    use = verdict.evidence if isinstance(verdict, Spoken) else ()
    return Finding(
        code="oom-killed",
        severity="error",
        title="The kernel ended a process of this pod for want of memory",
        evidence=sentence([f"{shown(extra.trends.oom_kills, brief)} in the last minute", *use]),
        since=snapshot.at,
        remedy="Rent a pod with more memory, or lower what the profile keeps in it.",
    )


def memory_short(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Memory or shared memory of the container is nearly full."""
    verdict = hardware.memory(Readings(snapshot, extra))
    if not isinstance(verdict, Spoken) or number(extra.trends.oom_kills):
        return None
    return as_finding("memory-short", verdict, snapshot, title=f"The pod's {verdict.text}")


def disk_short(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The disk that holds our state is nearly full."""
    free = number(snapshot.host.disk_free_bytes)
    if free is None or not is_fresh(snapshot.host.age_s) or free >= DISK_SHORT_BYTES:
        return None
    return Finding(
        code="disk-short",
        severity="warn",
        title="The disk is nearly full",
        evidence=f"{shown(snapshot.host.disk_free_bytes, gigabytes)} free",
        since=snapshot.at,
        remedy="Delete models or logs: a model's download and the engine's output need room.",
    )


def disk_slow(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Processes of ours wait for the disk; a neighbour's alone are no finding."""
    if snapshot.engine.state in _WITHOUT_ENGINE:
        return None
    verdict = hardware.disk(Readings(snapshot, extra))
    if not isinstance(verdict, Spoken) or verdict.strength == "weak":
        return None
    return as_finding("disk-slow", verdict, snapshot, title="The disk holds the engine up")


def vcpu_throttled(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The quota is felt, while an engine starts too."""
    readings = Readings(snapshot, extra)
    throttled = readings.throttled_ms_per_s
    if snapshot.engine.state in _DOWN or throttled is None or throttled < THROTTLED_MS_PER_S:
        return None
    known = readings.vcpu_used is not None and readings.vcpu_quota is not None
    use = f"{readings.vcpu_use} ({snapshot.host.quota_origin})" if known else ""
    return Finding(
        code="vcpu-throttled",
        severity="warn",
        title="The pod's CPU quota slows the engine down",
        evidence=sentence([f"throttled {readings.throttled_rate}", use]),
        since=snapshot.at,
        remedy=hardware.MORE_VCPU,
    )


def thread_pinned(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Only where passes and power fell with it: a thread that waits for the GPU spins too."""
    if snapshot.engine.state is not EngineState.SERVING:
        return None
    verdict = hardware.thread(Readings(snapshot, extra))
    if not isinstance(verdict, Spoken) or verdict.strength != "cause":
        return None
    return as_finding("thread-pinned", verdict, snapshot, title="One engine thread is the wall")


def _faults(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if any(fault in word for fault in hardware.FAULTY_CLOCKS)]


def gpu_memory_left(snapshot: Snapshot) -> str:
    """What GPUs hold beyond what they held before the engine: its processes' share."""
    parts = []
    for gpu in Readings(snapshot).fresh_gpus:
        more = combine(lambda a, b: a - b, gpu.memory_used_bytes, gpu.memory_baseline_bytes)
        if (number(more) or 0) > 0:
            parts.append(f"GPU {gpu.index} holds {shown(more, gibibytes)} more than before it")
    return ", ".join(parts)


def is_lost(source: SourceStatus) -> bool:
    """Failed, or read before and late now; one that was never read yet is only beginning."""
    return source.state == "failed" or (
        source.state == "stale" and not isinstance(source.age_s, Missing)
    )


def source_text(source: SourceStatus) -> str:
    """A source with what is wrong with it."""
    return f"{source.name}: {source.reason or source.state}"
