"""Speculation: its mode, what it brings, how many drafts are accepted, and the speed without."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.model.snapshot import SpeculationInfo
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line, width_of
from a40console.tui.panels.labels import LABEL, aged, gap, labelled
from a40console.tui.raster import area_chart, spark
from a40console.tui.reading import Reading

_CURVE_ROWS = 2


def speculation(reading: Reading, size: Size) -> list[Line]:
    """Mode, tokens per pass, the acceptance curve with its end, and the speed without."""
    info = reading.snapshot.speculation
    width = size.width
    if isinstance(info.mode, Missing):
        if isinstance(info.tokens_per_pass, Missing):
            return [labelled("Speculation", gap(info.mode), width)]
        per_pass = line(f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass")
        taken = line(f"{shown(info.acceptance_ratio, fmt.percent)} of the drafts accepted")
        return [labelled("Speculation", flow([per_pass, taken], width - LABEL), width)]
    lines = [labelled("Speculation", mode(info), width)]
    if info.mode != "off":
        lines += _accepted(info, size)
        lines.append(labelled("", without(info), width))
    elif (drafted := with_it(info)) is not None:
        lines.append(labelled("", drafted, width))
    return aged(reading, info.age_s, lines)


def _accepted(info: SpeculationInfo, size: Size) -> list[Line]:
    """Tokens a pass and the acceptance curve, the curve in rows of its own where there is room."""
    room = size.width - LABEL
    rows = size.height - 3
    curve = info.accepted_ratio_per_position
    if rows < _CURVE_ROWS or isinstance(curve, Missing):
        return [labelled("", _curve(info, room), size.width)]
    per_pass = line(f"{shown(info.tokens_per_pass, fmt.rate)} tok/pass")
    ratios = [value for ratio in curve[:room] for value in [number(ratio)] * (room // len(curve))]
    drawn = area_chart(ratios, height=rows, top=1.0)
    return [
        labelled("", flow([per_pass, tail_verdict(info)], room), size.width),
        *(
            labelled(
                f"{'accepted' if row == 0 else '':>8}",
                line(*(Span(text, Role.SERIES if top else Role.RULE) for text, top in runs)),
                size.width,
            )
            for row, runs in enumerate(drawn)
        ),
    ]


def mode(info: SpeculationInfo) -> Line:
    """Whether it is on, how it is steered, and how many drafts that rests on."""
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
    if isinstance(info.tokens_per_pass, Missing):
        return gap(info.tokens_per_pass)
    if isinstance(curve, Missing):
        return flow([line(per_pass), gap(curve)], width)
    ratios = [number(ratio) for ratio in curve]
    tail = tail_verdict(info)
    room = width - len(per_pass) - width_of(tail) - 4
    every = max(1, -(-len(ratios) // max(1, room)))
    bars = spark(ratios[every - 1 :: every], top=1.0)
    return flow([line(per_pass), line(Span(bars, Role.SERIES)), tail], width)


def tail_verdict(info: SpeculationInfo) -> Line:
    """How much of the last position is accepted, or why that cannot be told."""
    if isinstance(info.tail_verdict, Missing):
        return line(Span(f"{DASH} {clean(info.tail_verdict.reason)}", Role.MUTED))
    return line(Span(clean(info.tail_verdict), Role.MUTED))


def without(info: SpeculationInfo) -> Line:
    """The speed without speculation, and how long ago it was measured at this load."""
    off = info.off_tokens_per_s_at_this_load
    if isinstance(off, Missing):
        return line(Span(f"without, at this load: {DASH} {clean(off.reason)}", Role.MUTED))
    ages = [each.age_s for each in info.measured_at_this_load if each.depth == 0]
    ago = f", {fmt.duration(ages[0])} ago" if ages else ""
    return line("without, at this load: ", f"{shown(off, fmt.rate)} tok/s", Span(ago, Role.MUTED))


def with_it(info: SpeculationInfo) -> Line | None:
    """While it is off, the fastest depth that was measured at this load; None where none was."""
    drafted = [each for each in info.measured_at_this_load if each.depth]
    if not drafted:
        return None
    best = max(drafted, key=lambda each: number(each.tokens_per_s) or 0.0)
    ago = Span(f", {fmt.duration(best.age_s)} ago", Role.MUTED)
    return line(f"with {best.depth}, at this load: {shown(best.tokens_per_s, fmt.rate)} tok/s", ago)
