"""What the doctor found, for its dialog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby

from a40console.model.check import Check, CheckState
from a40console.model.codec import DecodeError, decode
from a40console.tui.ink import Line, Role, Span, clean, line, wrap

_MARKS: dict[CheckState, tuple[str, Role]] = {
    "ok": ("ok", Role.GOOD),
    "warn": ("warn", Role.WARN),
    "missing": ("MISSING", Role.BAD),
    "unchecked": ("–", Role.MUTED),
}
_MARK_COLUMNS = 9


def read_checks(result: Mapping[str, str]) -> list[Check]:
    """The checks of the command's answer; one that cannot be read is told as such."""
    checks = []
    for name, text in result.items():
        try:
            checks.append(decode(Check, json.loads(text)))
        except (ValueError, DecodeError) as error:
            told = f"the service's answer cannot be read: {error}"
            checks.append(Check(group="other", name=name, state="unchecked", text=told))
    return checks


def checks_text(checks: Sequence[Check], width: int) -> list[Line]:
    """The verdict, and what it rests on."""
    return [line(Span(verdict(checks), Role.STRONG)), (), *groups_text(checks, width)]


def groups_text(checks: Sequence[Check], width: int) -> list[Line]:
    """Group by group, the line that mends it below what is found."""
    lines: list[Line] = []
    room = max((len(check.name) for check in checks), default=0) + 2
    for group, members in groupby(checks, key=lambda check: check.group):
        lines += [*([()] if lines else []), line(Span(clean(group), Role.LABEL))]
        for check in members:
            lines += _rows(check, room, width)
    return lines


def verdict(checks: Sequence[Check]) -> str:
    """One sentence about all of them."""
    missing = [check.name for check in checks if check.state == "missing"]
    warned = sum(check.state == "warn" for check in checks)
    if missing:
        return f"{len(missing)} in the way of serving: {clean(', '.join(missing))}."
    return f"Nothing stands in the way; {warned} to look at." if warned else "Nothing is missing."


def _rows(check: Check, room: int, width: int) -> list[Line]:
    mark, role = _MARKS[check.state]
    indent = room + _MARK_COLUMNS
    texts = wrap(check.text, width - indent) or [()]
    name = Span(clean(check.name).ljust(room), Role.TEXT)
    rows = [line(name, Span(mark.ljust(_MARK_COLUMNS), role), texts[0])]
    rows += [line(" " * indent, text) for text in texts[1:]]
    for text in wrap(f"→ {check.mend}", width - indent, role) if check.mend else ():
        rows.append(line(" " * indent, text))
    return rows
