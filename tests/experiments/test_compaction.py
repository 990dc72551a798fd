"""The compaction experiment on an engine of paper: equal work, honest scores, one verdict."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from a40console.experiments.asking import PATHS
from a40console.experiments.bench import ArmFailedError
from a40console.experiments.compaction import Compaction, recall_label
from a40console.experiments.repeats import rotated
from a40console.model.experiment import settle
from a40console.model.figures import Missing, number
from a40console.model.run import RunTarget
from a40console.model.run_record import Sample
from a40console.model.run_result import Interval, RunResult, Table
from tests.experiments.paper_bench import PaperBench, PaperEngine

SMALL = {"turns": "60", "facts": "4"}


def bench_of(
    asked: dict[str, str] | None = None, *, preset: str = "standard", **changes: Any
) -> PaperBench:
    """A bench; `changes` are the engine's, or the bench's own."""
    own = {name: changes.pop(name) for name in ("reset", "target") if name in changes}
    settled = settle(Compaction.offer, preset, SMALL | (asked or {}))
    return PaperBench(PaperEngine(**changes), settled, **own)


async def measured(bench: PaperBench) -> RunResult:
    return await Compaction().run(bench)


def row_of(table: Table, arm: str) -> dict[str, Any]:
    """A row by its columns' titles."""
    found = next(row for row in table.rows if str(row[0]).startswith(arm))
    return {column.title: cell for column, cell in zip(table.columns, found, strict=True)}


def turns_of(bench: PaperBench, arm: str) -> list[Sample]:
    return [
        each
        for each in bench.records
        if isinstance(each, Sample)
        and each.arm.startswith(arm)
        and each.role == "turn"
        and not each.warm_up
    ]


async def test_blocks_beat_pruning_at_every_turn_and_the_verdict_says_by_how_much() -> None:
    bench = bench_of({"ways": "per-turn,block"})
    result = await measured(bench)
    assert result.verdict.kind == "difference"
    assert result.verdict.winner == "block-2.9k"
    assert isinstance(result.verdict.ratio, Interval)
    assert result.verdict.ratio.low > 1.5
    assert "per-turn-2.9k" in result.verdict.text
    assert not result.doubts


async def test_all_arms_do_the_same_work_in_rotated_order() -> None:
    bench = bench_of()
    await measured(bench)
    sessions = bench.arms
    whole = {
        arm: sum(number(s.generated_tokens) or 0 for s in turns_of(bench, arm) if s.repeat == 0)
        for arm in ("cc-auto", "cc-clear", "per-turn", "block")
    }
    assert len(set(whole.values())) == 1
    firsts = [arm for arm, _ in sessions[::5]]
    assert len(set(firsts)) == 3, "another arm begins each repeat"
    assert bench.paper.resets == len(sessions) == 15


async def test_sessions_are_not_mixed_turn_by_turn() -> None:
    bench = bench_of({"facts": "0"})
    await measured(bench)
    order = [(each.arm, each.repeat) for each in turns_of(bench, "")]
    runs = 1 + sum(one != other for one, other in pairwise(order))
    assert runs == len(set(order))


async def test_no_session_finds_another_ones_prefix_even_where_the_cache_stays() -> None:
    bench = bench_of({"repeats": "2"}, reset=Missing("the engine cannot"))
    result = await measured(bench)
    firsts = [each for each in turns_of(bench, "") if each.index == 1]
    assert len(firsts) == 10
    assert all(each.cached_tokens == 0 for each in firsts)
    assert "the engine cannot" in result.tables[0].note


async def test_a_summary_is_in_the_time_and_not_in_the_tokens() -> None:
    bench = bench_of({"repeats": "1", "ways": "cc-auto"})
    result = await measured(bench)
    arm = "cc-auto-2.9k"
    samples = bench.samples(arm)
    summaries = [each for each in samples if each.role == "summary"]
    assert summaries
    seconds = sum(number(each.total_s) or 0 for each in samples)
    tokens = sum(number(each.generated_tokens) or 0 for each in turns_of(bench, arm))
    score = row_of(result.tables[0], arm)
    assert score["wall"] == pytest.approx(seconds)
    assert score["sustained"] == pytest.approx(tokens / seconds)
    assert row_of(result.tables[1], arm)["summaries"] == pytest.approx(
        sum(number(each.total_s) or 0 for each in summaries)
    )


async def test_recall_is_asked_on_a_fork_and_is_in_no_score() -> None:
    asked = {"repeats": "1", "ways": "block,none", "thresholds": "2900"}
    bench = bench_of(asked, window_tokens=24_000)
    result = await measured(bench)
    forked = bench.samples(recall_label("none"))
    assert Counter(each.role for each in forked) == {"recall": 4}
    assert all(number(each.cached_tokens) for each in forked), "it goes on with the history"
    assert {each.role for each in bench.within_arms} == {"turn"}
    assert not any(each.warm_up for each in bench.within_arms)
    told = next(table for table in result.tables if "age" in table.title)
    assert row_of(told, "none")["answered"] == "4 of 4"
    assert row_of(told, "block")["in the context"] == "1 of 4"
    score = row_of(result.tables[0], "none")
    turns = sum(number(each.total_s) or 0 for each in turns_of(bench, "none"))
    assert score["wall"] == pytest.approx(turns)


