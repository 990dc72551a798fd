"""All instruments in seven lines, for a small screen."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Gpu, Snapshot, SpeculationInfo
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, width_of
from a40console.tui.instant import first_token
from a40console.tui.panels import gpus, machine
from a40console.tui.panels.caches import hits, kv
from a40console.tui.panels.labels import aged, gap, labelled
from a40console.tui.panels.latency import first_tokens, quantiles
from a40console.tui.panels.speculation import mode, tail_verdict
from a40console.tui.panels.speed import compact_speed
from a40console.tui.reading import Reading

_LABEL = 6
_FRESH = 0.0


def compact(reading: Reading, size: Size) -> list[Line]:
    """All instruments in seven lines, for a small screen."""
    snapshot = reading.snapshot
    width = size.width
    room = width - _LABEL - 2
    drawers: tuple[tuple[str, Figure, Callable[[], Line]], ...] = (
        ("speed", _FRESH, lambda: compact_speed(reading, room)),
        (
            "spec",
            snapshot.speculation.age_s,
            lambda: _compact_speculation(snapshot.speculation, room),
        ),
        ("cache", snapshot.prefix_cache.age_s, lambda: hits(snapshot.prefix_cache, room)),
        ("KV", snapshot.kv_cache.age_s, lambda: kv(snapshot.kv_cache, room)),
        ("TTFT", _FRESH, lambda: _compact_latency(reading, room)),
        ("box", snapshot.host.age_s, lambda: _box(snapshot, room)),
        ("GPU", _gpu_age(snapshot), lambda: _gpus(snapshot, room)),
    )
    lines: list[Line] = []
    for label, age_s, draw in drawers:
        row = labelled(f" {label}", draw(), width, _LABEL + 1)
        lines += [fit(entry, width) for entry in aged(reading, age_s, [row])]
    return lines


def _compact_speculation(info: SpeculationInfo, width: int) -> Line:
    if isinstance(info.mode, Missing):
        if isinstance(info.tokens_per_pass, Missing):
            return gap(info.mode)
        return line(f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass")
    if info.mode == "off":
        return fit(mode(info), width)
    method = known(info.method, "").replace("ngram", "n-gram")
    per_pass = f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass"
    started = line(f"{info.mode} {method} {shown(info.depth, fmt.count)}")
    if isinstance(info.tokens_per_pass, Missing):
        return flow([started, gap(info.tokens_per_pass)], width)
    off = info.off_tokens_per_s_at_this_load
    without = "" if isinstance(off, Missing) else f"off was {shown(off, fmt.rate)}"
    return flow(
        [
            started,
            line(per_pass),
            tail_verdict(info),
            line(Span(without, Role.MUTED)),
        ],
        width,
    )


def _compact_latency(reading: Reading, width: int) -> Line:
    known_first, passes = first_token(reading), reading.snapshot.latency.pass_s
    steps = line("pass ", quantiles(passes)[0])
    if isinstance(passes, Missing) and passes == known_first:
        steps = line("")
    first = first_tokens(known_first, width - width_of(steps) - 2)
    return flow([first, steps], width)


def _box(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    ram = (
        f"RAM {shown(host.memory_used_bytes, fmt.gibibytes)}"
        f"/{shown(host.memory_limit_bytes, machine.whole_gib)} GiB"
    )
    disk = f"disk {shown(host.disk_free_bytes, fmt.size)} free"
    return flow(
        [
            line(machine.vcpus(host)),
            machine.throttled(host, "throttled {} ms/s"),
            line(ram),
            line(disk),
        ],
        width,
    )


def _gpu_age(snapshot: Snapshot) -> Figure:
    if isinstance(snapshot.gpus, Missing) or not snapshot.gpus:
        return snapshot.gpus if isinstance(snapshot.gpus, Missing) else _FRESH
    return max(snapshot.gpus, key=lambda gpu: number(gpu.age_s) or 0.0).age_s


def _gpus(snapshot: Snapshot, width: int) -> Line:
    """One GPU in full; of several, what each holds and draws, and the hottest."""
    cards = snapshot.gpus
    if isinstance(cards, Missing):
        return line(Span(f"{DASH} {clean(cards.reason)}", Role.MUTED))
    if not cards:
        return line(Span(f"{DASH} there is none", Role.MUTED))
    if len(cards) == 1:
        return _one_gpu(cards[0], width)
    slowed = [gpu for gpu in cards if gpu.throttle_reasons and _listed(gpu)]
    reason = line(Span("no throttle", Role.MUTED))
    if slowed:
        first = slowed[0]
        reason = line(gpus.throttle(first), Span(f" ({first.index})", Role.WARN))
    used = _each(cards, lambda gpu: gpu.memory_used_bytes, fmt.gibibytes)
    whole = f"{len(cards)}×{shown(cards[0].memory_total_bytes, fmt.gibibytes)}"
    share = _each(cards, lambda gpu: gpus.valid_share(gpu.utilization_ratio), fmt.percent)
    items = [
        line(f"{used} of {whole} GiB"),
        line(share.replace(" %–", "–").replace(" % ", " ")),
        line(f"{_each(cards, lambda gpu: gpu.power_w, fmt.count)} W"),
        line(f"{_each(cards, lambda gpu: gpu.temperature_c, fmt.count)} °C"),
    ]
    items.insert(1 if slowed else 4, reason)
    return flow(items, width)


def _listed(gpu: Gpu) -> bool:
    return not isinstance(gpu.throttle_reasons, Missing)


def _each(
    cards: tuple[Gpu, ...], read: Callable[[Gpu], Figure], formatter: Callable[[float], str]
) -> str:
    """The cards' figures side by side, of more than two the lowest and the highest."""
    figures = [read(gpu) for gpu in cards]
    numbers = [value for figure in figures if (value := number(figure)) is not None]
    if len(cards) <= 2:
        return " ".join(shown(figure, formatter) for figure in figures)
    if not numbers:
        return DASH
    return f"{formatter(min(numbers))}–{formatter(max(numbers))}"


def _one_gpu(gpu: Gpu, width: int) -> Line:
    items = [
        line(f"{gpus.memory(gpu)} GiB"),
        line(f"{shown(gpus.valid_share(gpu.utilization_ratio), fmt.percent):>5}"),
        line(gpus.power(gpu)),
        line(f"{shown(gpu.temperature_c, fmt.count)} °C"),
        line(f"{shown(gpu.sm_clock_mhz, fmt.count)} MHz"),
    ]
    items.insert(1 if gpu.throttle_reasons and _listed(gpu) else 4, gpus.throttle(gpu))
    return flow(items, width)
