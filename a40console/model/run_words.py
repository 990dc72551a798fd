"""What runs and their tables are called in text, wherever they are shown: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.run import Run, RunEnvironment, RunProgress
from a40console.model.run_result import (
    Cell,
    Column,
    Doubt,
    Interval,
    RunResult,
    Table,
    Verdict,
    VerdictKind,
)

DASH = "–"
ESTIMATE = "≈"

SIMULATED = "SIMULATED"
REFERENCE = "REFERENCE"

MARKS = {
    SIMULATED: "measured on the simulated engine, which is no measurement of any machine",
    REFERENCE: "written down elsewhere and imported, not measured by this console",
    "INVALID": "no figure of it may be believed",
    "PARTIAL": "it was ended before it was through; what was measured till then stands",
    "FAILED": "it measured nothing usable",
    "NOT BEGUN": "it was taken out of the queue, and nothing was measured",
}
"""What must be seen before any figure of a run, and what it means."""

NOT_TOLD_WHERE_INVALID = "What it measured is told only to programs, in its JSON and its requests."

_MOST_NAMES = 4
_MOST_DIGITS = 9
"""Whatever a document from elsewhere says."""

_STATES = {"invalid": "INVALID", "partial": "PARTIAL", "failed": "FAILED"}

VERDICTS: dict[VerdictKind, str] = {
    "difference": "Verdict",
    "no difference": "No difference beyond noise",
    "passed": "Passed",
    "failed": "Failed",
    "none": "No verdict",
}


_FIGURES = {
    "wall_s": "wall s",
    "generated_tok_per_s": "generated tok/s",
    "ttft_s": "TTFT s",
    "request_s": "request s",
    "gap_s": "gap s",
    "usd": "cost $",
}


def figure_name(figure: str) -> str:
    """What two runs are compared in, as a column is titled: its name with its unit."""
    return _FIGURES.get(figure, figure)


def marks(run: Run) -> tuple[str, ...]:
    """The marks of a run, the gravest first: keys of `MARKS`."""
    found = [SIMULATED] if is_simulated(run) else []
    found += [REFERENCE] if run.reference else []
    if never_began(run):
        found += ["NOT BEGUN"]
    elif run.state in _STATES:
        found += [_STATES[run.state]]
    return tuple(found)


def never_began(run: Run) -> bool:
    """Whether it has ended before anything of it was carried out."""
    return run.state == "failed" and isinstance(run.started_at, Missing)


def is_simulated(run: Run) -> bool:
    """Whether the engine was a simulation; of a run that has not started nobody knows yet."""
    return isinstance(run.environment, RunEnvironment) and run.environment.simulated


def headline(run: Run) -> str:
    """One line: what it found, else how far it is, else why there is nothing."""
    if isinstance(run.result, RunResult) and run.state not in {"failed", "invalid"}:
        return run.result.headline
    if run.reason:
        return run.reason
    if run.state == "queued":
        return (
            "waits until no client is active" if run.spec.when == "idle" else "waits for its turn"
        )
    if run.state == "running":
        return _far(run.progress)
    return run.result.reason if isinstance(run.result, Missing) else "it is not to be believed"


def _far(progress: RunProgress | Missing) -> str:
    """How far a run is that runs."""
    if isinstance(progress, Missing):
        return "begins"
    share = f"{progress.done / progress.total * 100:.0f} %, " if progress.total else ""
    where = f"{progress.arm}, {progress.text}" if progress.arm else progress.text
    return f"{share}{where}"


def head(column: Column) -> str:
    """A column's title with its unit, where the title does not name it."""
    names_it = column.unit in column.title.split() or column.title.startswith(f"{column.unit}/")
    if not column.unit or names_it:
        return column.title
    return f"{column.title} {column.unit}".strip()


def figure_text(figure: Figure, digits: int) -> str:
    """A figure with so many decimals, counts with none; what is nearly nothing is no 0."""
    match figure:
        case Missing():
            return DASH
        case Estimated(value):
            return ESTIMATE + _number(value, digits)
        case _:
            return _number(figure, digits)


