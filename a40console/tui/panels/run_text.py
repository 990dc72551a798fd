"""One run in full, laid out for a window: its plots, and beside or between them the words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from a40console.model.run import Run
from a40console.model.run_result import Plot, RunResult
from a40console.tui.ink import EMPTY, Line, fit, line, pad
from a40console.tui.panels import run_parts, run_plot
from a40console.tui.run_watch import RunWatch

TWO_COLUMNS = 140
"""Cells from which on the plots stand beside the words."""

GAP = 3
_LEAST_ROWS, _MOST_ROWS = 7, 16
"""Of a plot."""


def detail(run: Run, watch: RunWatch | None, size: Size, choice: int) -> list[Line]:
    """The run for a window of that size; it may be longer.

    Args:
        run: As the service last told it.
        watch: What its records have told since, where they are followed.
        size: Of the window.
        choice: Which plot comes first, or which measure is drawn while it runs.
    """
    plots = plots_of(run, watch, choice)
    if size.width < TWO_COLUMNS or not plots:
        return _one_below_the_other(run, watch, size, plots)
    left = (size.width - GAP) * 11 // 20
    right = size.width - GAP - left
    words = [
        *run_parts.first(run, watch, right),
        *run_parts.apart(run_parts.measured(run, watch, right)),
        *run_parts.apart(run_parts.setting(run, right)),
    ]
    return side_by_side(_stacked(plots, left, size.height), words, left)


def plots_of(run: Run, watch: RunWatch | None, choice: int) -> list[Plot]:
    """What is drawn, the chosen one first; nothing where no figure of it is to be believed."""
    if run.state in {"failed", "invalid"}:
        return []
    if isinstance(run.result, RunResult):
        plots = run.result.plots
        at = choice % max(1, len(plots))
        return [*plots[at:], *plots[:at]]
    return [watch.plot(choice)] if watch is not None and watch.arms else []


def _one_below_the_other(
    run: Run, watch: RunWatch | None, size: Size, plots: Sequence[Plot]
) -> list[Line]:
    width = size.width
    lines = run_parts.first(run, watch, width)
    if plots:
        rows = max(_LEAST_ROWS, min(_MOST_ROWS, size.height - len(lines) - 2))
        lines += run_parts.apart(plot_lines(plots[0], width, rows))
    lines += run_parts.apart(run_parts.measured(run, watch, width))
    for plot in plots[1:]:
        lines += run_parts.apart(plot_lines(plot, width, _MOST_ROWS))
    return [*lines, *run_parts.apart(run_parts.setting(run, width))]


def _stacked(plots: Sequence[Plot], width: int, height: int) -> list[Line]:
    """As many plots as the window's height gives room to, and the others below."""
    at_once = max(1, min(len(plots), height // (_LEAST_ROWS + 4)))
    bars = [run_plot.rows_of(plot, 0) for plot in plots[:at_once]]
    curves = max(1, bars.count(0))
    rows = max(_LEAST_ROWS, (height - 2 * at_once - sum(bars)) // curves)
    lines: list[Line] = []
    for index, plot in enumerate(plots):
        lines += plot_lines(plot, width, rows if index < at_once else _MOST_ROWS)
        lines.append(EMPTY)
    return lines


def plot_lines(plot: Plot, width: int, rows: int) -> list[Line]:
    """A plot under its heading; of bars, all."""
    drawn = run_plot.plotted(plot, width, run_plot.rows_of(plot, rows))
    return [fit(run_plot.heading(plot, width), width), *drawn]


def side_by_side(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line]:
    """Two columns, the left one of that width."""
    rows = max(len(left), len(right))
    filled = ([*side, *[EMPTY] * (rows - len(side))] for side in (left, right))
    return [line(pad(a, width), " " * GAP, b) for a, b in zip(*filled, strict=True)]