@pytest.mark.parametrize(("simulated", "which"), [(False, "model"), (True, "simulated model")])
async def test_of_a_model_that_answers_nothing_no_recall_is_concluded(
    simulated: bool, which: str
) -> None:
    bench = bench_of({"ways": "block,per-turn"}, remembers=False)
    bench.simulated = simulated
    result = await measured(bench)
    assert "keeps 3 of 12 planted facts in the context; " in result.verdict.text
    assert "answers" not in result.verdict.text
    assert not [table.title for table in result.tables if "facts" in table.title]
    note = result.tables[0].note
    assert f"The {which} cannot recall even what stands before it, so recall is not judged" in note
    assert re.search(r"in the context stood .*block-2.9k 3 of 12", note)


async def test_an_arm_that_overflows_says_so_and_has_no_score() -> None:
    bench = bench_of({"turns": "80", "repeats": "2", "ways": "block,per-turn,none"})
    result = await measured(bench)
    wall = row_of(result.tables[0], "none")["wall"]
    assert isinstance(wall, Missing)
    assert re.search(r"none: turn 6\d overflows the window", result.tables[0].note)
    assert result.verdict.kind == "difference"


async def test_a_turn_too_long_for_the_window_ends_its_session_in_every_arm() -> None:
    lengths = "300;40/20*10,9000/20,40/20*10"
    result = await measured(bench_of({"lengths": lengths, "thresholds": "1000"}))
    assert result.verdict.kind == "none"
    assert "turn 11 overflows the window" in result.verdict.text
    assert not result.verdict.winner


async def test_a_server_that_finds_the_overflow_itself_is_believed() -> None:
    bench = bench_of({"lengths": "300;40/20*40", "thresholds": "600", "ways": "none,block"})
    bench.paper.window_tokens = 900
    bench.paper.prefill_s = 1e-4

    async def unknown() -> Missing:
        return Missing("not told")

    bench.window_tokens = unknown  # type: ignore[method-assign]
    result = await measured(bench)
    assert "overflows the window: 400: maximum context length" in result.tables[0].note


async def test_arms_that_do_the_same_do_not_differ_beyond_noise() -> None:
    asked = {"lengths": "300;40/20*12", "thresholds": "2000", "ways": "block,per-turn,cc-clear"}
    result = await measured(bench_of(asked, noise=0.02))
    assert result.verdict.kind == "no difference"
    assert not result.verdict.winner
    assert "No difference beyond noise" in result.verdict.text


async def test_quick_gives_no_verdict() -> None:
    result = await measured(bench_of(preset="quick"))
    assert result.verdict.kind == "none"
    assert not result.verdict.paste
    assert "one repeat" in result.verdict.text


async def test_one_way_alone_allows_no_verdict() -> None:
    result = await measured(bench_of({"ways": "block"}))
    assert result.verdict.kind == "none"


async def test_the_clients_line_is_given_where_its_window_allows_the_threshold() -> None:
    asked = {"lengths": "2000;200/100*40", "thresholds": "6000", "ways": "block,cc-auto"}
    result = await measured(bench_of(asked, window_tokens=40_000))
    assert result.verdict.paste.startswith("CLAUDE_CODE_MAX_CONTEXT_TOKENS=27192 ")
    small = await measured(bench_of(asked, window_tokens=16_000))
    assert not small.verdict.paste
    assert "cannot be told to compact at 6,000" in small.verdict.text


async def test_speculation_is_measured_apart() -> None:
    bench = bench_of({"ways": "block,per-turn", "speculation": "off,on"}, depth=5)
    result = await measured(bench)
    assert set(bench.paper.settings) == {"off", "on"}
    assert {str(row[0]) for row in result.tables[0].rows} == {
        f"{way}-2.9k spec {setting}" for way in ("block", "per-turn") for setting in ("off", "on")
    }
    assert "Speculation off:" in result.verdict.text


async def test_a_setting_that_is_refused_is_told_and_not_measured() -> None:
    asked = {"ways": "block", "speculation": "off,on", "repeats": "1"}
    nothing = bench_of(asked, depth=5, refuses={"off": "busy", "on": "busy"})
    assert "speculation off was not measured: busy" in (await measured(nothing)).headline
    part = await measured(bench_of(asked, depth=5, refuses={"on": "busy"}))
    assert [row[0] for row in part.tables[0].rows] == ["block-2.9k spec off"]
    assert "peculation on was not measured" in part.tables[0].note


async def test_the_anthropic_dialect_is_asked_as_it_is() -> None:
    bench = bench_of(
        {"ways": "block", "repeats": "1"}, target=RunTarget(kind="url", dialect="anthropic")
    )
    result = await measured(bench)
    assert {request.path for request in bench.paper.requests} == {PATHS["anthropic"]}
    assert [doubt.code for doubt in result.doubts] == ["unequal-output"]


def test_a_rotation_begins_with_each_once() -> None:
    assert [rotated("abc", at)[0] for at in range(4)] == ["a", "b", "c", "a"]
    assert sorted(rotated("abc", 2)) == ["a", "b", "c"]
    assert rotated((), 3) == ()


async def test_a_repeat_that_failed_is_no_figure() -> None:
    bench = bench_of({"repeats": "2", "ways": "block"})
    bench.paper.dies_after = 80
    with pytest.raises(ArmFailedError, match="in a row"):
        await measured(bench)
