"""The overview's instruments beside the chart: one label, one line of figures each."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, is_estimate, number
from a40console.model.snapshot import (
    CacheLoss,
    FirstToken,
    Gpu,
    KvCache,
    Percentiles,
    PrefixCache,
    Snapshot,
    SpeculationInfo,
)
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, faded, fit, flow, line, width_of, wrap
from a40console.tui.panels.speed import compact_speed, passes, prefill
from a40console.tui.raster import spark
from a40console.tui.reading import Reading

_LABEL = 14
_OUTLIER = 3.0
"""A first-token time this many times the median of the last five is marked."""

_FEW_DRAFTS = 100
_TAIL = {
    "deeper": "go deeper",
    "keep": "depth fits",
    "shallower": "go shallower",
    "too few drafts": "too few drafts to judge",
}


def labelled(label: str, body: Line, width: int, label_width: int = _LABEL) -> Line:
    """A line of figures behind its name."""
    return fit(line(Span(label.ljust(label_width), Role.LABEL), body), width)


def gap(figure: Missing | Figure | object) -> Line:
    """A dash with the reason, where a whole line of figures is missing."""
    reason = figure.reason if isinstance(figure, Missing) else ""
    return line(Span(f"{DASH} {clean(reason)}", Role.MUTED))


def aged(reading: Reading, age_s: Figure, lines: list[Line]) -> list[Line]:
    """The lines as they are while their source is fresh; greyed with their age when it is not."""
    old = reading.outdated(age_s)
    if old is None:
        return lines
    grey = faded(lines)
    return [line(grey[0], Span(f"  ({fmt.age(old)} old)", Role.WARN)), *grey[1:]]


def speculation(reading: Reading, size: Size) -> list[Line]:
    """Mode, tokens per pass, the acceptance curve with its verdict, and the speed without."""
    info = reading.snapshot.speculation
    width = size.width
    if isinstance(info.mode, Missing):
        return [labelled("Speculation", gap(info.mode), width)]
    lines = [labelled("Speculation", _mode(info), width)]
    if info.mode != "off":
        lines.append(labelled("", _curve(info, width - _LABEL), width))
        lines.append(labelled("", _without(info), width))
    return aged(reading, info.age_s, lines)


def _mode(info: SpeculationInfo) -> Line:
    control = {"live": "live", "restart": "by restart", "none": "fixed"}[info.control]
    if info.mode == "off":
        started = number(info.started_with)
        text = f"off ({control}{f'; started with {fmt.count(started)}' if started else ''})"
        locked = f"  locked: {clean(info.locked_reason)}" if info.locked_reason else ""
        return line(text, Span(locked, Role.MUTED))
    method = clean(known(info.method, "")).replace("ngram", "n-gram")
    depth = shown(info.depth, fmt.count)
    drafts = (
        ""
        if isinstance(info.drafts, Missing)
        else f"  {shown(info.drafts, fmt.count)} drafts in {fmt.window(info.window_s)}"
    )
    return line(
        Span(f"{info.mode}", Role.STRONG), f" {method} {depth}, {control}", Span(drafts, Role.MUTED)
    )


def _curve(info: SpeculationInfo, width: int) -> Line:
    per_pass = f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass"
    curve = info.accepted_ratio_per_position
    if isinstance(curve, Missing):
        return flow([line(per_pass), gap(curve)], width)
    ratios = [number(ratio) for ratio in curve]
    last = ratios[-1] if ratios else None
    tail = line(f"last {fmt.percent(last)}: " if last is not None else "", _verdict(info))
    room = width - len(per_pass) - width_of(tail) - 4
    every = max(1, -(-len(ratios) // max(1, room)))
    bars = spark(ratios[every - 1 :: every], top=1.0)
    return flow([line(per_pass), line(Span(bars, Role.SERIES)), tail], width)


def _verdict(info: SpeculationInfo) -> Line:
    if isinstance(info.tail_verdict, Missing):
        return line(Span(f"{DASH} {clean(info.tail_verdict.reason)}", Role.MUTED))
    return line(Span(_TAIL.get(info.tail_verdict, clean(info.tail_verdict)), Role.GOOD))


def _without(info: SpeculationInfo) -> Line:
    off = info.off_tokens_per_s_at_this_load
    if isinstance(off, Missing):
        return line(Span(f"without, at this load: {DASH} {clean(off.reason)}", Role.MUTED))
    return line("without, at this load: ", f"{shown(off, fmt.rate)} tok/s")


def caches(reading: Reading, size: Size) -> list[Line]:
    """The prefix cache with the last prefix that was lost, and the KV cache."""
    snapshot = reading.snapshot
    width = size.width
    cache = snapshot.prefix_cache
    first = [labelled("Prefix cache", _hits(cache, width - _LABEL), width)]
    if not isinstance(cache.last_loss, Missing):
        room = 1 if size.height < 4 else 2
        first += [labelled("", part, width) for part in _loss(cache.last_loss, width, room)]
    second = [labelled("KV cache", _kv(snapshot.kv_cache, width - _LABEL), width)]
    return aged(reading, cache.age_s, first) + aged(reading, snapshot.kv_cache.age_s, second)


def _loss(loss: CacheLoss, width: int, rows: int) -> list[Line]:
    """The last prefix that was lost: whose, in which turn, how much and why."""
    text = f"{loss.session} turn {loss.turn} re-read {fmt.count(loss.tokens)}: {loss.cause}"
    parts = wrap(text, width - _LABEL - 2)
    if len(parts) > rows:
        parts = [fit(line(clean(text)), width - _LABEL - 2)]
    return [
        line(Span("▲ " if index == 0 else "  ", Role.WARN), part)
        for index, part in enumerate(parts)
    ]


def _hits(cache: PrefixCache, width: int) -> Line:
    since = shown(cache.hit_ratio_since_start, fmt.percent)
    if isinstance(cache.hit_ratio, Missing):
        tail = "" if since == DASH else f"{since} since start"
        return flow([gap(cache.hit_ratio), line(Span(tail, Role.MUTED))], width)
    prompts = number(cache.prompts)
    where = "" if prompts is None else f" of {fmt.plural(prompts, 'prompt')}"
    reusable = (
        ""
        if isinstance(cache.reusable_ratio, Missing)
        else f"{shown(cache.reusable_ratio, fmt.percent)} of reusable"
    )
    return flow(
        [
            line(Span(shown(cache.hit_ratio, fmt.percent), Role.STRONG), where),
            line(reusable),
            line(Span(f"{since} since start", Role.MUTED)),
        ],
        width,
    )


def _kv(cache: KvCache, width: int) -> Line:
    if isinstance(cache.held_tokens, Missing) and isinstance(cache.held_ratio, Missing):
        return gap(cache.held_tokens)
    held = (
        f"{shown(cache.held_tokens, fmt.short_count)} held"
        if not isinstance(cache.held_tokens, Missing)
        else f"{shown(cache.held_ratio, fmt.percent)} held"
    )
    reusable = f"+ {shown(cache.reusable_tokens, fmt.short_count)} reusable"
    capacity = f"of {shown(cache.capacity_tokens, fmt.short_count)}"
    more = (
        line("")
        if isinstance(cache.fits_more, Missing)
        else line(Span(f"{shown(cache.fits_more, fmt.count)} more fit", Role.MUTED))
    )
    return flow([line(f"{held} {reusable} {capacity}"), more], width)


def machine(reading: Reading, size: Size) -> list[Line]:
    """The container's CPU and memory, then each GPU."""
    snapshot = reading.snapshot
    width = size.width
    room = width - _LABEL
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
    used = f"{shown(host.cpu_used_vcpu, fmt.tenths)} of {shown(host.cpu_quota_vcpu, _plain)} vCPU"
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


