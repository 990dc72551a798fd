"""Plots, tables and words of runs: nothing wider than its room, nothing lost, nothing invented."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.figures import Estimated, Missing
from a40console.model.run import Run
from a40console.model.run_result import Column, Plot, Point, Series, Table
from a40console.tui.glyphs import to_ascii
from a40console.tui.ink import Line, Role, width_of
from a40console.tui.panels import result_table, run_list, run_plot, run_text
from a40console.tui.panels.run_compare import compared
from a40console.tui.plot_axes import across, up, written
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


def test_bars_show_value_and_interval() -> None:
    point = Point(x=0, y=50.0, low=40.0, high=60.0)
    plot = Plot(
        title="", x_label="", y_label="s", style="bars", series=(Series(name="b", points=(point,)),)
    )
    text = plain(run_plot.plotted(plot, 60, 4))
    assert "50  40–60" in text
    assert re.search("▇+─+┃─+", text)


def test_doubling_values_stand_at_equal_distances() -> None:
    axis = across([1, 2, 4, 8, 16, 32], 101)
    assert [axis.place(x) for x in (1, 2, 4, 8, 16, 32)] == [0, 20, 40, 60, 80, 100]
    assert written(axis, [1, 2, 4, 8, 16, 32], 50).split() == ["1", "2", "4", "8", "16", "32"]


@given(st.floats(0, 1e9), st.integers(4, 200))
def test_the_axis_up_holds_its_highest_value(highest: float, dots: int) -> None:
    axis = up(highest, dots)
    assert 0 <= axis.place(highest) < dots
    assert axis.place(0) == dots - 1
    assert axis.labels(max(1, dots // 4))


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
        if "wall_s" in plain([row])
    }
    assert any(span.role is Role.STRONG for span in roles["block"])
    assert not any(span.role is Role.STRONG for span in roles["cc-auto"])


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
