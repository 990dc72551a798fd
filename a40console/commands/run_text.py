"""One run in full, runs in a list, and two runs side by side, as lines for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from a40console.ledger.report_counts import count_tables
from a40console.model.run import Run, RunEnvironment
from a40console.model.run_facts import Fact, environment_facts, in_order, moment, run_facts, title
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Plot, RunResult
from a40console.model.run_words import (
    DASH,
    MARKS,
    NOT_TOLD_WHERE_INVALID,
    REFERENCE,
    excerpt_lines,
    headline,
    marks,
    visible,
)
from a40console.tui.ink import Line, Role, Span, line, wrap
from a40console.tui.panels.result_table import broken, table_lines
from a40console.tui.panels.run_found import doubt_lines, verdict_lines
from a40console.tui.panels.run_plot import heading, plotted
from a40console.tui.panels.run_words import STATES

PLOT_ROWS = 14
_LONGEST_FACT = 30
_STATE = 8
_LEAST_FOUND = 20


def listing(runs: Sequence[Run], width: int) -> list[Line]:
    """One row a run, with what it found; what is longer goes on below."""
    longest = max((len(visible(run.id)) for run in runs), default=0)
    begin = _STATE + longest + 3
    room = max(_LEAST_FOUND, width - begin)
    lines = [line(Span(f"{'state':<{_STATE}} {'run':<{longest}}  found", Role.MUTED))]
    for run in in_order(runs):
        told = ", ".join(mark for mark in marks(run) if mark.lower() != run.state)
        found = wrap(f"{told}: {headline(run)}" if told else headline(run), room) or [()]
        head = line(
            Span(f"{run.state:<{_STATE}} ", STATES[run.state][1]),
            Span(f"{visible(run.id):<{longest}}  ", Role.STRONG),
        )
        for number, part in enumerate(found):
            lines.append(line(head if number == 0 else " " * begin, part))
    return lines


def conclusion(run: Run, width: int) -> list[Line]:
    """What a run that has just ended found, and where the rest is."""
    more = f"a40console runs show {run.id} tells how it was asked and where it was made."
    return [*_found(run, width), (), *wrap(more, width, Role.MUTED)]


def full(
    run: Run, width: int, *, arm_ends: Sequence[ArmEnd] = (), samples: Sequence[Sample] = ()
) -> list[Line]:
    """The run: what must be known first, what it found, how and where it was made."""
    lines = _found(run, width)
    if run.notes:
        lines += [(), line(Span("Notes", Role.TITLE))]
        for note in run.notes:
            lines += wrap(f"{moment(note.at)}: {note.text}", width, indent=2)
    for table in count_tables(arm_ends, samples, differing=True):
        lines += [(), *table_lines(table, width)]
    lines += [(), line(Span("How it was asked", Role.TITLE))]
    lines += fact_lines(run_facts(run, arm_ends), width)
    lines += [(), line(Span("Where it was made", Role.TITLE))]
    if isinstance(run.environment, RunEnvironment):
        return [*lines, *fact_lines(environment_facts(run.environment), width)]
    return [*lines, line(f"{DASH} {visible(run.environment.reason)}")]


def _found(run: Run, width: int) -> list[Line]:
    """Its title, its marks, and what it found."""
    lines = [line(Span(title(run), Role.TITLE))]
    for mark in marks(run):
        role = Role.WARN if mark == REFERENCE else Role.BAD
        lines += wrap(f"{mark}: {MARKS[mark]}", width, role, indent=2)
    lines += wrap(headline(run), width, Role.STRONG)
    if isinstance(run.result, RunResult):
        lines += _result(run.result, width, stands=run.state != "invalid")
    return lines


def _result(result: RunResult, width: int, *, stands: bool) -> list[Line]:
    """What it found; of a run that is not to be believed, only what speaks against it."""
    if not stands:
        return [
            *wrap(NOT_TOLD_WHERE_INVALID, width, Role.MUTED),
            *doubt_lines(result.doubts, width),
        ]
    verdict = result.verdict
    lines = verdict_lines(verdict, width)
    pasted = excerpt_lines(verdict.paste) if verdict.paste else ()
    lines += [line("    ", Span(row, Role.KEY)) for row in pasted]
    lines += doubt_lines(result.doubts, width)
    for table in result.tables:
        lines += [(), *table_lines(table, width, winner=verdict.winner)]
    for plot in result.plots:
        lines += [(), *plot_lines(plot, width)]
    if result.excerpts:
        lines += [(), line(Span("Excerpts of the probes", Role.TITLE))]
        for excerpt in result.excerpts:
            lines += [line(Span("│ ", Role.RULE), row) for row in excerpt_lines(excerpt)]
    return lines


def plot_lines(plot: Plot, width: int) -> list[Line]:
    """A plot under its heading."""
    return [heading(plot, width), *plotted(plot, width, PLOT_ROWS)]


def fact_lines(facts: Iterable[Fact], width: int) -> list[Line]:
    """Names with what is known of each, which is never cut."""
    lines: list[Line] = []
    told = tuple(facts)
    longest = min(_LONGEST_FACT, max((len(name) for name, _ in told), default=0))
    for name, value in told:
        label = f"{name:<{longest}}  "
        for number, row in enumerate(broken(value, width - len(label))):
            lines.append(line(Span(label if number == 0 else " " * len(label), Role.MUTED), row))
    return lines
