"""What is written at the axes of a plot that is drawn in cells. Pure."""

from __future__ import annotations

from math import ceil

from a40console.model.plot_scale import Scale, tick_text

_SHORTENED_FROM = 10_000
_THOUSAND = 1000
_GAP = 2


def tick(value: float) -> str:
    """A value at an axis, as short as it is exact: `0.25`, `40`, `12.5k`."""
    if value < _SHORTENED_FROM:
        return tick_text(value)
    for unit in "kM":
        value /= _THOUSAND
        if value < _THOUSAND:
            return f"{value:g}{unit}"
    return f"{value / _THOUSAND:g}G"


def below(scale: Scale, cells: int) -> str:
    """The values below an axis across, as many as there is room for, each under its place."""
    text = [" "] * cells
    places = scale.end - scale.begin + 1
    free = 0
    for value in scale.ticks:
        label = tick(value)
        at = int(scale.place(value) * cells / places)
        start = max(0, min(at - len(label) // 2, cells - len(label)))
        if start < free:
            continue
        text[start : start + len(label)] = label
        free = start + len(label) + _GAP
    return "".join(text)[:cells].rstrip()


def beside(scale: Scale, rows: int) -> dict[int, str]:
    """What is written beside which row of an axis up: ticks at equal distances."""
    places = scale.begin - scale.end + 1
    every = ceil(len(scale.ticks) / max(2, rows // 2))
    return {
        int(round(scale.place(value)) * rows / places): tick(value)
        for value in scale.ticks[::every]
    }