def _number(value: float, digits: int) -> str:
    digits = min(max(digits, 0), _MOST_DIGITS)
    if not isfinite(value):
        return DASH
    if isinstance(value, int):
        return f"{value:,}"
    least = 10.0**-digits
    if value and abs(value) < least / 2:
        return f"<{least:.{digits}f}" if value > 0 else f">-{least:.{digits}f}"
    return f"{value:,.{digits}f}"


def rows_text(table: Table) -> list[list[str]]:
    """The cells as text; a row that is too short or long for the columns is made to fit."""
    count = len(table.columns)
    padded = [[*row[:count], *[""] * (count - len(row))] for row in table.rows]
    return [
        [_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]
        for row in padded
    ]


def _cell(cell: Cell, column: Column) -> str:
    return cell if isinstance(cell, str) else figure_text(cell, column.digits)


def is_words(table: Table, index: int) -> bool:
    """Whether a column holds words, which are set flush left."""
    return any(isinstance(row[index], str) for row in table.rows if index < len(row))


def absences(table: Table) -> tuple[str, ...]:
    """Why cells are missing, a sentence a reason, with the columns and rows that it is about."""
    found: dict[str, dict[str, list[str]]] = {}
    for at, column in enumerate(table.columns):
        for row in table.rows:
            cell = row[at] if at < len(row) else ""
            if isinstance(cell, Missing):
                found.setdefault(cell.reason, {}).setdefault(column.title, []).append(
                    _row_name(row)
                )
    return tuple(
        f"{DASH} {_places(where, len(table.rows))}: {visible(reason)}"
        for reason, where in found.items()
    )


def _row_name(row: Sequence[Cell]) -> str:
    words = [cell for cell in row[:2] if isinstance(cell, str)]
    if words:
        return " / ".join(words)
    return figure_text(row[0], 0) if row and not isinstance(row[0], str) else ""


def _places(where: Mapping[str, Sequence[str]], rows: int) -> str:
    """Columns with the rows that are meant, where they are not all."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for column, names in where.items():
        columns.setdefault(tuple(names), []).append(column)
    told = []
    for names, titles in columns.items():
        which = ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} rows"
        everywhere = len(names) == rows or not any(names)
        told.append(", ".join(titles) if everywhere else f"{', '.join(titles)} ({which})")
    return "; ".join(told)


def interval_text(interval: Interval | Missing, *, digits: int = 2) -> str:
    """A ratio with its bounds: `1.47 × [1.41, 1.52], 95 %, 3 repeats`."""
    if isinstance(interval, Missing):
        return f"{DASH} {interval.reason}"
    repeats = f"{interval.repeats} repeat{'' if interval.repeats == 1 else 's'}"
    confidence = f"{interval.confidence * 100:.0f} %"
    return f"{ratio_text(interval, digits=digits)}, {confidence}, {repeats}"


def ratio_text(interval: Interval, *, digits: int = 2) -> str:
    """The same within a sentence: `1.47 × [1.41, 1.52]`."""
    bounds = f"{interval.low:,.{digits}f}, {interval.high:,.{digits}f}"
    return f"{interval.value:,.{digits}f} × [{bounds}]"


def verdict_text(verdict: Verdict) -> tuple[str, str]:
    """The word before a verdict, and its text without that word."""
    word = VERDICTS[verdict.kind]
    text = verdict.text
    if text.lower().startswith(word.lower()):
        text = text[len(word) :].lstrip(" :,.–")
    return word, text


def doubt_text(doubt: Doubt) -> str:
    """A doubt with the arm that it is about."""
    where = f" ({doubt.arm})" if doubt.arm else ""
    return f"{doubt.code}{where}: {doubt.text}"


def excerpt_lines(excerpt: str) -> list[str]:
    """The lines of a probe's text; what could not be seen in them stands as escapes."""
    return [visible(line) for line in excerpt.replace("\r\n", "\n").split("\n")]


def visible(text: str) -> str:
    """A text from elsewhere on one line, with escapes for all that could not be seen in it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
