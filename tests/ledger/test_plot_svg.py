"""Plots as SVG: what is drawn lies in the picture, and tells the figures that it was given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.ledger.plot_frame import WIDTH
from a40console.ledger.plot_svg import plot_figure
from a40console.model.run_result import Plot, Point, Series
from tests import make_runs as make

FIGURES = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-9)


@st.composite
def points(draw: st.DrawFn) -> Point:
    y = draw(FIGURES)
    spread = draw(st.none() | st.floats(0, 1e6))
    low, high = (None, None) if spread is None else (y - spread, y + spread)
    return Point(x=draw(FIGURES), y=y, low=low, high=high)


PLOTS = st.builds(
    Plot,
    title=st.text(max_size=10),
    x_label=st.text(max_size=10),
    y_label=st.text(max_size=10),
    series=st.lists(
        st.builds(
            Series, name=st.text(max_size=40), points=st.lists(points(), max_size=5).map(tuple)
        ),
        max_size=10,
    ).map(tuple),
    style=st.sampled_from(["line", "steps", "bars"]),
)


def drawing(plot: Plot) -> ElementTree.Element:
    """The figure, read as XML."""
    return ElementTree.fromstring(plot_figure(plot))


@settings(max_examples=150, deadline=None)
@given(PLOTS)
def test_any_plot_is_drawn_within_its_picture(plot: Plot) -> None:
    figure = drawing(plot)
    picture = figure.find("svg")
    if picture is None:
        assert not any(series.points for series in plot.series)
        return
    height = float(picture.attrib["viewBox"].split()[3])
    for tag, names, most in (
        ("circle", ("cx",), WIDTH),
        ("rect", ("x", "width"), WIDTH),
        ("circle", ("cy",), height),
        ("rect", ("y", "height"), height),
    ):
        for shape in picture.iter(tag):
            values = [float(shape.attrib[name]) for name in names]
            assert all(-0.1 <= value <= most + 0.1 for value in values)
            assert sum(values) <= most + 0.2
    assert "nan" not in plot_figure(plot).split("<figcaption>")[0]


def test_a_curve_has_axes_intervals_and_figures() -> None:
    sweep = make.sweep_result().plots[0]
    figure = drawing(sweep)
    written = ["".join(text.itertext()) for text in figure.iter("text")]
    assert {"1", "2", "4", "8", "16", "32", "0", "1,000", "tok/s"} <= set(written)
    assert "streams (logarithmic)" in written
    assert next(title.text for title in figure.iter("title")) == "1: 77.6 [75.27, 79.93]"
    whiskers = [path for path in figure.iter("path") if path.get("class") == "whisker"]
    assert len(whiskers) == 6
    assert figure.find("ul") is None


def test_several_curves_have_a_legend_and_are_told_apart_without_colour() -> None:
    turns = make.compaction_result().plots[0]
    text = plot_figure(turns)
    figure = drawing(turns)
    legend = figure.find("ul")
    assert legend is not None
    assert ["".join(item.itertext()) for item in legend] == list(make.ARMS)
    assert len(set(re.findall(r'<g class="(s\d)"', text))) == len(make.ARMS)
    assert "<circle" not in text.split("<ul")[0]


def test_dense_intervals_are_a_band() -> None:
    dense = tuple(Point(x=at, y=1.0 + at, low=at, high=at + 2.0) for at in range(80))
    plot = Plot(title="t", x_label="x", y_label="y", series=(Series(name="a", points=dense),))
    assert 'class="band"' in plot_figure(plot)
    assert 'class="whisker"' not in plot_figure(plot)


def test_one_value_an_arm_is_a_row_with_its_name_and_value() -> None:
    figure = drawing(make.compaction_result().plots[1])
    written = ["".join(text.itertext()) for text in figure.iter("text")]
    assert {"none", "block", "348", "528"} <= set(written)
    widths = [float(bar.attrib["width"]) for bar in figure.iterfind("./svg//rect")]
    assert len(widths) == 5
    assert widths[3] / widths[0] == pytest.approx(528 / 348, rel=0.01)


def test_several_values_an_arm_are_groups_side_by_side() -> None:
    series = tuple(
        Series(name=name, points=(Point(x=1, y=2.0), Point(x=4, y=3.0, low=2.5, high=3.5)))
        for name in ("off", "on")
    )
    plot = Plot(title="t", x_label="streams", y_label="tok/s", series=series, style="bars")
    figure = drawing(plot)
    places = [float(bar.attrib["x"]) for bar in figure.iterfind("./svg//rect")]
    assert len(set(places)) == 4
    assert figure.find("ul") is not None


def test_a_plot_without_points_says_so() -> None:
    plot = Plot(title="t", x_label="x", y_label="y", series=(Series(name="a", points=()),))
    assert "– no figures" in plot_figure(plot)
