"""The GPUs: memory, use, power, heat, clock, what throttles them; one in full, several in rows."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, is_estimate, number
from a40console.model.snapshot import Gpu
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, pad, spread, width_of, wrap
from a40console.tui.panels.labels import LABEL, aged, labelled
from a40console.tui.raster import gauge
from a40console.tui.reading import Reading

_GAUGE = 10
_ROOMY = 68
_INDEX = 3
_NAME = 8
_MEMORY = 10
_USE = 6
_POWER = 9
_HEAT = 4
_CLOCK = 6


def gpus(reading: Reading, size: Size) -> list[Line]:
    """Each GPU; where none can be read, the reason."""
    known = reading.snapshot.gpus
    width = size.width
    if isinstance(known, Missing):
        parts = wrap(f"{DASH} {known.reason}", width - LABEL, Role.MUTED)
        return [
            labelled("GPU" if index == 0 else "", part, width) for index, part in enumerate(parts)
        ]
    if not known:
        return [labelled("GPU", line(Span(f"{DASH} there is none", Role.MUTED)), width)]
    if len(known) == 1:
        return aged(reading, known[0].age_s, _one(known[0], width))
    names = [short_name(gpu) for gpu in known]
    alike = len(set(names)) == 1
    column = _INDEX if alike else _NAME
    titles = _titles(column)
    tail = line(Span(f"{len(known)} × {names[0]}", Role.MUTED))
    if alike and width_of(titles) + 2 + width_of(tail) <= width:
        titles = spread(titles, tail, width)
    rows = [fit(titles, width)]
    for gpu in known:
        rows += aged(reading, gpu.age_s, [fit(_row(gpu, column), width)])
    return rows


def short_name(gpu: Gpu) -> str:
    """What the card is called, without its maker."""
    return clean(fmt.known(gpu.name)).removeprefix("NVIDIA ")


def valid_share(figure: Figure) -> Figure:
    """A share of 0 to 1; what lies beyond is a stale sample of the driver, and no reading."""
    share = number(figure)
    if share is None or 0 <= share <= 1:
        return figure
    return Missing(f"the driver said {share * 100:,.0f} %, which no GPU can be")


def throttle(gpu: Gpu) -> Line:
    """What slows the card down."""
    if isinstance(gpu.throttle_reasons, Missing):
        return line(Span(f"throttle {DASH}", Role.MUTED))
    if not gpu.throttle_reasons:
        return line(Span("no throttle", Role.MUTED))
    return line(Span("▲ " + clean(", ".join(gpu.throttle_reasons)), Role.WARN))


def memory(gpu: Gpu) -> str:
    """Used and all of its memory, in GiB."""
    used = shown(gpu.memory_used_bytes, fmt.gibibytes)
    return f"{used}/{shown(gpu.memory_total_bytes, fmt.gibibytes)}"


def power(gpu: Gpu) -> str:
    """Drawn and allowed watts."""
    return f"{shown(gpu.power_w, fmt.count)}/{shown(gpu.power_limit_w, fmt.count)} W"


def _one(gpu: Gpu, width: int) -> list[Line]:
    """The one GPU on two lines, what slows it first in the second."""
    room = width - LABEL
    used, whole = number(gpu.memory_used_bytes), number(gpu.memory_total_bytes)
    bar = "" if used is None or not whole or width < _ROOMY else gauge(used / whole, _GAUGE) + " "
    first = [
        line(Span(bar, Role.SPARK), f"{memory(gpu)} GiB"),
        line(f"{shown(valid_share(gpu.utilization_ratio), fmt.percent):>5}"),
        line(f"{power(gpu):>9}"),
        line(f"{shown(gpu.temperature_c, fmt.count)} °C"),
    ]
    second = [line(f"{_clock(gpu)}"), _bandwidth(gpu)]
    second.insert(0 if gpu.throttle_reasons else 1, throttle(gpu))
    name = fit(line(short_name(gpu)), LABEL - 2)
    return [
        labelled("GPU", flow(first, room), width),
        fit(
            line(pad(line(Span(" ", Role.LABEL), _as_label(name)), LABEL), flow(second, room)),
            width,
        ),
    ]


def _as_label(name: Line) -> Line:
    return line(*(span._replace(role=Role.LABEL) for span in name))


def _clock(gpu: Gpu) -> str:
    return f"{shown(gpu.sm_clock_mhz, fmt.count)} MHz"


def _bandwidth(gpu: Gpu) -> Line:
    read, peak = number(gpu.read_bytes_per_s), number(gpu.peak_bytes_per_s)
    if read is None:
        return line("")
    mark = fmt.ESTIMATE if is_estimate(gpu.read_bytes_per_s) else ""
    of = "" if peak is None else f" of {fmt.count(peak / 1e9)}"
    return line(Span(f"{mark}{fmt.count(read / 1e9)}{of} GB/s", Role.MUTED))


def _titles(column: int) -> Line:
    return line(
        Span(
            f"{'GPU':<{column}}{'GiB':>{_MEMORY}}{'use':>{_USE}}{'W':>{_POWER}}{'°C':>{_HEAT}}"
            f"{'MHz':>{_CLOCK}}  throttle",
            Role.LABEL,
        ),
    )


def _row(gpu: Gpu, column: int) -> Line:
    """One of several on a line of the table, with its name where the cards differ."""
    name = short_name(gpu) if column > _INDEX else ""
    slowed = gpu.throttle_reasons
    reason = (
        line(Span(DASH, Role.MUTED))
        if isinstance(slowed, Missing)
        else line(Span("none", Role.MUTED))
        if not slowed
        else line(Span("▲ " + clean(", ".join(slowed)), Role.WARN))
    )
    head = line(Span(f"{gpu.index:>2} ", Role.LABEL), Span(name, Role.MUTED))
    return line(
        pad(head, column),
        f"{memory(gpu):>{_MEMORY}}"
        f"{shown(valid_share(gpu.utilization_ratio), fmt.percent):>{_USE}}"
        f"{power(gpu).removesuffix(' W'):>{_POWER}}"
        f"{shown(gpu.temperature_c, fmt.count):>{_HEAT}}"
        f"{shown(gpu.sm_clock_mhz, fmt.count):>{_CLOCK}}  ",
        reason,
    )
