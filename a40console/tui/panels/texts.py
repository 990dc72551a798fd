"""Longer texts of the dialogs: the journal, the explanation, the manual."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.command import COMMANDS
from a40console.model.control import CommandResult
from a40console.model.event import Event
from a40console.model.snapshot import Snapshot
from a40console.tui import format as fmt
from a40console.tui.glossary import FIGURES, MARKS
from a40console.tui.ink import Line, Role, Span, clean, fit, line, wrap
from a40console.tui.keymap import Keymap
from a40console.tui.panels.findings import GLYPHS, ranked
from a40console.tui.panels.verdict import cause_name

_TIME = 9
_NAME = 16

_LOG_KEYS = (
    ("/", "Search, whatever the case; n and N step through the matches, escape ends it."),
    ("f", "Follow the end, or stay. Scrolling up stays, reaching the end follows."),
    ("← →", "Move sideways along long lines."),
)


def _section(title: str) -> list[Line]:
    return [(), line(Span(title, Role.LABEL))]


def journal(events: Sequence[Event], width: int) -> list[Line]:
    """Events, newest first, each with its evidence."""
    if not events:
        return [line(Span("Nothing has happened yet.", Role.MUTED))]
    lines: list[Line] = []
    for event in sorted(events, key=lambda entry: entry.id, reverse=True):
        glyph, role = GLYPHS[event.severity]
        head = line(
            Span(f"{fmt.clock(event.at):<{_TIME}}", Role.MUTED),
            Span(f"{glyph} {clean(event.kind)}  ", role),
        )
        body = wrap(event.text, width - 11)
        lines.append(fit(head, width))
        lines += [line(" " * (_TIME + 2), part) for part in body]
        evidence = "  ".join(f"{name} {value}" for name, value in event.data.items())
        lines += [line(" " * (_TIME + 2), part) for part in wrap(evidence, width - 11, Role.MUTED)]
    return lines


def explanation(snapshot: Snapshot, width: int) -> list[Line]:
    """The limit with its evidence and what was ruled out, then every finding."""
    limit = snapshot.limit
    lines = [line(Span("Limit  ", Role.LABEL), Span(cause_name(limit.cause), Role.STRONG))]
    lines += wrap(limit.text, width)
    lines += _section("Evidence")
    lines += _listed(limit.evidence, width, "no evidence was gathered")
    lines += _section("Ruled out")
    lines += _listed(
        [cause_name(cause) for cause in limit.ruled_out], width, "nothing could be ruled out"
    )
    lines += _section("Findings")
    findings = ranked(snapshot)
    if not findings:
        return [*lines, line(Span("  nothing wrong found", Role.MUTED))]
    for finding in findings:
        glyph, role = GLYPHS[finding.severity]
        lines.append(
            fit(line("  ", Span(f"{glyph} {finding.code}  ", role), clean(finding.title)), width)
        )
        for label, text in (
            ("evidence", finding.evidence),
            ("remedy", finding.remedy),
            ("since", fmt.clock(finding.since) if finding.since else ""),
        ):
            if text:
                lines += _paragraph(label, text, width)
    return lines


def _listed(entries: Sequence[str], width: int, none: str) -> list[Line]:
    if not entries:
        return [line(Span(f"  – {none}", Role.MUTED))]
    return [
        line("  · " if index == 0 else "    ", part)
        for entry in entries
        for index, part in enumerate(wrap(entry, width - 4))
    ]


def _paragraph(label: str, text: str, width: int) -> list[Line]:
    parts = wrap(text, width - 14)
    return [
        line(Span(f"    {label if index == 0 else '':<10}", Role.MUTED), part)
        for index, part in enumerate(parts)
    ]


def answer(result: CommandResult, width: int) -> list[Line]:
    """What a command answered: short values beside their names, long ones below."""
    lines: list[Line] = []
    for name, value in result.result.items():
        label = clean(name.replace("_", " "))
        if "\n" not in value and len(value) <= width - _NAME:
            lines.append(line(Span(label.ljust(_NAME), Role.LABEL), clean(value)))
            continue
        lines.append(line(Span(label, Role.LABEL)))
        for row in value.splitlines():
            lines += [line("  ", part) for part in wrap(row, width - 2)] or [()]
    for event in result.events:
        lines += wrap(f"{fmt.clock(event.at)} {event.text}", width, Role.MUTED)
    return lines or [line(Span("Done; the service sent nothing with it.", Role.MUTED))]


def manual(keys: Keymap, width: int) -> list[Line]:
    """Every command with its key, the marks, and what each figure means."""
    lines = [line(Span("Commands", Role.LABEL))]
    for command in COMMANDS:
        text = f"{command.title}: {command.help}"
        if command.confirm:
            text += " Asks first."
        lines += _entry(keys.hint(command.id) or "–", text, width, 5)
    lines += _entry("ctrl+p", "Palette: every command by name.", width, 5)
    lines += _entry("tab", "Next panel; the line above the keys names its source.", width, 5)
    lines += _section("In the logs")
    for key, text in _LOG_KEYS:
        lines += _entry(key, text, width, 5)
    lines += _section("Marks")
    for mark, text in MARKS:
        lines += _entry(mark, text, width, 5)
    lines += _section("Figures")
    for name, text in FIGURES:
        lines += _entry(name, text, width, 17)
    return lines


def _entry(name: str, text: str, width: int, room: int) -> list[Line]:
    indent = room + 4
    parts = wrap(text, width - indent)
    if len(name) > room + 1:
        indent = len(name) + 3
        parts = wrap(text, width - indent)
    return [
        line(Span(f"  {name if index == 0 else '':<{indent - 2}}", Role.KEY), part)
        for index, part in enumerate(parts)
    ]
