"""Lines of text with roles instead of colours: what panels write and widgets paint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Role(StrEnum):
    """What a piece of text is; the theme decides how it looks."""

    TEXT = "text"
    STRONG = "strong"
    MUTED = "muted"
    LABEL = "label"
    TITLE = "title"
    RULE = "rule"
    KEY = "key"
    SERIES = "series"
    SPARK = "spark"
    SECOND = "second"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    role: Role = Role.TEXT
    action: str = ""
    """What a click on it does, as a Textual action; empty for nothing."""


Line = tuple[Span, ...]

EMPTY: Line = ()


def clean(text: str) -> str:
    """Text from elsewhere without what could move the terminal's cursor."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def line(*parts: str | Span | Line) -> Line:
    """One line of its parts; neighbours of the same role become one span."""
    joined: list[Span] = []
    for span in _spans(parts):
        if not span.text:
            continue
        if joined and joined[-1][1:] == span[1:]:
            joined[-1] = span._replace(text=joined[-1].text + span.text)
        else:
            joined.append(span)
    return tuple(joined)


def _spans(parts: Iterable[str | Span | Line]) -> Iterable[Span]:
    for part in parts:
        if isinstance(part, str):
            yield Span(part)
        elif isinstance(part, Span):
            yield part
        else:
            yield from part


def width_of(spans: Line) -> int:
    """Cells that the line takes."""
    return sum(cell_len(span.text) for span in spans)


def fit(spans: Line, width: int) -> Line:
    """The line, cut with an ellipsis where it is wider than `width` cells."""
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    left = max(0, width - 1)
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            kept.append(span._replace(text=set_cell_size(span.text, left).rstrip() + "…"))
            break
        kept.append(span)
        left -= size
    return line(*kept) if width > 0 else EMPTY


def pad(spans: Line, width: int) -> Line:
    """The line with blanks up to `width` cells, or cut to it."""
    missing = width - width_of(spans)
    if missing < 0:
        return fit(spans, width)
    return line(spans, Span(" " * missing, spans[-1].role if spans else Role.TEXT))


def spread(left: Line, right: Line, width: int) -> Line:
    """Left flush left and right flush right; where both do not fit, left gives way."""
    room = width - width_of(right)
    if room < 1:
        return fit(left, width)
    return line(pad(fit(left, room - 1), room), right)


def flow(items: Sequence[Line], width: int, gap: str = "  ") -> Line:
    """The items in a row, as many of the first ones as fit; the first is cut if it must be."""
    taken: list[Line] = []
    used = -len(gap)
    for item in items:
        size = width_of(item)
        if not size:
            continue
        if taken and used + len(gap) + size > width:
            break
        used += len(gap) + size
        taken.append(item)
    parts: list[str | Span | Line] = []
    for item in taken:
        parts += [gap, item] if parts else [item]
    return fit(line(*parts), width)


def wrap(text: str, width: int, role: Role = Role.TEXT, *, indent: int = 0) -> list[Line]:
    """A text broken at blanks into lines; those after the first are indented."""
    lines: list[Line] = []
    current = ""
    for word in clean(text).split():
        room = width - (indent if lines else 0)
        if current and cell_len(current) + 1 + cell_len(word) > room:
            lines.append(_indented(current, role, indent if lines else 0))
            current = word
        else:
            current = f"{current} {word}" if current else word
    if current:
        lines.append(_indented(current, role, indent if lines else 0))
    return [fit(entry, width) for entry in lines]


def _indented(text: str, role: Role, indent: int) -> Line:
    return line(" " * indent, Span(text, role))


def rule(title: Line, width: int, tail: Line = EMPTY) -> Line:
    """A heading on a thin line, with an optional tail at its right end."""
    head = line(Span("─ ", Role.RULE), title, Span(" ", Role.RULE))
    end = line(Span(" ", Role.RULE), tail, Span(" ─", Role.RULE)) if tail else EMPTY
    left = width - width_of(head) - width_of(end)
    if left < 1:
        return fit(head, width)
    return line(head, Span("─" * left, Role.RULE), end)


def faded(lines: Iterable[Line]) -> list[Line]:
    """The lines in grey: a last value that may no longer hold. What is faint already stays so."""
    return [line(*map(_faded, spans)) for spans in lines]


def _faded(span: Span) -> Span:
    return span if span.role is Role.RULE else span._replace(role=Role.MUTED)
