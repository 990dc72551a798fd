"""Plots, tables and words of runs: nothing wider than its room, nothing lost, nothing invented."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.figures import Estimated, Missing
from a40console.model.plot_scale import value_scale
from a40console.model.run import Run
from a40console.model.run_result import Column, Plot, Point, Series, Table
from a40console.tui.glyphs import to_ascii
from a40console.tui.ink import Line, Role, width_of
from a40console.tui.panels import result_table, run_list, run_plot, run_text
from a40console.tui.panels.run_compare import compared
from a40console.tui.plot_axes import beside, tick
from a40console.tui.run_watch import RunWatch
from tests import make_runs as make
from tests.tui.fake_runs import comparison, records

FIGURES = st.floats(0, 1e6, allow_nan=False)
POINTS = st.builds(
    lambda x, y, spread: Point(x=x, y=y, low=y * (1 - spread), high=y * (1 + spread)),
    st.floats(0, 1000),
    FIGURES,
    st.floats(0, 1),
)
PLOTS = st.builds(
    lambda names, points, style: Plot(
        title="t",
        x_label="x",
        y_label="y",
        style=style,
        series=tuple(Series(name=name, points=tuple(points)) for name in names),
    ),
    st.lists(st.sampled_from(["none", "cc-auto", "a very long name of an arm"]), min_size=1),
    st.lists(POINTS, max_size=30),
    st.sampled_from(["line", "steps", "bars"]),
)


def plain(lines: list[Line] | tuple[Line, ...]) -> str:
    return "\n".join("".join(span.text for span in row) for row in lines)


# --- Plots ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(PLOTS, st.integers(20, 200), st.integers(3, 30))
def test_a_plot_fits_its_room(plot: Plot, width: int, height: int) -> None:
    lines = run_plot.plotted(plot, width, height)
    assert len(lines) <= height
    for row in lines:
        assert width_of(row) <= width, plain([row])


def curve(name: str, *values: float) -> Series:
    return Series(name=name, points=tuple(Point(x=at, y=y) for at, y in enumerate(values)))


def test_a_higher_value_is_drawn_higher() -> None:
    plot = Plot(title="", x_label="", y_label="", series=(curve("up", *range(1, 41)),))
    rows = plain(run_plot.plotted(plot, 50, 12)).splitlines()[:-2]
    inked = [
        (len(row) - len(row.rstrip()), y)
        for y, row in enumerate(rows)
        if re.search("[\u2801-\u28ff]", row)
    ]
    rights = [
        max(at for at, c in enumerate(rows[y]) if "\u2801" <= c <= "\u28ff") for _, y in inked
    ]
    assert rights == sorted(rights, reverse=True)


def test_curves_are_told_apart_without_colour_and_in_ascii() -> None:
    plot = Plot(
        title="",
        x_label="",
        y_label="",
        series=(curve("low", *[2.0] * 30), curve("high", *[9.0] * 30)),
    )
    text = plain(run_plot.plotted(plot, 80, 10))
    assert to_ascii(text).isascii()
    high, low = (
        next(row for row in to_ascii(text).splitlines() if row.endswith(name))
        for name in ("b high", "a low")
    )
    assert re.search(r"[-_.']b[-_.']", high)
    assert re.search(r"[-_.']a[-_.']", low)


def test_bars_show_value_and_interval_each_below_the_other() -> None:
    bars = tuple(
        Series(name=name, points=(Point(x=0, y=y, low=low, high=high),))
        for name, y, low, high in (("a", 348.0, 336.4, 362.5), ("b", 50.0, 40.0, 60.0))
    )
    plot = Plot(title="", x_label="", y_label="s", style="bars", series=bars)
    first, second = plain(run_plot.plotted(plot, 60, 4)).splitlines()
    assert first.endswith("348  [336, 362]")
    assert second.endswith(" 50  [ 40,  60]")
    assert re.search("▇+┃─+", first)


def test_values_that_double_are_written_at_equal_distances_under_their_places() -> None:
    sweep = Series(name="s", points=tuple(Point(x=2**n, y=n) for n in range(6)))
    plot = Plot(title="", x_label="", y_label="", series=(sweep,))
    axis = plain(run_plot.plotted(plot, 80, 9)).splitlines()[-1]
    assert axis.split() == ["1", "2", "4", "8", "16", "32"]
    places = [axis.index(f" {value}") for value in (2, 4, 8)]
    assert places[2] - places[1] == pytest.approx(places[1] - places[0], abs=1)


@pytest.mark.parametrize(
    ("value", "told"), [(0.25, "0.25"), (9_000, "9,000"), (12_500, "12.5k"), (2_500_000, "2.5M")]
)
def test_a_value_at_an_axis_is_short_and_exact(value: float, told: str) -> None:
    assert tick(value) == told


@given(st.lists(FIGURES, min_size=1, max_size=9), st.integers(1, 40))
def test_the_axis_up_begins_at_nothing_and_writes_no_value_outside(
    values: list[float], rows: int
) -> None:
    labels = beside(value_scale(values, rows * 4 - 1, 0), rows)
    assert labels[rows - 1] == "0" or rows == 1
    assert set(labels) <= set(range(rows))


# --- Tables and words -----------------------------------------------------------------------


def test_a_cell_says_what_it_is() -> None:
    table = Table(
        title="",
        columns=(Column(title="a", digits=2), Column(title="b"), Column(title="c")),
        rows=((Estimated(1.5), Missing("no usage"), "exact"),),
    )
    text = plain(result_table.table_lines(table, 80))
    assert re.search(r"≈1.50 +– +exact", text)
    assert "– b: no usage" in text


def test_a_run_that_found_no_plot_shows_its_tables_at_once() -> None:
    run = make.run()
    assert not isinstance(run.result, Missing)
    told = replace(run, result=replace(run.result, plots=()))
    watch = RunWatch(run.id)
    watch.take(records())
    text = plain(run_text.detail(told, watch, Size(79, 15), 0))
    assert "Time of each request" not in text
    assert text.index(run.result.tables[0].title) < text.index("Setting")


@pytest.mark.parametrize(("state", "width"), [("invalid", 79), ("invalid", 199), ("failed", 119)])
def test_no_figure_of_a_run_that_is_not_to_be_believed_is_shown(state: str, width: int) -> None:
    run = replace(make.run(), state=state, reason="the client was saturated")  # type: ignore[arg-type]
    watch = RunWatch(run.id)
    watch.take(records())
    for each in (run, replace(run, result=Missing("it was killed"))):
        text = plain(run_text.detail(each, watch, Size(width, 40), 0))
        assert f"{state.upper()}: the client was saturated" in text
        assert not run_text.plots_of(each, watch, 0)
        assert not re.search("360 s|528|1.47|Seconds a turn|TTFT|CLAUDE_CODE", text)


@pytest.mark.parametrize("run", make.several(), ids=lambda run: run.id)
@pytest.mark.parametrize("width", [79, 119, 199])
def test_no_line_of_a_run_is_wider_than_its_room(run: Run, width: int) -> None:
    watch = RunWatch(run.id)
    watch.take(records())
    lines = run_text.detail(run, watch, Size(width, 20), 0)
    lines += compared(comparison(run.id, run.id), run, run, Size(width, 20))
    lines.append(run_list.row(run, width, here=True, focused=True, marked=True, today=""))
    for row in lines:
        assert width_of(row) <= width, plain([row])


def test_text_from_a_run_cannot_move_the_cursor() -> None:
    nasty = replace(make.run(), reason="\x1b[2Jgone\x07", state="failed")
    text = plain(run_text.detail(nasty, None, Size(80, 20), 0))
    assert "gone" in text
    assert not re.search("[\x1b\x07]", text)


def test_a_ratio_within_noise_is_not_emphasised() -> None:
    lines = compared(comparison("a", "b"), None, None, Size(120, 20))
    roles = {
        "".join(span.text for span in row).split()[0]: row
        for row in lines
        if "wall s" in plain([row])
    }
    assert any(span.role is Role.STRONG for span in roles["block"])
    assert not any(span.role is Role.STRONG for span in roles["cc-auto"])


def test_every_bar_is_shown_and_the_curves_have_the_rows_that_bars_leave() -> None:
    run = make.run()
    lines = plain(run_text.detail(run, None, Size(199, 40), 0)).splitlines()
    (bars,) = (at for at, row in enumerate(lines) if row.startswith("Wall seconds"))
    assert bars == 40 - len(make.ARMS) - 2
    assert all(f"  {arm} " in lines[bars + 1 + at] for at, arm in enumerate(make.ARMS))


def test_figures_and_differences_of_two_runs_stand_before_the_runs() -> None:
    run = make.run()
    told = plain(compared(comparison(run.id, run.id), run, run, Size(79, 20)))
    assert "wall s" in told
    assert told.index("right ÷ left") < told.index("differs in") < told.index("left  compaction")


# --- What records come to -------------------------------------------------------------------


def test_warm_up_is_left_out_and_errors_are_in_no_mean() -> None:
    watch = RunWatch("r")
    assert watch.take(records())
    clear = watch.arms[1]
    assert (clear.requests, clear.errors) == (38, 1)
    first = watch.plot(0).series[0].points[0]
    assert first.x == 2
    assert len(watch.plot(0).series[1].points) == 37


def test_repeats_are_drawn_as_their_mean() -> None:
    watch = RunWatch("r")
    samples = [record for record in records() if record.kind == "sample" and record.index == 5]
    first = samples[0]
    watch.take([first, replace(first, repeat=1, total_s=(first.total_s or 0) + 2)])  # type: ignore[operator]
    (point,) = watch.plot(0).series[0].points
    assert point.y == pytest.approx(first.total_s + 1)  # type: ignore[operator]


def test_a_long_run_keeps_a_bounded_number_of_points() -> None:
    watch = RunWatch("r")
    first = next(record for record in records() if record.kind == "sample")
    watch.take(replace(first, index=n, warm_up=False, total_s=float(n)) for n in range(5000))
    points = watch.plot(0).series[0].points
    assert 300 <= len(points) <= 600
    assert points[0].x == 0
    assert points[-1].x > 4900
    assert [point.y for point in points] == sorted(point.y for point in points)


def test_a_plot_is_made_once_until_something_comes() -> None:
    watch = RunWatch("r")
    watch.take(records())
    assert watch.plot(0) is watch.plot(0)
    assert not watch.take([])
