"""Causes in the machine: vCPU, memory, disk, GPU clocks, and a thread that is always busy."""

from __future__ import annotations

from collections.abc import Callable

from a40console.advisor.evidence import Shift
from a40console.advisor.judgement import Cleared, Judgement, Spoken, Unclear, unclear
from a40console.advisor.readings import (
    ROOM_RATIO,
    THROTTLED_MS_PER_S,
    Readings,
    is_fresh,
    shown,
)
from a40console.advisor.wording import brief, count, duration, gibibytes, percent, threshold, whole
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing, number, ratio

UNTHROTTLED_MS_PER_S = 10.0
SATURATED_RATIO = 0.95
"""Share of the vCPU, of a core or of memory from which on all of it is in use."""

THREAD_ROOM_RATIO = 0.80
WORKING_THREAD_RATIO = 0.50
"""An engine whose busiest thread uses less of a core is not what fills all cores."""

FELL_RATIO = 0.15
"""A figure fell when it lost this share at the same load."""

CLOCK_FELL_RATIO = 0.05
STALLED_RATIO = 0.20
STUCK_RATIO = 0.40
UNSTALLED_RATIO = 0.05
MEMORY_STALLED_RATIO = 0.10
"""Shares of time spent waiting, by the kernel's pressure counters."""

FAULTY_CLOCKS = ("thermal", "hardware slowdown", "power brake")
"""Throttle reasons that are a fault of the machine; a power cap under load is not."""

BAD_MACHINE = "The machine cools or feeds its GPU badly: rent another if it stays."
MORE_VCPU = "Rent a pod with more vCPU, or lower the profile's threads."


def vcpu(readings: Readings) -> Judgement:
    """The CPU quota stops the engine, or all cores are in use."""
    throttled, used, quota = (
        readings.throttled_ms_per_s,
        readings.vcpu_used,
        readings.vcpu_quota,
    )
    works = readings.works or starts(readings)
    if works and throttled is not None and throttled >= THROTTLED_MS_PER_S:
        text = f"throttled vCPU: {readings.throttled_rate}"
        return Spoken(text=text, evidence=vcpu_evidence(readings), remedy=MORE_VCPU)
    # Without a quota there is nothing that could count throttling: only use tells.
    saturated = used is not None and quota is not None and used >= SATURATED_RATIO * quota > 0
    if readings.unlimited and works and saturated:
        return _all_cores(readings)
    return _vcpu_room(readings)


def _all_cores(readings: Readings) -> Spoken:
    """Without a group of our own the use is the machine's: the engine's threads tell whose."""
    host, told = readings.snapshot.host, vcpu_evidence(readings)
    text, busiest = (
        f"all {shown(host.cpu_quota_vcpu, brief)} vCPU are in use",
        host.busiest_engine_thread,
    )
    if isinstance(busiest, Missing) or busiest.ratio >= WORKING_THREAD_RATIO:
        return Spoken(text=text, evidence=told, remedy=MORE_VCPU)
    return Spoken(
        text=f"{text}, hardly by the engine",
        evidence=told,
        strength="weak",
        remedy="Find what else runs on this machine.",
    )


def _vcpu_room(readings: Readings) -> Judgement:
    throttled, used, quota = (
        readings.throttled_ms_per_s,
        readings.vcpu_used,
        readings.vcpu_quota,
    )
    host = readings.snapshot.host
    if used is None or not quota or (throttled is None and not readings.unlimited):
        figures = (host.age_s, host.cpu_used_vcpu, host.cpu_quota_vcpu, host.throttled_ms_per_s)
        return unclear(*figures, otherwise="the machine's figures are old")
    use = readings.vcpu_use
    if used >= ROOM_RATIO * quota:
        return Unclear(f"{use}: not below {threshold(ROOM_RATIO)}, and not seen to be throttled")
    if throttled is None:
        return Cleared(f"{use}, below {threshold(ROOM_RATIO)}; no quota is set")
    rate = f"throttled {readings.throttled_rate} {readings.throttled_window}".rstrip()
    if throttled >= UNTHROTTLED_MS_PER_S:
        return Unclear(
            f"{rate}: neither below {whole(UNTHROTTLED_MS_PER_S)} nor from"
            f" {whole(THROTTLED_MS_PER_S)} on while it works"
        )
    return Cleared(f"{rate}, below {whole(UNTHROTTLED_MS_PER_S)}; {use}")


