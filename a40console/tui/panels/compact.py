"""All instruments in six lines, for a small screen."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.model.snapshot import Gpu, Snapshot, SpeculationInfo
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, width_of
from a40console.tui.panels.caches import hits, kv
from a40console.tui.panels.labels import gap, labelled
from a40console.tui.panels.latency import first_tokens, quantiles
from a40console.tui.panels.machine import plain, whole_gib
from a40console.tui.panels.speculation import mode, tail_verdict
from a40console.tui.panels.speed import compact_speed
from a40console.tui.reading import Reading

_LABEL = 6


def compact(reading: Reading, size: Size) -> list[Line]:
    """All instruments in six lines, for a small screen."""
    snapshot = reading.snapshot
    width = size.width
    room = width - _LABEL - 1
    drawers: tuple[tuple[str, Callable[[], Line]], ...] = (
        ("gen", lambda: compact_speed(reading, room)),
        ("spec", lambda: _compact_speculation(snapshot.speculation, room)),
        ("cache", lambda: hits(snapshot.prefix_cache, room)),
        ("KV", lambda: kv(snapshot.kv_cache, room)),
        ("TTFT", lambda: _compact_latency(snapshot, room)),
        ("box", lambda: _box(snapshot, room)),
    )
    return [labelled(f" {label}", draw(), width, _LABEL + 1) for label, draw in drawers]


def _compact_speculation(info: SpeculationInfo, width: int) -> Line:
    if isinstance(info.mode, Missing):
        return gap(info.mode)
    if info.mode == "off":
        return fit(mode(info), width)
    method = known(info.method, "").replace("ngram", "n-gram")
    per_pass = f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass"
    off = info.off_tokens_per_s_at_this_load
    without = "" if isinstance(off, Missing) else f"off was {shown(off, fmt.rate)}"
    return flow(
        [
            line(f"{info.mode} {method} {shown(info.depth, fmt.count)}"),
            line(per_pass),
            tail_verdict(info),
            line(Span(without, Role.MUTED)),
        ],
        width,
    )


def _compact_latency(snapshot: Snapshot, width: int) -> Line:
    latency = snapshot.latency
    steps = line("pass ", quantiles(latency.pass_s)[0])
    return flow([first_tokens(latency.ttft_s, width - width_of(steps) - 2), steps], width)


def _box(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    cpu = f"CPU {shown(host.cpu_used_vcpu, fmt.tenths)}/{shown(host.cpu_quota_vcpu, plain)}"
    ram = (
        f"RAM {shown(host.memory_used_bytes, fmt.gibibytes)}"
        f"/{shown(host.memory_limit_bytes, whole_gib)}"
    )
    gpu = (
        line(Span(f"GPU {DASH} {clean(snapshot.gpus.reason)}", Role.MUTED))
        if isinstance(snapshot.gpus, Missing)
        else _compact_gpus(snapshot.gpus)
    )
    disk = line(f"disk {shown(host.disk_free_bytes, fmt.size)}")
    throttled = number(host.throttled_ms_per_s)
    strain = line(
        Span(
            f"thr {shown(host.throttled_ms_per_s, fmt.count)} ms",
            Role.WARN if throttled else Role.MUTED,
        )
    )
    return flow([line(cpu), line(ram), gpu, disk, strain], width)


def _compact_gpus(gpus: tuple[Gpu, ...]) -> Line:
    parts = []
    for gpu in gpus:
        name = "GPU" if len(gpus) == 1 else f"GPU{gpu.index}"
        parts.append(
            f"{name} {shown(gpu.memory_used_bytes, fmt.gibibytes)}"
            f"/{shown(gpu.memory_total_bytes, fmt.gibibytes)} {shown(gpu.power_w, fmt.count)} W"
            f" {shown(gpu.temperature_c, fmt.count)} °C"
        )
    return line("  ".join(parts))
