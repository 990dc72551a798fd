"""The snapshot in sentences, and what changed between two: for ears, and for logs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from a40console.commands.verdict import cost_line, limit_line, phase_line, verdict_lines
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.explanation import Explanation
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Slot, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import known, shown

Detail = Literal["quiet", "normal", "all"]
"""How much is told unasked: only errors and the engine; also its phases, the limit and warnings;
also requests."""

DETAILS: tuple[Detail, ...] = ("quiet", "normal", "all")

_STRENGTHS = {"cause": "Also", "candidate": "Possibly", "weak": "A weak hint"}
_SEVERITIES = {"info": "Note", "warn": "Warning", "error": "Error"}
_SPOKEN = (
    (re.compile(r"[●◐✖○▲✓▸•]\s*"), ""),
    (re.compile(r"≈\s*"), "about "),
    (re.compile(r"\s*×\s*"), " times "),
    (re.compile(r"\s+·\s+"), ", "),
    (re.compile(r"^\s*–\s+"), "unknown: "),
    (re.compile(r" {2,}–"), ", unknown"),
    (re.compile(r"(?<![\w–])–(?![\w–])"), "unknown"),
    (re.compile(r"\s{3,}"), ". "),
    (re.compile(r"\s{2}"), ", "),
    (re.compile(r"\$([\d.,]*\d)/h\b"), r"$\1 an hour"),
    (re.compile(r"/1M\b"), " a million"),
    (re.compile(r"\btok/s\b"), "tokens a second"),
    (re.compile(r"…"), "..."),
)


def spoken(text: str) -> str:
    """A line of the screen as a voice can read it: words for signs, full stops for gaps."""
    text = text.strip()
    for pattern, words in _SPOKEN:
        text = pattern.sub(words, text)
    return text


def sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    text = spoken(text)
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?:" else ".")


def report(snapshot: Snapshot) -> list[str]:
    """Everything that matters, in the order of the screen."""
    serving, _, _ = verdict_lines(snapshot)
    lines = [sentence(serving), sentence(f"Limit: {limit_line(snapshot)}")]
    lines.append(sentence(f"Cost: {cost_line(snapshot)}"))
    if isinstance(snapshot.slots, Missing):
        lines.append(sentence(f"Requests one by one are unknown: {snapshot.slots.reason}"))
    else:
        lines += [_slot(slot) for slot in snapshot.slots]
    lines += [finding_sentence(found) for found in snapshot.findings]
    return lines


def _slot(slot: Slot) -> str:
    who = "direct" if slot.direct else known(slot.session, "of an unknown session")
    context, made = shown(slot.prompt_tokens, fmt.count), shown(slot.generated_tokens, fmt.count)
    speed = shown(slot.tokens_per_s, fmt.rate)
    return sentence(
        f"Request {slot.slot}, {who}: {slot.phase}, {context} tokens of context, "
        f"{made} generated at {speed} tok/s"
    )


def finding_sentence(finding: Finding) -> str:
    """A finding with its evidence and what to do."""
    parts = [finding.title, finding.evidence, finding.remedy]
    told = " ".join(sentence(part) for part in parts if part)
    return f"{_SEVERITIES[finding.severity]}: {told}"


def explained(explanation: Explanation) -> list[str]:
    """What explains the speed, with its figures and what to do; what was ruled out, and how."""
    lines: list[str] = []
    for rank, cause in enumerate(explanation.causes):
        said = "Limit" if rank == 0 else _STRENGTHS[cause.strength]
        lines.append(sentence(f"{said}: {cause.text}"))
        lines += [sentence(f"Evidence: {entry}") for entry in cause.evidence]
        lines += [sentence(cause.remedy)] if cause.remedy else []
    lines += [sentence(f"Ruled out: {out.cause}, {out.how}") for out in explanation.ruled_out]
    lines += [sentence(f"Not judged: {un.cause}, {un.reason}") for un in explanation.unjudged]
    return lines


def changes(before: Snapshot, after: Snapshot, detail: Detail) -> list[str]:
    """What an operator who heard the one must hear of the other."""
    lines = list(_engine_changes(before, after, detail))
    lines += _finding_changes(before, after, detail)
    if detail != "quiet" and _limit_of(before) != _limit_of(after):
        lines.append(sentence(f"Limit: {after.limit.text or after.limit.cause}"))
    if detail == "all" and _requests(before) != _requests(after):
        lines.append(sentence(_requests(after)))
    return lines


def _engine_changes(before: Snapshot, after: Snapshot, detail: Detail) -> Iterable[str]:
    old, new = before.engine, after.engine
    if new.restarts > old.restarts:
        yield "The engine ended by itself and was started again."
    if old.state is not new.state:
        told = phase_line(new) if new.state is not EngineState.SERVING else ""
        yield sentence(f"{new.state.sentence}{': ' + told if told else ''}")
    elif detail != "quiet" and old.phase != new.phase and isinstance(new.phase, str):
        yield sentence(f"Phase: {new.phase}")


def _finding_changes(before: Snapshot, after: Snapshot, detail: Detail) -> Iterable[str]:
    grave = {"error"} if detail == "quiet" else {"error", "warn"}
    old = {found.code for found in before.findings}
    new = {found.code for found in after.findings}
    for found in after.findings:
        if found.severity in grave and found.code not in old:
            yield finding_sentence(found)
    for found in before.findings:
        if found.severity in grave and found.code not in new:
            yield sentence(f"Over: {found.title}")


def _limit_of(snapshot: Snapshot) -> str:
    return snapshot.limit.cause


def _requests(snapshot: Snapshot) -> str:
    requests = snapshot.requests
    running, waiting = number(requests.running), number(requests.waiting)
    parts = ["running unknown" if running is None else f"{fmt.count(running)} running"]
    if waiting:
        parts.append(f"{fmt.count(waiting)} waiting")
    if requests.held:
        parts.append(f"{requests.held} held")
    return f"Requests: {', '.join(parts)}"
