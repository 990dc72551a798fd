"""A run as Markdown: the verdict, its tables, what speaks against it, where it was made. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from a40console.ledger.report_counts import count_tables
from a40console.model.figures import Missing
from a40console.model.run import Run, RunEnvironment
from a40console.model.run_facts import (
    Fact,
    environment_facts,
    moment,
    run_facts,
    title,
)
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import RunResult, Table, Verdict
from a40console.model.run_words import (
    DASH,
    MARKS,
    NOT_TOLD_WHERE_INVALID,
    absences,
    doubt_text,
    excerpt_lines,
    head,
    headline,
    interval_text,
    is_words,
    marks,
    rows_text,
    verdict_text,
    visible,
)

_MARKUP = re.compile(r"[\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)|^[#+-](?=[#+-]*\s)")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s)")


def markdown(run: Run, arm_ends: Sequence[ArmEnd] = (), samples: Sequence[Sample] = ()) -> str:
    """The report of a run, to be read as it is or as the page that it describes.

    Args:
        run: The run, whole.
        arm_ends: What was counted around its arms, where that is at hand.
        samples: Its requests, likewise; they are counted, not listed.
    """
    parts = [f"# {_escaped(title(run))}"]
    parts += [f"**{mark}**: {MARKS[mark]}." for mark in marks(run)]
    parts += [f"**{_escaped(headline(run))}**"]
    if isinstance(run.result, RunResult):
        parts += _result(run.result, stands=run.state != "invalid")
    parts += _notes(run)
    for table in count_tables(arm_ends, samples):
        parts += _table(table)
    parts += ["## How it was asked", _facts(run_facts(run, arm_ends))]
    parts += ["## Where it was made", _environment(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _result(result: RunResult, *, stands: bool) -> list[str]:
    """What it found; of a run that is not to be believed, only what speaks against it."""
    if not stands:
        return [NOT_TOLD_WHERE_INVALID, *_doubts(result)]
    parts = [*_verdict(result.verdict), *_doubts(result)]
    for table in result.tables:
        parts += _table(table)
    return [*parts, *_excerpts(result.excerpts)]


def _verdict(verdict: Verdict) -> list[str]:
    word, text = verdict_text(verdict)
    parts = [f"{word}: {_escaped(text)}"]
    if not isinstance(verdict.ratio, Missing):
        parts.append(f"Ratio: {_escaped(interval_text(verdict.ratio))}.")
    if verdict.paste:
        parts += ["To have it, paste:", _fenced(excerpt_lines(verdict.paste))]
    return parts


def _doubts(result: RunResult) -> list[str]:
    if not result.doubts:
        return []
    lines = [
        f"- {'**invalidates** ' if doubt.invalidates else ''}{_escaped(doubt_text(doubt))}"
        for doubt in result.doubts
    ]
    return ["## What speaks against it", "\n".join(lines)]


def _table(table: Table) -> list[str]:
    words = [is_words(table, index) for index in range(len(table.columns))]
    lines = [
        _row(head(column) for column in table.columns),
        _row((":--" if word else "--:" for word in words), escape=False),
        *(_row(row) for row in rows_text(table)),
    ]
    parts = [f"## {_escaped(table.title)}", "\n".join(lines)]
    parts += [_escaped(table.note)] if table.note else []
    missing = absences(table)
    return [*parts, "\n".join(f"- {_escaped(reason)}" for reason in missing)]


def _row(cells: Iterable[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(_escaped(cell) if escape else cell for cell in cells)} |"


def _excerpts(excerpts: Sequence[str]) -> list[str]:
    if not excerpts:
        return []
    return ["## Excerpts of the probes", *(_fenced(excerpt_lines(text)) for text in excerpts)]


def _notes(run: Run) -> list[str]:
    if not run.notes:
        return []
    lines = [f"- {_escaped(moment(note.at))}: {_escaped(note.text)}" for note in run.notes]
    return ["## Notes", "\n".join(lines)]


def _environment(run: Run) -> str:
    if isinstance(run.environment, RunEnvironment):
        return _facts(environment_facts(run.environment))
    return f"{DASH} {_escaped(run.environment.reason)}"


def _facts(facts: Iterable[Fact]) -> str:
    rows = [_row((name, value)) for name, value in facts]
    return "\n".join(["| setting | value |", "| :-- | :-- |", *rows])


def _fenced(lines: Sequence[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *lines, fence])


def _escaped(text: str) -> str:
    """A text that means nothing to Markdown."""
    marked = _MARKUP.sub(lambda found: f"\\{found[0]}", visible(text))
    return _NUMBERED.sub(r"\1\\\2", marked)