def vcpu_evidence(readings: Readings) -> tuple[str, ...]:
    """Throttling, use and the busiest thread, as far as known."""
    host, evidence = readings.snapshot.host, list[str]()
    if readings.throttled_ms_per_s is not None:
        rate = f"throttled {readings.throttled_rate} {readings.throttled_window}"
        evidence.append(rate.rstrip())
    if readings.vcpu_used is not None and readings.vcpu_quota is not None:
        evidence.append(f"{readings.vcpu_use} ({host.quota_origin})")
    if not isinstance(thread := host.busiest_engine_thread, Missing):
        evidence.append(f"busiest thread {thread.name} at {percent(thread.ratio)} of a core")
    return tuple(evidence)


def clocks(readings: Readings) -> Judgement:
    """Heat, power or the machine hold the GPU's clocks down."""
    words = readings.throttle_words
    if words is None:
        return _clocks_unknown(readings)
    state = _gpu_state(readings)
    if not words:
        return Cleared("; ".join(["no throttle reason", *state]))
    shift = readings.trends.sm_clock_mhz
    slower = isinstance(shift, Shift) and shift.lost_ratio >= CLOCK_FELL_RATIO
    if slower and isinstance(shift, Shift):
        state.append(f"SM clock {_fall(shift, whole)} MHz at the same load")
    faulty = [word for word in words if any(fault in word for fault in FAULTY_CLOCKS)]
    if faulty:
        return Spoken(
            text=f"GPU clocks held down: {', '.join(faulty)}",
            evidence=(*words, *state),
            remedy=BAD_MACHINE,
        )
    passes = readings.trends.passes_per_s
    proven = slower and isinstance(passes, Shift) and passes.lost_ratio >= CLOCK_FELL_RATIO
    if proven and isinstance(passes, Shift):
        state.append(f"pass/s {_fall(passes, brief)} with it")
    return Spoken(
        text=", ".join(words),
        evidence=(*words, *state),
        strength="cause" if proven else "candidate",
        remedy="A card at its power cap runs as fast as it may; another card has another cap.",
    )


def _clocks_unknown(readings: Readings) -> Unclear:
    gpus = readings.snapshot.gpus
    if isinstance(gpus, Missing):
        return Unclear(gpus.reason)
    figures = [figure for gpu in gpus for figure in (gpu.age_s, gpu.throttle_reasons)]
    reasons = (figure.reason for figure in figures if isinstance(figure, Missing))
    return Unclear(next(reasons, "the GPU's figures are old" if gpus else "no GPU is read"))


def _gpu_state(readings: Readings) -> list[str]:
    told = []
    for gpu in readings.fresh_gpus:
        parts = [f"GPU {gpu.index}"]
        if clock := shown(gpu.sm_clock_mhz, whole):
            parts.append(f"SM {clock} MHz")
        if power := shown(gpu.power_w, whole):
            limit = shown(gpu.power_limit_w, whole) if number(gpu.power_limit_w) else ""
            parts.append(f"{power}{f' of {limit}' if limit else ''} W")
        if heat := shown(gpu.temperature_c, whole):
            parts.append(f"{heat} °C")
        told.append(" ".join(parts))
    return told


def thread(readings: Readings) -> Judgement:
    """One thread at the top of its core: a wall only where passes and power fell with it."""
    host = readings.snapshot.host
    busiest = host.busiest_engine_thread
    if isinstance(busiest, Missing) or not is_fresh(host.age_s):
        why = busiest.reason if isinstance(busiest, Missing) else "the machine's figures are old"
        return Unclear(why)
    at = f"{busiest.name} at {percent(busiest.ratio)} of a core"
    if busiest.ratio < THREAD_ROOM_RATIO:
        return Cleared(f"busiest thread {at}, below {threshold(THREAD_ROOM_RATIO)}")
    if busiest.ratio < SATURATED_RATIO:
        return Unclear(f"{at}: neither below {threshold(THREAD_ROOM_RATIO)} nor pinned")
    if not readings.works:
        return Unclear(f"{at} while nothing is seen to be worked on")
    passes, power = readings.trends.passes_per_s, readings.trends.power_w
    told = [*_shift_text("pass/s", passes), *_shift_text("GPU power in W", power)]
    fell = [isinstance(s, Shift) and s.lost_ratio >= FELL_RATIO for s in (passes, power)]
    if all(fell):
        return Spoken(
            text=f"engine thread {at}: pass/s and power fell with it",
            evidence=tuple(told),
            remedy="A pod with faster cores; fewer requests at once until then.",
        )
    both = isinstance(passes, Shift) and isinstance(power, Shift)
    return Spoken(
        text=f"thread {at}: a candidate, no proof",
        evidence=tuple(told) or ("a thread that waits for the GPU spins too",),
        strength="weak" if both else "candidate",
    )


