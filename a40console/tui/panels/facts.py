"""Facts behind their names, as the drill-ins write them; what is missing says why. Pure."""

from __future__ import annotations

from collections.abc import Callable

from a40console.model.figures import Figure, Missing, Text
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.panels.labels import LABEL


def figure(
    label: str, value: Figure, formatter: Callable[[float], str], width: int, unit: str = ""
) -> list[Line]:
    """A figure with its unit; where it is missing, a dash with the reason."""
    if isinstance(value, Missing):
        return fact(label, value, width)
    head = Span(f"{label:<{LABEL}}", Role.LABEL)
    text = shown(value, formatter)
    parts = wrap(unit, width - LABEL - len(text) - 1, Role.MUTED) or [line("")]
    blank = " " * (LABEL + len(text) + 1)
    gap = " " if unit else ""
    return [
        line(head, Span(text, Role.STRONG), gap, part) if index == 0 else line(blank, part)
        for index, part in enumerate(parts)
    ]


def fact(label: str, value: Text, width: int) -> list[Line]:
    """A text, broken where it is long."""
    missing = isinstance(value, Missing)
    text = f"{DASH} {value.reason}" if isinstance(value, Missing) else value
    parts = wrap(clean(text), width - LABEL, Role.MUTED if missing else Role.TEXT) or [line("")]
    heads = [label, *[""] * (len(parts) - 1)]
    return [
        line(Span(f"{head:<{LABEL}}", Role.LABEL), part)
        for head, part in zip(heads, parts, strict=True)
    ]
