"""The rows of a run that is being set, as they are drawn. Pure."""

from __future__ import annotations

from a40console.tui.ink import Line, Role, Span, clean, fit, line, width_of, wrap
from a40console.tui.run_form import FormRow, RunForm

_NAME = 18
_HEAD = 2
_GAP = "  "


def form_lines(form: RunForm, width: int) -> tuple[list[Line], int]:
    """Every row, and in which line the cursor's begins."""
    lines: list[Line] = []
    at = 0
    for index, row in enumerate(form.rows()):
        here = index == form.cursor
        if here:
            at = len(lines)
        lines += _row(row, width, here=here, option=form.option if here else -1)
    return lines, at


def _row(row: FormRow, width: int, *, here: bool, option: int) -> list[Line]:
    name = clean(row.name)[: _NAME - 1]
    mark = "*" if row.changed else " "
    head = line(
        Span("▸ " if here else "  ", Role.KEY),
        Span(f"{name:<{_NAME - 1}}", Role.STRONG if here else Role.LABEL),
        Span(mark, Role.KEY),
        " ",
    )
    room = width - _HEAD - _NAME - 1
    values = _several(row, room, option) if row.kind == "several" else [_value(row, here)]
    lines = [
        fit(line(head if at == 0 else " " * (_HEAD + _NAME + 1), value), width)
        for at, value in enumerate(values)
    ]
    if row.problem:
        lines += [line(" " * (_HEAD + _NAME + 1), part) for part in _wrong(row, room)]
    return lines


def _wrong(row: FormRow, room: int) -> list[Line]:
    return wrap(f"✖ {row.problem}", room, Role.BAD, indent=2)


def _value(row: FormRow, here: bool) -> Line:
    role = Role.STRONG if row.changed or here else Role.TEXT
    unit = Span(f" {row.unit}" if row.unit else "", Role.MUTED)
    if row.kind == "cycle":
        edges = Role.KEY if here else Role.RULE
        shown = Span(clean(row.value), role)
        return line(Span("‹ ", edges), shown, Span(" ›", edges), unit)
    return line(Span(clean(row.value) or "–", role if row.value else Role.MUTED), unit)


def _several(row: FormRow, room: int, option: int) -> list[Line]:
    """Each choice with a box; the one that is pointed at stands out."""
    on = set(row.value.split(","))
    rows: list[Line] = []
    for index, name in enumerate(row.options):
        role = Role.STRONG if name in on else Role.MUTED
        pointed = Role.KEY if index == option else role
        item = line(Span("[x] " if name in on else "[ ] ", pointed), Span(clean(name), pointed))
        if rows and width_of(rows[-1]) + len(_GAP) + width_of(item) <= room:
            rows[-1] = line(rows[-1], _GAP, item)
        else:
            rows.append(item)
    return rows


def about(row: FormRow, width: int) -> list[Line]:
    """What the row under the cursor sets, and how."""
    how = {
        "cycle": "← → change it.",
        "several": "← → point, space turns on or off.",
        "text": "enter edits it.",
    }[row.kind]
    said = f"{row.help.rstrip('.')}. " if row.help else ""
    return wrap(f"{said}{how}", width, Role.MUTED)