def _shift_text(name: str, shift: Shift | Missing) -> list[str]:
    if isinstance(shift, Missing):
        return [f"{name}: {shift.reason}"]
    return [f"{name} {_fall(shift, brief)} at the same load"]


def _fall(shift: Shift, form: Callable[[float], str]) -> str:
    before, now = (
        shown(Estimated(value) if shift.estimated else value, form)
        for value in (shift.before, shift.now)
    )
    return f"{before} → {now}"


def disk(readings: Readings) -> Judgement:
    """Processes wait for a disk: weights that load, files that are mapped, swap."""
    stalls = readings.stalls
    some, full = number(stalls.io_some_ratio), number(stalls.io_full_ratio)
    if some is None:
        return unclear(stalls.io_some_ratio, otherwise="")
    whose = "" if stalls.origin == "container" else ", the whole machine's"
    share = shown(stalls.io_some_ratio, percent)
    told = [f"I/O pressure {share} (10 s{whose})"]
    if full is not None:
        told.append(f"nothing could run {shown(stalls.io_full_ratio, percent)} of the time")
    if some < UNSTALLED_RATIO:
        return Cleared(f"{told[0]}, below {threshold(UNSTALLED_RATIO)}")
    if some < STALLED_RATIO:
        return Unclear(f"{told[0]}: neither below {threshold(UNSTALLED_RATIO)} nor much")
    loads = readings.snapshot.engine.phase == "load"
    ours = stalls.origin == "container"
    stuck = full is not None and full >= STUCK_RATIO
    text = "the weights load from a slow disk" if loads else "processes wait for the disk"
    return Spoken(
        text=f"{text}: {share} of the time",
        evidence=tuple(told),
        strength="cause" if ours and (stuck or loads) else "candidate" if ours else "weak",
        remedy="Keep the model on the pod's own disk, not on a network volume.",
    )


def memory(readings: Readings) -> Judgement:
    """The container's memory or its shared memory is full, or the kernel ends processes for it."""
    killed = readings.trends.oom_kills
    told, full, room = _memory_use(readings)
    if number(killed):
        ended = shown(killed, lambda n: count(n, "process", "processes"))
        text = f"the kernel ended {ended} for want of memory ({duration(readings.trends.long_s)})"
        return Spoken(text=text, evidence=tuple(told), remedy="Rent more memory, or ask for less.")
    stalled = number(readings.stalls.memory_full_ratio)
    if full:
        waits = stalled is not None and stalled >= MEMORY_STALLED_RATIO
        if stalled is not None:
            pressure = shown(readings.stalls.memory_full_ratio, percent)
            told.append(f"memory pressure {pressure} (10 s)")
        return Spoken(
            text=f"{full} nearly full",
            evidence=tuple(told),
            strength="cause" if waits else "candidate",
            remedy="Rent more memory, or lower what the profile keeps in it.",
        )
    if room:
        return Cleared(f"{'; '.join(told)}: below {threshold(ROOM_RATIO)}")
    host = readings.snapshot.host
    figures = (host.age_s, host.memory_used_bytes, host.memory_limit_bytes, host.shm_used_bytes)
    return unclear(*figures, otherwise="; ".join(told) or "the machine's figures are old")


def _memory_use(readings: Readings) -> tuple[list[str], str, bool]:
    """What is in use, the name of what is full, and whether all of it has room."""
    host = readings.snapshot.host
    told, full, rooms = list[str](), "", list[bool]()
    for name, short, used_figure, whole_figure in (
        ("memory", "RAM", host.memory_used_bytes, host.memory_limit_bytes),
        ("shared memory", "shm", host.shm_used_bytes, host.shm_total_bytes),
    ):
        share = number(ratio(used_figure, whole_figure)) if is_fresh(host.age_s) else None
        rooms.append(share is not None and share < ROOM_RATIO)
        if share is None:
            continue
        used = shown(used_figure, gibibytes).removesuffix(" GiB")
        told.append(f"{short} {used} of {shown(whole_figure, gibibytes)}")
        if share >= SATURATED_RATIO and not full:
            full = name
    return told, full, all(rooms)


def starts(readings: Readings) -> bool:
    """Whether an engine is on its way up, so that the machine's causes matter already."""
    return readings.snapshot.engine.state in (EngineState.FETCHING, EngineState.STARTING)
