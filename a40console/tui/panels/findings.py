"""What is wrong: the first of it in one line, or all of it with evidence and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from a40console.model.command import BY_ID
from a40console.model.event import Finding
from a40console.model.snapshot import Snapshot
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, line, rule, spread, width_of, wrap
from a40console.tui.keymap import action, short
from a40console.tui.panels import why
from a40console.tui.panels.moments import in_local_time
from a40console.tui.reading import Reading

_LEAST_EVIDENCE = 20
"""Cells below which a piece of the evidence says nothing."""

_RANK = {"error": 0, "warn": 1, "info": 2}
GLYPHS = {"error": ("✖", Role.BAD), "warn": ("▲", Role.WARN), "info": ("·", Role.MUTED)}


def ranked(snapshot: Snapshot) -> list[Finding]:
    """The findings, the gravest first; equals keep their order."""
    return sorted(snapshot.findings, key=lambda finding: _RANK[finding.severity])


def first_finding(reading: Reading, size: Size) -> list[Line]:
    """One line: the gravest finding, how many more there are, and the keys that answer it.

    Where its words would be cut, its code gives way to them.
    """
    findings = ranked(reading.snapshot)
    if not findings:
        return [line(Span(" ✓ nothing wrong found", Role.MUTED))]
    first = findings[0]
    glyph, role = GLYPHS[first.severity]
    more = f"  +{len(findings) - 1} more" if len(findings) > 1 else ""
    right = line(Span(more + "  " if more else "", Role.WARN), *_keys(reading, first))
    room = size.width - 3 - width_of(right)
    told = [line(Span(f"{glyph} {first.code}  ", role), clean(first.title))]
    if width_of(told[0]) > room:
        told = [line(Span(f"{glyph} ", role), clean(first.title))]
    evidence = clean(in_local_time(first.evidence))
    if room - width_of(told[0]) >= min(_LEAST_EVIDENCE, len(evidence) + 2):
        told.append(line(Span(f"  {evidence}", Role.MUTED)))
    return [spread(line(" ", *told), right, size.width - 1)]


def all_findings(found: Sequence[Finding], width: int, hint: why.KeyHint) -> list[Line]:
    """What was found wrong, each with its evidence and what mends it."""
    lines = [rule(line(Span("Findings", Role.LABEL)), width)]
    for finding in found:
        glyph, role = GLYPHS[finding.severity]
        head = f"{glyph} {clean(finding.code)}"
        lines += [
            line("  ", part) for part in wrap(f"{head}: {finding.title}", width - 2, role, indent=2)
        ]
        lines += [line("    ", part) for part in wrap(in_local_time(finding.evidence), width - 4)]
        lines += why.advice(finding.remedy, finding.command, width, hint)
        if finding.since:
            lines.append(line("    ", Span(f"since {fmt.clock(finding.since)}", Role.MUTED)))
    return lines if found else [*lines, line(Span("  ✓ nothing wrong found", Role.MUTED))]


def _keys(reading: Reading, finding: Finding) -> list[Span]:
    """The key that mends it, where the table knows the command, and the one that explains it."""
    spans: list[Span] = []
    for command_id in (finding.command, "limit.why"):
        command = BY_ID.get(command_id or "")
        key = reading.keymap.hint(command.id) if command else ""
        if command and key:
            word = short(command) if command.id != "limit.why" else "evidence"
            spans.append(Span(f"[{key}]", Role.KEY, action(command)))
            spans.append(Span(f" {word}  ", Role.MUTED, action(command)))
    return [*spans[:-1], spans[-1]._replace(text=spans[-1].text.rstrip())] if spans else []
