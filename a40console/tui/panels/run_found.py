"""What follows from a run: its verdict, and what speaks against it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.figures import Missing
from a40console.model.run_result import Doubt, Verdict, VerdictKind
from a40console.model.run_words import doubt_text, interval_text, verdict_text
from a40console.tui.ink import Line, Role, Span, line, wrap

_ROLES: dict[VerdictKind, Role] = {
    "difference": Role.GOOD,
    "no difference": Role.STRONG,
    "passed": Role.GOOD,
    "failed": Role.BAD,
    "none": Role.WARN,
}
"""Of the word before a verdict's text."""

_IN = 2
"""Cells that the further lines of a text are set in."""


def verdict_lines(verdict: Verdict, width: int) -> list[Line]:
    """The verdict, the ratio that it rests on, and the word before what is to be pasted."""
    word, text = verdict_text(verdict)
    head = f"{word}: "
    first, *rest = wrap(f"{head}{text}", width, indent=_IN)
    begun = "".join(span.text for span in first)[len(head) :]
    lines = [line(Span(head, _ROLES[verdict.kind]), begun), *rest]
    if not isinstance(verdict.ratio, Missing):
        ratio = f"Ratio: {interval_text(verdict.ratio)}"
        lines += wrap(ratio, width, Role.MUTED, indent=_IN)
    if verdict.paste:
        lines.append(line(Span("To have it, paste:", Role.MUTED)))
    return lines


def doubt_lines(doubts: Sequence[Doubt], width: int) -> list[Line]:
    """Each doubt; what makes the run invalid has another mark than what is only to be known."""
    lines: list[Line] = []
    for doubt in doubts:
        mark, role = ("✖", Role.BAD) if doubt.invalidates else ("▲", Role.WARN)
        lines += wrap(f"{mark} {doubt_text(doubt)}", width, role, indent=_IN)
    return lines
