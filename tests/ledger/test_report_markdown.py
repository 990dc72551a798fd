"""A run as Markdown: what a reader must see, and nothing that a name could break."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from a40console.ledger.report_markdown import markdown
from a40console.model.figures import Missing
from a40console.model.run_result import Column, RunResult, Table
from tests import make_runs as make


def result_of(**changes: object) -> RunResult:
    return replace(make.compaction_result(), **changes)  # type: ignore[arg-type]


def test_a_run_in_full() -> None:
    run = make.run()
    text = markdown(run, make.arm_ends(run), make.samples(run))
    for said in (
        "# compaction, standard · 2026-11-30 09:45 UTC",
        "Ratio: 1.47 × \\[1.41, 1.52\\], 95 %, 3 repeats.",
        "```\nexport CLAUDE_CODE_AUTO_COMPACT_WINDOW=96000\n```",
        "- vcpu-throttled (cc-clear): The container was throttled",
        "| arm | wall s | cost $ | p95 turn s |",
        "| block | 360.0 | 0.0440 | 6.3 | 16.9 | 1 | 96,410 | 0.74 |",
        "| per-turn | 528.0 | 0.0645 | 9.2 | 14.2 | – | ≈1,204,000 | 0.71 |",
        "- – recovers in (per-turn): it shrinks every turn",
        "| none | generated tokens | 9,216 | 9,216 | 0.00 |",
        "| engine | vllm 0.32.0 |",
        "| argv asked | vllm serve --max-model-len 262144 --kv-cache-dtype fp8 |",
        "| in force: speculation | ngram, 5 tokens |",
        "| seed | 7 |",
        "| took | 1 h 42 m |",
    ):
        assert said in text, said
    assert "SIMULATED" not in text
    assert text == markdown(run, make.arm_ends(run), make.samples(run))


def test_what_it_is_stands_before_any_figure() -> None:
    for run, mark in (
        (make.simulated(), "SIMULATED"),
        (make.reference(), "REFERENCE"),
        (make.partial(), "PARTIAL"),
    ):
        lines = markdown(run).splitlines()
        assert lines[2].startswith(f"**{mark}**: "), lines[:5]


def test_an_invalid_run_shows_no_figure_of_its_result() -> None:
    text = markdown(make.invalid())
    assert "**INVALID**" in text
    assert "**invalidates** client-saturated (32)" in text
    assert "1,165" not in text
    assert "Streams" not in text


def test_every_state_has_a_report() -> None:
    for run in make.several():
        text = markdown(run)
        assert text.startswith("# ")
        assert run.id in text


def test_a_spliced_fragment_is_shown_as_it_is() -> None:
    assert "```\nreturn a -b):\n    return a -\n```" in markdown(make.lossless())
    fenced = result_of(excerpts=("x = '```'\n```",))
    assert "````\nx = '```'\n```\n````" in markdown(make.run(result=fenced))


def test_names_mean_nothing_to_markdown() -> None:
    name = "a|b <img src=x> *c* `d`\n# e\x1b[0m"
    table = Table(title="# 1", columns=(Column(title="arm"),), rows=((name,),))
    text = markdown(make.run(result=result_of(headline="1. x", tables=(table,))))
    assert r"| a\|b \<img src=x\> \*c\* \`d\`\\n# e\\x1b\[0m |" in text
    assert "**1\\. x**" in text
    assert "\x1b" not in text


@given(st.lists(st.text(max_size=12), min_size=2, max_size=4))
def test_a_row_has_as_many_cells_as_columns_whatever_is_in_it(cells: list[str]) -> None:
    columns = tuple(Column(title=f"c{at}") for at in range(len(cells)))
    table = Table(title="T", columns=columns, rows=(tuple(cells),))
    part = markdown(make.run(result=result_of(tables=(table,)))).split("## T\n\n")[1]
    row = part.split("\n\n")[0].splitlines()[2]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == len(cells) + 1


def test_what_is_not_known_says_why() -> None:
    text = markdown(make.queued())
    assert "| started | – it has not started |" in text
    assert "## Where it was made\n\n– it has not started" in text
    unpriced = make.run(environment=make.environment(usd_per_h=Missing("no price")))
    assert "| price | – no price |" in markdown(unpriced)
