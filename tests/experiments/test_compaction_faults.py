"""The compaction experiment where something is wrong: an error or a doubt, never a figure."""

from __future__ import annotations

import re

import pytest

from a40console.experiments.bench import ArmFailedError, Known, RunStoppedError
from a40console.experiments.compaction import Compaction
from a40console.model.experiment import ParameterError, settle
from a40console.model.figures import Figure, Missing, number
from a40console.model.run import RunPlan, RunTarget
from tests.experiments.paper_bench import PaperBench, PaperEngine

ASKED = {"turns": "60", "facts": "4"}


def bench_of(engine: PaperEngine, *, stops_after: int | None = None, **asked: str) -> PaperBench:
    settled = settle(Compaction.offer, "standard", ASKED | asked)
    return PaperBench(engine, settled, stops_after=stops_after)


def plan_of(
    window_tokens: Figure,
    *,
    asked: dict[str, str] | None = None,
    depth: int = 0,
    live: bool = False,
    resets: bool = True,
) -> RunPlan:
    known = Known(
        generation_tokens_per_s=200,
        prefill_tokens_per_s=4_000,
        window_tokens=window_tokens,
        usd_per_h=0.44,
        speculation_depth=depth,
        can_reset_cache=resets,
        live_speculation=live,
    )
    design = Compaction()
    return design.plan(settle(design.offer, "standard", ASKED | (asked or {})), known, RunTarget())


async def test_a_server_without_usage_is_refused_before_anything_is_measured() -> None:
    bench = bench_of(PaperEngine(tells_usage=False))
    with pytest.raises(ArmFailedError, match="no usage"):
        await Compaction().run(bench)
    assert all(request.warm_up for request in bench.paper.requests)


async def test_answers_of_other_lengths_make_the_run_invalid() -> None:
    bench = bench_of(PaperEngine(takes_lengths=False), ways="block", repeats="1")
    result = await Compaction().run(bench)
    assert [doubt.code for doubt in result.doubts] == ["unequal-output"]
    assert result.doubts[0].invalidates


async def test_a_server_that_refuses_such_orders_is_asked_without_them() -> None:
    bench = bench_of(PaperEngine(refuses_orders=True), ways="block", repeats="1")
    result = await Compaction().run(bench)
    assert not any("ignore_eos" in request.body for request in bench.paper.requests[1:])
    assert [doubt.code for doubt in bench.doubts] == ["free-length"]
    assert result.doubts[0].invalidates, "its answers were as long as it liked"


async def test_an_engine_that_dies_leaves_what_was_whole_before() -> None:
    design, bench = Compaction(), bench_of(PaperEngine(dies_after=220), ways="block,per-turn")
    with pytest.raises(ArmFailedError, match=r"repeat 2: 3 requests in a row failed"):
        await design.run(bench)
    result = design.partial(bench, "the engine died")
    assert [row[-1] for row in result.tables[0].rows] == [1, 2], "the whole sessions stand"
    assert result.verdict.kind == "none"
    assert "the engine died" in result.tables[0].note.casefold()


async def test_a_cancelled_run_tells_what_it_has() -> None:
    design, bench = Compaction(), bench_of(PaperEngine(), stops_after=150, ways="block,per-turn")
    with pytest.raises(RunStoppedError):
        await design.run(bench)
    result = design.partial(bench, "cancelled")
    assert "ended after" in result.tables[0].note
    assert result.verdict.kind == "none"
    assert result.plots[0].series


async def test_a_run_that_ended_at_once_has_no_figure() -> None:
    design, bench = Compaction(), bench_of(PaperEngine(dies_after=2))
    with pytest.raises(ArmFailedError, match="first request"):
        await design.run(bench)
    result = design.partial(bench, "the engine died")
    assert result.headline.startswith("Nothing was measured")
    assert not result.tables


async def test_one_failed_turn_spoils_its_session_and_no_other() -> None:
    bench = bench_of(PaperEngine(fails_at=("block", 1, 20)), ways="block,per-turn", facts="0")
    result = await Compaction().run(bench)
    sessions = {str(row[0]): row[-1] for row in result.tables[0].rows}
    assert sessions == {"per-turn-2.9k": 3, "block-2.9k": 2}
    assert "1 of 60 turns failed" in result.tables[0].note
    assert result.verdict.winner == "block-2.9k", "two repeats of both are left"


