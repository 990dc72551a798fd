"""A line of figures behind its name, a dash with its reason, a block that has grown old."""

from __future__ import annotations

from a40console.model.figures import Figure, Missing
from a40console.tui import format as fmt
from a40console.tui.format import DASH
from a40console.tui.ink import Line, Role, Span, clean, faded, fit, line
from a40console.tui.reading import Reading

LABEL = 13
"""Cells of the names that the overview's instruments stand behind."""


def labelled(label: str, body: Line, width: int, label_width: int = LABEL) -> Line:
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
