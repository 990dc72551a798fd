"""A run as one HTML page: no script at all, and no style or picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path

from a40console.ledger.plot_svg import plot_figure
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
from a40console.model.run_result import RunResult, Table, Verdict, VerdictKind
from a40console.model.run_words import (
    DASH,
    MARKS,
    NOT_TOLD_WHERE_INVALID,
    REFERENCE,
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

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page may load nothing, whatever a name in it looks like."""

_TONES: dict[VerdictKind, str] = {"passed": "good", "failed": "bad", "none": "warn"}


def html(run: Run, arm_ends: Sequence[ArmEnd] = (), samples: Sequence[Sample] = ()) -> str:
    """The report of a run as a page.

    Args:
        run: The run, whole.
        arm_ends: What was counted around its arms, where that is at hand.
        samples: Its requests, likewise; they are counted, not listed.
    """
    parts = [f"<h1>{_text(title(run))}</h1>", _marks(run)]
    parts.append(f'<p class="headline">{_text(headline(run))}</p>')
    if isinstance(run.result, RunResult):
        parts += _result(run.result, stands=run.state != "invalid")
    parts.append(_notes(run))
    parts += [_table(table) for table in count_tables(arm_ends, samples)]
    parts.append(f"<h2>How it was asked</h2>{_facts(run_facts(run, arm_ends))}")
    parts.append(f"<h2>Where it was made</h2>{_environment(run)}")
    said = ", ".join((*marks(run), title(run)))
    return _page(said, "\n".join(part for part in parts if part))


def _result(result: RunResult, *, stands: bool) -> list[str]:
    """What it found; of a run that is not to be believed, only what speaks against it."""
    if not stands:
        return [f'<p class="note">{_text(NOT_TOLD_WHERE_INVALID)}</p>', _doubts(result)]
    return [
        _verdict(result.verdict),
        _doubts(result),
        *(plot_figure(plot) for plot in result.plots),
        *(_table(table, result.verdict.winner) for table in result.tables),
        _excerpts(result.excerpts),
    ]


def _page(name: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{_text(name)}</title>
<style>
{_sheet()}</style>
</head>
<body>
{body}
</body>
</html>
"""


@lru_cache(1)
def _sheet() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def _marks(run: Run) -> str:
    lines = [
        f'<p class="{"warn" if mark == REFERENCE else "bad"}"><span class="mark">{mark}</span>'
        f" {_text(MARKS[mark])}.</p>"
        for mark in marks(run)
    ]
    return f'<div class="marks">{"".join(lines)}</div>' if lines else ""


def _verdict(verdict: Verdict) -> str:
    tone, (word, text) = _TONES.get(verdict.kind, ""), verdict_text(verdict)
    parts = [f'<p><strong class="{tone}">{word}</strong>: {_text(text)}</p>']
    if not isinstance(verdict.ratio, Missing):
        parts.append(f"<p>Ratio: {_text(interval_text(verdict.ratio))}.</p>")
    if verdict.paste:
        parts.append(f"<p>To have it, paste:</p>{_pre(verdict.paste)}")
    return f'<div class="verdict">{"".join(parts)}</div>'


def _doubts(result: RunResult) -> str:
    if not result.doubts:
        return ""
    lines = [
        f'<li class="{"bad" if doubt.invalidates else "warn"}">'
        f"{'invalidates: ' if doubt.invalidates else ''}{_text(doubt_text(doubt))}</li>"
        for doubt in result.doubts
    ]
    return f"<h2>What speaks against it</h2><ul>{''.join(lines)}</ul>"


def _table(table: Table, winner: str = "") -> str:
    kinds = [
        ' class="word"' if is_words(table, index) else "" for index in range(len(table.columns))
    ]
    heads = "".join(
        f'<th scope="col"{kind}>{_text(head(column))}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    rows = []
    for row in rows_text(table):
        cells = "".join(
            f"<td{kind}>{_text(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)
        )
        won = ' class="won"' if winner and row and row[0] == winner else ""
        rows.append(f"<tr{won}>{cells}</tr>")
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<h2>{_text(table.title)}</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}{_absences(absences(table))}"
    )


def _absences(reasons: Sequence[str]) -> str:
    items = "".join(f"<li>{_text(reason)}</li>" for reason in reasons)
    return f'<ul class="missing">{items}</ul>' if items else ""


def _excerpts(excerpts: Sequence[str]) -> str:
    if not excerpts:
        return ""
    return f"<h2>Excerpts of the probes</h2>{''.join(map(_pre, excerpts))}"


def _notes(run: Run) -> str:
    if not run.notes:
        return ""
    items = "".join(f"<li>{_text(moment(each.at))}: {_text(each.text)}</li>" for each in run.notes)
    return f"<h2>Notes</h2><ul>{items}</ul>"


def _environment(run: Run) -> str:
    if isinstance(run.environment, RunEnvironment):
        return _facts(environment_facts(run.environment))
    return f"<p>{DASH} {_text(run.environment.reason)}</p>"


def _facts(facts: Iterable[Fact]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
        for name, value in facts
    )
    return f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'


def _pre(text: str) -> str:
    return f"<pre>{escape(chr(10).join(excerpt_lines(text)))}</pre>"


def _text(text: str) -> str:
    return escape(visible(text))
