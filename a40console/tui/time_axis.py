"""The time axis of every chart: its rule, and round clock times at their places. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from a40console.tui.ink import Role

_STEPS_S = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY_S = 86_400
_WITH_SECONDS_S = 600
_GAP = 3
"""Least cells between two labels."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A clock time and the cell it stands at."""

    cell: int
    label: str


def ticks(since_s: float, end_s: float, cells: int) -> list[Tick]:
    """Round local times between two Unix times, as many as there is room for on so many cells."""
    span_s = end_s - since_s
    if cells < 1 or span_s <= 0:
        return []
    room_s = (len("00:00") + _GAP) * span_s / cells
    step_s = next((step for step in _STEPS_S if step >= room_s), _DAY_S)
    offset = datetime.fromtimestamp(end_s).astimezone().utcoffset()
    local_s = offset.total_seconds() if offset else 0.0
    at_s = ((since_s + local_s) // step_s + 1) * step_s - local_s
    marks: list[Tick] = []
    while at_s <= end_s:
        cell = cell_of(at_s, since_s, end_s, cells)
        marks.append(Tick(cell, datetime.fromtimestamp(at_s).astimezone().strftime("%H:%M")))
        at_s += step_s
    return marks


def cell_of(at_s: float, since_s: float, end_s: float, cells: int) -> int:
    """The cell in which an instant lies."""
    return max(0, min(cells - 1, int((at_s - since_s) / (end_s - since_s) * cells)))


def ruled(marks: Sequence[Tick], cells: int, *, labelled: bool = False) -> list[tuple[str, Role]]:
    """The axis by cell: a rule, and a tick at each clock time.

    Args:
        marks: The clock times.
        cells: Its length.
        labelled: Whether a label stands behind its tick, where the axis goes on behind it.
    """
    drawn: list[tuple[str, Role]] = [("─", Role.RULE)] * cells
    for mark in marks:
        behind = mark.cell + 1 + len(mark.label)
        if labelled and behind >= cells:
            continue
        drawn[mark.cell] = ("┴", Role.RULE)
        if labelled:
            drawn[mark.cell + 1 : behind] = [(letter, Role.MUTED) for letter in mark.label]
    return drawn


def labels(marks: Sequence[Tick], cells: int) -> str:
    """The labels, each in the middle of its place, none over another."""
    written = [" "] * cells
    free = 0
    for mark in marks:
        start = max(0, min(mark.cell - len(mark.label) // 2, cells - len(mark.label)))
        if start < free:
            continue
        written[start : start + len(mark.label)] = mark.label
        free = start + len(mark.label) + 1
    return "".join(written)[:cells]


def clock_span(since_s: float, end_s: float, now_s: float) -> str:
    """Two instants as local times of day: `13:40–14:40`; with the day where it is not today."""
    since, end, now = (datetime.fromtimestamp(at).astimezone() for at in (since_s, end_s, now_s))
    end_day = "" if end.date() == now.date() else f"{end:%d %b} "
    since_day = "" if since.date() == end.date() else f"{since:%d %b} "
    seconds = ":%S" if end_s - since_s < _WITH_SECONDS_S else ""
    clock = end.strftime("%H:%M" + seconds)
    if since_day:
        return f"{since_day}{since:%H:%M}–{end_day}{clock}"
    return f"{end_day}{since:%H:%M}–{clock}"