def _plain(value: float) -> str:
    return fmt.count(value) if value == round(value) else fmt.tenths(value)


def _whole_gib(value: float) -> str:
    return _plain(value / fmt.GIB)


def _memory(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    ram = (
        f"{shown(host.memory_used_bytes, fmt.gibibytes)} of "
        f"{shown(host.memory_limit_bytes, _whole_gib)} GiB"
    )
    shm = (
        f"shm {shown(host.shm_used_bytes, fmt.gibibytes)}/{shown(host.shm_total_bytes, _whole_gib)}"
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


def latencies(reading: Reading, size: Size) -> list[Line]:
    """Prefill speed, time to first token, passes, and what went wrong with requests."""
    snapshot = reading.snapshot
    width = size.width
    room = width - _LABEL
    latency = snapshot.latency
    return [
        labelled("Prefill", prefill(reading, room), width),
        labelled("First token", _ttft(latency.ttft_s, room), width),
        labelled("Passes", _passes(reading, room), width),
        labelled("Requests", _requests(snapshot, room), width),
    ]


def _ttft(first: FirstToken | Missing, width: int) -> Line:
    if isinstance(first, Missing):
        return gap(first)
    middle = median(first.last) if first.last else 0.0
    parts: list[Span] = []
    for seconds in first.last:
        odd = middle > 0 and seconds > _OUTLIER * middle
        text = f"{fmt.rate(seconds)}{'!' if odd else ''} "
        parts.append(Span(text, Role.WARN if odd else Role.TEXT))
    last = line(*parts, "s") if parts else line(Span(DASH, Role.MUTED))
    p50 = Span(f"p50 {shown(first.p50, fmt.latency)} of {first.count}", Role.MUTED)
    origin = Span("" if first.origin == "gateway" else "by the engine", Role.MUTED)
    return flow([last, line(p50), line(origin)], width)


def _passes(reading: Reading, width: int) -> Line:
    steps = reading.snapshot.latency.pass_s
    if isinstance(steps, Missing):
        return passes(reading)
    return flow([passes(reading), *_quantiles(steps)], width)


def _quantiles(latency: Percentiles | Missing) -> list[Line]:
    if isinstance(latency, Missing):
        return [gap(latency)]
    return [
        line(f"p50 {shown(latency.p50, fmt.latency)}"),
        line(Span(f"p95 {shown(latency.p95, fmt.latency)}", Role.MUTED)),
    ]


def _requests(snapshot: Snapshot, width: int) -> Line:
    requests = snapshot.requests
    if isinstance(requests.running, Missing):
        return gap(requests.running)
    running = f"{shown(requests.running, fmt.count)} of {shown(requests.max_running, fmt.count)}"
    return flow(
        [
            line(f"{running} running"),
            _count("preempted", requests.preemptions),
            line(Span(f"aborted {shown(requests.aborted, fmt.count)}", Role.MUTED)),
            _count("failed", requests.failed),
        ],
        width,
    )


def _count(word: str, figure: Figure) -> Line:
    return line(
        Span(f"{word} {shown(figure, fmt.count)}", Role.WARN if number(figure) else Role.MUTED)
    )


_COMPACT_LABEL = 6


def compact(reading: Reading, size: Size) -> list[Line]:
    """All instruments in six lines, for a small screen."""
    snapshot = reading.snapshot
    width = size.width
    room = width - _COMPACT_LABEL - 1
    drawers: tuple[tuple[str, Callable[[], Line]], ...] = (
        ("gen", lambda: compact_speed(reading, room)),
        ("spec", lambda: _compact_speculation(snapshot.speculation, room)),
        ("cache", lambda: _hits(snapshot.prefix_cache, room)),
        ("KV", lambda: _kv(snapshot.kv_cache, room)),
        ("TTFT", lambda: _compact_latency(snapshot, room)),
        ("box", lambda: _box(snapshot, room)),
    )
    return [labelled(f" {label}", draw(), width, _COMPACT_LABEL + 1) for label, draw in drawers]


def _compact_speculation(info: SpeculationInfo, width: int) -> Line:
    if isinstance(info.mode, Missing):
        return gap(info.mode)
    if info.mode == "off":
        return fit(_mode(info), width)
    method = known(info.method, "").replace("ngram", "n-gram")
    per_pass = f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass"
    off = info.off_tokens_per_s_at_this_load
    without = "" if isinstance(off, Missing) else f"off was {shown(off, fmt.rate)}"
    return flow(
        [
            line(f"{info.mode} {method} {shown(info.depth, fmt.count)}"),
            line(per_pass),
            _verdict(info),
            line(Span(without, Role.MUTED)),
        ],
        width,
    )


def _compact_latency(snapshot: Snapshot, width: int) -> Line:
    latency = snapshot.latency
    steps = line("pass ", _quantiles(latency.pass_s)[0])
    return flow([_ttft(latency.ttft_s, width - width_of(steps) - 2), steps], width)


def _box(snapshot: Snapshot, width: int) -> Line:
    host = snapshot.host
    cpu = f"CPU {shown(host.cpu_used_vcpu, fmt.tenths)}/{shown(host.cpu_quota_vcpu, _plain)}"
    ram = (
        f"RAM {shown(host.memory_used_bytes, fmt.gibibytes)}"
        f"/{shown(host.memory_limit_bytes, _whole_gib)}"
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
