"""Why the speed is what it is: causes by rank, what was ruled out and how, what is not known."""

from __future__ import annotations

from collections.abc import Callable

from a40console.model.command import BY_ID
from a40console.model.explanation import Cause, Explanation
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, fit, line, rule, wrap
from a40console.tui.panels.moments import in_local_time

KeyHint = Callable[[str], str]
"""The key that runs a command, as it is printed; empty for none."""

_NAME = 15
"""Cells of the column of names: the longest cause and two blanks."""

_NAMES = {
    "vcpu": "vCPU",
    "kv": "KV cache",
    "clocks": "GPU clocks",
    "gate": "gate",
    "cache": "prefix cache",
    "client": "client",
    "thread": "engine thread",
    "not-serving": "not serving",
}
"""What causes are called where there is room."""

_STRENGTHS = {"candidate": "possible", "weak": "weak hint"}
_DOT = " · "


def name_of(cause: str) -> str:
    """A cause as people call it."""
    return _NAMES.get(cause, clean(cause))


def causes(explanation: Explanation, width: int, hint: KeyHint) -> list[Line]:
    """The first cause with its figures and its remedy, then the others."""
    first, *others = explanation.causes
    simulated = Span("SIMULATED  ", Role.WARN) if explanation.simulated else Span("")
    head = line(simulated, Span("Why this speed", Role.TITLE))
    when = line(Span(fmt.clock(explanation.at), Role.MUTED))
    lines = [rule(head, width, when)]
    told = first.text.removeprefix(f"{first.cause}: ")
    lines += _titled(name_of(first.cause).upper(), Role.STRONG, told, width)
    lines += _figures(first, width) or [_dash("no figure speaks for it")]
    lines += _remedy(first, width, hint)
    if others:
        lines += [(), rule(line(Span("Other candidates", Role.LABEL)), width)]
    for cause in others:
        weak = cause.strength != "cause"
        text = f"{cause.text} ({_STRENGTHS[cause.strength]})" if weak else cause.text
        role = Role.MUTED if cause.strength == "weak" else Role.WARN
        lines += _titled(name_of(cause.cause), role, text, width)
        lines += _figures(cause, width)
        lines += _remedy(cause, width, hint)
    return lines


def verdicts(explanation: Explanation, width: int) -> list[Line]:
    """What figures exclude and how, and what cannot be judged and why."""
    lines = [rule(line(Span("Ruled out, and how", Role.LABEL)), width)]
    for excluded in explanation.ruled_out:
        lines += _titled(name_of(excluded.cause), Role.GOOD, excluded.how, width)
    if not explanation.ruled_out:
        lines.append(_dash("nothing could be ruled out"))
    if explanation.unjudged:
        lines += [(), rule(line(Span("Could not be judged", Role.LABEL)), width)]
    for open_one in explanation.unjudged:
        lines += _titled(name_of(open_one.cause), Role.MUTED, open_one.reason, width)
    return lines


def _figures(cause: Cause, width: int) -> list[Line]:
    """The evidence, its pieces kept whole where they fit."""
    room = width - _NAME - 2
    lines: list[Line] = []
    current = ""
    for piece in map(clean, map(in_local_time, cause.evidence)):
        joined = f"{current}{_DOT}{piece}" if current else piece
        if current and len(joined) > room:
            lines += wrap(current, room, Role.TEXT)
            current = piece
        else:
            current = joined
    lines += wrap(current, room, Role.TEXT)
    return [line(" " * (_NAME + 2), part) for part in lines]


def _remedy(cause: Cause, width: int, hint: KeyHint) -> list[Line]:
    return advice(cause.remedy, cause.command, width, hint, indent=_NAME + 2)


def advice(
    remedy: str, command_id: str | None, width: int, hint: KeyHint, *, indent: int = 4
) -> list[Line]:
    """What to do, and the key that does it."""
    if not remedy:
        return []
    command = BY_ID.get(command_id or "")
    key = hint(command.id) if command else ""
    rows = wrap(f"→ {remedy}", width - indent, Role.MUTED, indent=2)
    lines = [line(" " * indent, part) for part in rows]
    if command and key:
        action = f"app.command('{command.id}')"
        title = f" {command.title}" if " " not in key else ""  # a command line says it already
        press = [Span(f"[{key}]", Role.KEY, action), Span(title, Role.MUTED, action)]
        lines.append(fit(line(" " * (indent + 2), *press), width))
    return lines


def _titled(name: str, role: Role, text: str, width: int) -> list[Line]:
    """A name in its column, and a text beside it that keeps to its own."""
    parts = wrap(text, width - _NAME - 2) or [()]
    label = f"  {name}"
    if len(name) >= _NAME:
        return [line(Span(label, role)), *(line(" " * (_NAME + 2), part) for part in parts)]
    return [
        line(Span(label.ljust(_NAME + 2) if row == 0 else " " * (_NAME + 2), role), part)
        for row, part in enumerate(parts)
    ]


def _dash(text: str) -> Line:
    return line(Span(f"  – {text}", Role.MUTED))
