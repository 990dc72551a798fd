"""The page: whole by itself, well formed, and safe against what stands in a run."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from a40console.ledger.report_html import html
from a40console.model.run_result import Column, Doubt, RunResult, Table
from tests import make_runs as make

VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """Reads a page; tags that do not match are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_every_run_has_a_well_formed_page() -> None:
    for run in make.several():
        page = Page(html(run, make.arm_ends(run), make.samples(run)))
        assert run.id in page.words
        assert page.seen.count("h1") == 1


def test_it_needs_nothing_from_elsewhere() -> None:
    run = make.queued()
    for text in (html(make.run()), html(run)):
        page = Page(text)
        assert {"script", "link", "img", "iframe", "object"}.isdisjoint(page.seen)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in page.attributes}
        assert "url(" not in text
        assert "@import" not in text
    assert "default-src 'none'" in html(run)


def test_it_is_drawn_for_light_and_dark() -> None:
    text = html(make.run())
    assert "prefers-color-scheme: dark" in text
    light, dark = text.split("@media (prefers-color-scheme: dark)")[:2]
    names = set(re.findall(r"(--\w+): #", light))
    assert names == set(re.findall(r"(--\w+): #", dark.split("}")[0]))


def test_what_a_reader_looks_for() -> None:
    run = make.run()
    words = Page(html(run, make.arm_ends(run), make.samples(run))).words
    for said in (
        "block 360 s for 120 turns",
        "1.47 × [1.41, 1.52], 95 %, 3 repeats",
        "export CLAUDE_CODE_AUTO_COMPACT_WINDOW=96000",
        "≈1,204,000",
        "recovers in (per-turn): it shrinks every turn",
        "Counted by the client and by the server",
        "9c1e9c1e",
    ):
        assert said in words, said


def test_its_marks_are_in_title_and_text() -> None:
    for run, mark in ((make.simulated(), "SIMULATED"), (make.reference(), "REFERENCE")):
        text = html(run)
        assert f"<title>{mark}, " in text
        assert f'<span class="mark">{mark}</span>' in text
    assert '<span class="mark">' not in html(make.run())


def test_an_invalid_run_shows_no_figure_of_its_result() -> None:
    text = html(make.invalid())
    assert "<figure>" not in text
    assert "1,165" not in text
    assert "invalidates: client-saturated (32)" in text


def test_nothing_that_stands_in_a_run_becomes_markup() -> None:
    evil = "<script>alert(1)</script>\"'&"
    found = make.compaction_result()
    plots = tuple(
        replace(
            plot,
            title=evil,
            x_label=evil,
            y_label=evil,
            series=(replace(plot.series[0], name=evil), *plot.series[1:]),
        )
        for plot in found.plots
    )
    result = RunResult(
        headline=evil,
        verdict=replace(found.verdict, text=evil, paste=evil, winner=evil),
        tables=(Table(title=evil, columns=(Column(title=evil),), rows=((evil,),), note=evil),),
        plots=plots,
        doubts=(Doubt(code=evil, text=evil, invalidates=False, arm=evil),),
        excerpts=(evil,),
    )
    environment = make.environment(model=evil, argv=(evil,), effective={evil: evil})
    run = make.run(result=result, environment=environment, reason=evil, settled={evil: evil})
    page = Page(html(run, make.arm_ends(run), make.samples(run)))
    assert "script" not in page.seen
    assert "<script>alert(1)</script>" in page.words
