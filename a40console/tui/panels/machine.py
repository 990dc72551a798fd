"""The container's CPU and memory, and the GPUs."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Missing, is_estimate, number
from a40console.model.snapshot import Gpu, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line
from a40console.tui.panels.labels import LABEL, aged, gap, labelled
from a40console.tui.reading import Reading


def machine(reading: Reading, size: Size) -> list[Line]:
    """The container's CPU and memory, then each GPU."""
    snapshot = reading.snapshot
    width = size.width
    room = width - LABEL
    host = snapshot.host
    lines = aged(
        reading,
        host.age_s,
        [
            labelled("CPU", _cpu(snapshot, room), width),
            labelled("Memory", _memory(snapshot, room), width),
        ],
    )
    if isinstance(snapshot.gpus, Missing):
        return [*lines, labelled("GPU", gap(snapshot.gpus), width)]
    roomy = size.height >= len(lines) + 2 * len(snapshot.gpus)
    for gpu in snapshot.gpus:
        name = "GPU" if len(snapshot.gpus) == 1 else f"GPU {gpu.index}"
        rows = [labelled(name, _gpu(gpu, room, strained=not roomy), width)]
        if roomy:
            rows.append(labelled("", flow([_throttle(gpu), _bandwidth(gpu)], room), width))
        lines += aged(reading, gpu.age_s, rows)
    return lines


def _cpu(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    used = f"{shown(host.cpu_used_vcpu, fmt.tenths)} of {shown(host.cpu_quota_vcpu, plain)} vCPU"
    throttled = number(host.throttled_ms_per_s)
    strain = line(
        Span(
            f"throttled {shown(host.throttled_ms_per_s, fmt.count)} ms/s",
            Role.WARN if throttled else Role.TEXT,
        )
    )
    thread = host.busiest_engine_thread
    hottest = (
        line("")
        if isinstance(thread, Missing)
        else line(Span(f"{clean(thread.name)} {fmt.percent(thread.ratio)}", Role.MUTED))
    )
    origin = line("" if host.quota_origin != "host" else Span("no quota: whole host", Role.MUTED))
    return flow([line(used), strain, hottest, origin], width)


def plain(value: float) -> str:
    """A quota or capacity: whole where it is whole."""
    return fmt.count(value) if value == round(value) else fmt.tenths(value)


def whole_gib(value: float) -> str:
    """A capacity in GiB, without the unit."""
    return plain(value / fmt.GIB)


def _memory(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    ram = (
        f"{shown(host.memory_used_bytes, fmt.gibibytes)} of "
        f"{shown(host.memory_limit_bytes, whole_gib)} GiB"
    )
    shm = (
        f"shm {shown(host.shm_used_bytes, fmt.gibibytes)}/{shown(host.shm_total_bytes, whole_gib)}"
    )
    return flow(
        [line(ram), line(shm), line(f"disk {shown(host.disk_free_bytes, fmt.size)} free")], width
    )


def _gpu(gpu: Gpu, width: int, *, strained: bool) -> Line:
    """Memory, use, power and heat; with `strained`, what slows it down on the same line."""
    memory = (
        f"{shown(gpu.memory_used_bytes, fmt.gibibytes)} of "
        f"{shown(gpu.memory_total_bytes, fmt.gibibytes)} GiB"
    )
    power = f"{shown(gpu.power_w, fmt.count):>3}/{shown(gpu.power_limit_w, fmt.count)} W"
    items = [
        line(memory),
        line(f"{shown(gpu.utilization_ratio, fmt.percent):>5}"),
        line(power),
        line(f"{shown(gpu.temperature_c, fmt.count)} °C"),
    ]
    if strained:
        place = 1 if gpu.throttle_reasons and not isinstance(gpu.throttle_reasons, Missing) else 4
        items.insert(place, _throttle(gpu))
        items.append(_bandwidth(gpu))
    return flow(items, width)


def _throttle(gpu: Gpu) -> Line:
    if isinstance(gpu.throttle_reasons, Missing):
        return line(Span(f"throttle {DASH}", Role.MUTED))
    if not gpu.throttle_reasons:
        return line(Span("no throttle", Role.MUTED))
    return line(Span("▲ " + clean(", ".join(gpu.throttle_reasons)), Role.WARN))


def _bandwidth(gpu: Gpu) -> Line:
    read, peak = number(gpu.read_bytes_per_s), number(gpu.peak_bytes_per_s)
    if read is None:
        return line("")
    mark = fmt.ESTIMATE if is_estimate(gpu.read_bytes_per_s) else ""
    of = "" if peak is None else f" of {fmt.count(peak / 1e9)}"
    return line(Span(f"{mark}{fmt.count(read / 1e9)}{of} GB/s", Role.MUTED))