async def test_an_answer_without_content_spoils_its_session_and_costs_no_0_s() -> None:
    engine = PaperEngine(empty_at=("block", "turn", 1, 20))
    result = await Compaction().run(bench_of(engine, ways="block,per-turn", facts="0"))
    sessions = {str(row[0]): row[-1] for row in result.tables[0].rows}
    assert sessions == {"per-turn-2.9k": 3, "block-2.9k": 2}
    assert "turn 20 has no seconds: the answer is empty" in result.tables[0].note


async def test_a_summary_without_content_spoils_its_session() -> None:
    before = bench_of(PaperEngine(), ways="cc-auto", repeats="2", facts="0")
    await Compaction().run(before)
    arm = "cc-auto-2.9k"
    at = next(each.index for each in before.samples(arm, 0) if each.role == "summary")
    engine = PaperEngine(empty_at=(arm, "summary", 0, at))
    result = await Compaction().run(bench_of(engine, ways="cc-auto", repeats="2", facts="0"))
    assert [row[-1] for row in result.tables[0].rows] == [1]
    assert f"summary {at} has no seconds: the answer is empty" in result.tables[0].note


async def test_progress_counts_every_turn_once() -> None:
    bench = bench_of(PaperEngine(), repeats="1", facts="0")
    await Compaction().run(bench)
    totals = {total for _, _, total, _ in bench.steps}
    assert totals == {60 * 5}
    done = [done for _, done, _, _ in bench.steps]
    assert done == sorted(done)
    assert done[-1] == 60 * 5


async def test_the_plan_foretells_the_requests() -> None:
    bench = bench_of(PaperEngine())
    await Compaction().run(bench)
    foretold = plan_of(4_096).requests
    assert foretold == pytest.approx(len(bench.paper.requests), rel=0.02)


async def test_the_plan_foretells_the_time() -> None:
    bench = bench_of(PaperEngine())
    await Compaction().run(bench)
    seconds = number(plan_of(4_096).seconds)
    assert seconds == pytest.approx(bench.now_s(), rel=0.25)


def test_the_plan_says_what_it_does_to_others_and_what_will_not_fit() -> None:
    plan = plan_of(4_096, asked={"turns": "120"})
    assert plan.intrusion == "evicts"
    told = " ".join(plan.consequences)
    assert "The prefix cache is emptied 15 times" in told
    assert all(f"{arm}: " in told for arm in plan.arms), "each arm's name is explained"
    assert re.search(r"none overflows the window at turn \d+", told)
    assert "allows no threshold of 48,000" in told
    assert not plan.refusal


def test_without_a_reset_too_others_lose_what_is_cached() -> None:
    plan = plan_of(4_096, resets=False)
    assert plan.intrusion == "evicts"
    assert "push others' out" in " ".join(plan.consequences)


def test_a_threshold_beyond_the_window_is_left_out_and_named() -> None:
    plan = plan_of(100_000, asked={"thresholds": "48000,96000"})
    assert "block-48k" in plan.arms
    assert "block-96k" not in plan.arms
    assert any("96,000" in line for line in plan.consequences)


@pytest.mark.parametrize(
    ("window_tokens", "asked", "words"),
    [
        (300, {}, "holds no session"),
        (64_000, {"lengths": "9000;10/10*50", "thresholds": "9500"}, "leaves no room"),
        (64_000, {"lengths": "nonsense"}, "SYSTEM;GIVEN/ANSWER"),
        (64_000, {"session": "7f3a"}, "session 7f3a are not known"),
        (64_000, {"speculation": "as-is,on"}, "as-is alone"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(
    window_tokens: int, asked: dict[str, str], words: str
) -> None:
    assert words in plan_of(window_tokens, asked=asked).refusal


def test_speculation_that_only_a_restart_turns_is_refused() -> None:
    asked = {"speculation": "off,on"}
    assert "while it runs" in plan_of(64_000, depth=5, asked=asked).refusal
    assert not plan_of(64_000, depth=5, live=True, asked=asked).refusal


def test_an_engine_without_speculation_is_measured_as_it_is() -> None:
    plan = plan_of(64_000, depth=0, asked={"speculation": "off,on", "ways": "block"})
    assert plan.arms == ("block-48k",)
    assert any("started without" in line for line in plan.consequences)


def test_of_an_unknown_window_the_plan_says_so() -> None:
    plan = plan_of(Missing("not told"))
    assert not plan.refusal
    assert any("not known" in line for line in plan.consequences)


@pytest.mark.parametrize(
    "asked",
    [{"ways": "magic"}, {"repeats": "0"}, {"thresholds": "12"}, {"low_water": "1"}, {"no": "1"}],
)
def test_impossible_parameters_are_refused(asked: dict[str, str]) -> None:
    with pytest.raises(ParameterError):
        settle(Compaction.offer, "standard", asked)
