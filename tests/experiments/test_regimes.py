"""Speculation by regime: which setting wins, by engines of which that is known."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.bench import ArmFailedError, RunStoppedError
from a40console.experiments.regime_arms import Group, Setting, arrange, schedule
from a40console.experiments.regime_verdict import Outcome, verdict_of
from a40console.experiments.regimes import Regimes
from a40console.experiments.repeats import Repeats, rotated
from a40console.model.experiment import settle
from a40console.model.figures import Missing, number
from a40console.model.run import RunTarget
from a40console.model.run_result import RunResult
from a40console.model.statistics import difference
from tests.experiments.small_engine import KNOWN, Manner, SmallBench, shown

NOT_OURS = Missing("the engine at a URL is not ours to steer")


def bench(manner: Manner, *, preset: str = "standard", **asked: str) -> SmallBench:
    given = {"output_tokens": "64", **asked}
    return SmallBench(Regimes.offer, manner, preset=preset, asked=given)


def speeds(result: RunResult) -> dict[tuple[str, str, str], float]:
    """Sustained speed by text, streams and setting."""
    return {
        (str(row[0]), str(row[1]), str(row[2])): speed
        for row in result.tables[0].rows
        if (speed := shown(row[3])) is not None
    }


async def test_the_regime_decides() -> None:
    regimes = bench(Manner(deepest=8, pass_growth=0.05))
    result = await Regimes().run(regimes)

    found = speeds(result)
    assert found["code-edit", "1", "on-8"] > 1.5 * found["code-edit", "1", "off"]
    assert found["prose", "1", "on-8"] < 0.95 * found["prose", "1", "off"]
    text = result.verdict.text
    assert "code-edit, 1 stream: on-8 wins" in text
    prose = text.partition(";")[0]
    assert "wins, on" not in prose
    assert "on-8 0." in prose
    assert result.verdict.kind == "difference"
    assert not result.doubts


async def test_no_fixed_setting_wins_everywhere() -> None:
    manner = Manner(deepest=8, pass_growth=0.05)
    result = await Regimes().run(bench(manner, scan="no", streams="1"))

    assert "prose, 1 stream: off wins" in result.verdict.text
    assert "No fixed setting wins everywhere" in result.verdict.text
    assert not result.verdict.winner
    assert not result.verdict.paste


def test_where_one_text_is_not_judged_none_wins_for_all() -> None:
    group = Group(regime="code-edit", streams=1)
    alone = difference({0: 1.0}, {0: 2.0}, seed=1)
    clear = difference({0: 1.0, 1: 1.01, 2: 0.99}, {0: 2.0, 1: 2.02, 2: 1.98}, seed=1)
    wins = Outcome(group=group, text="on-8 wins", winner="on-8", contrast=clear)
    untold = Outcome(group=group, text="one repeat", contrast=alone)

    assert verdict_of([wins], {}, "").winner == "on-8"
    verdict = verdict_of([wins, untold], {}, "")
    assert (verdict.winner, verdict.paste) == ("", "")
    assert "on-8 wins; one repeat" in verdict.text


async def test_one_that_wins_wherever_it_matters_is_told_how_to_be_had() -> None:
    result = await Regimes().run(bench(Manner(deepest=8), regimes="code-edit"))

    assert result.verdict.winner == "on-8"
    assert result.verdict.paste == "a40console engine speculation 8"


async def test_where_an_engine_without_wins_it_is_not_had_by_turning_it_off() -> None:
    manner = Manner(deepest=8, pass_growth=0.05)
    result = await Regimes().run(bench(manner, regimes="prose", streams="1", scan="no"))

    assert result.verdict.winner == "off"
    assert "engine speculation off" not in result.verdict.paste
    assert tomllib.loads(result.verdict.paste) == {"speculation": {"enabled": False}}


async def test_among_many_comparisons_luck_alone_rarely_wins() -> None:
    """Four groups of three depths, and nothing differs: one alone is wrong in one run of four."""
    wrong = 0
    for luck in range(24):
        manner = Manner(
            deepest=8, pass_growth=0.0, noise=0.05, luck=luck, accepted={"prose": 0, "code-edit": 0}
        )
        result = await Regimes().run(bench(manner, streams="1,2", depths="2,4,8", scan="no"))
        wrong += result.verdict.kind == "difference"
        assert "among the 16 comparisons" in result.tables[0].note
        assert "all its repeats of one start" in result.tables[0].note
    assert wrong <= 4, "95 %: 1 of 24 expected"


async def test_an_engine_without_stands_in_the_midst_of_the_repeats() -> None:
    regimes = bench(Manner(deepest=4), streams="1", scan="no")
    await Regimes().run(regimes)

    assert regimes.small.restarts == ["off", "as-was"]
    order = [(name, step) for step, (name, _, _) in enumerate(regimes.steps)]
    off = [step for name, step in order if name.endswith("· off")]
    live = [step for name, step in order if "off-live" in name]
    assert min(live) < min(off) <= max(off) < max(live)
    assert len(off) == len(live) == 2 * 3 + 1, "the engine's start is told as well"


async def test_warm_ups_are_in_no_arm() -> None:
    regimes = bench(Manner(deepest=4), streams="1", scan="no")
    await Regimes().run(regimes)

    assert len(regimes.within_arms) == 2 * 3 * 3 * 2, "texts, settings, repeats, requests"
    assert not any(each.warm_up for each in regimes.within_arms)


async def test_depths_are_told_with_their_tail() -> None:
    result = await Regimes().run(bench(Manner(deepest=8), streams="1", requests="4"))

    rows = {(row[0], row[1]): row for row in result.tables[1].rows}
    assert [depth for text, depth in rows if text == "code-edit"] == [2, 4, 8]
    deepest = rows["code-edit", 8]
    assert shown(deepest[3]) == pytest.approx(sum(0.85**at for at in range(9)), rel=0.15)
    assert "last position" in str(deepest[7])
    assert "deeper" in str(deepest[7])
    assert "at the very best, by these means" in str(deepest[7])
    assert "× this" in str(rows["code-edit", 2][7])


async def test_below_a_hundred_drafts_the_tail_says_nothing() -> None:
    asked = {"streams": "1", "repeats": "1", "scan": "no", "output_tokens": "16"}
    result = await Regimes().run(bench(Manner(deepest=8), preset="quick", **asked))

    tails = [str(row[7]) for row in result.tables[1].rows if row[0] == "code-edit"]
    assert tails
    assert all("too few" in tail for tail in tails)


async def test_quick_restarts_nothing_and_gives_no_verdict() -> None:
    regimes = bench(Manner(deepest=4), preset="quick")
    result = await Regimes().run(regimes)

    assert regimes.small.restarts == []
    assert result.verdict.kind == "none"
    assert speeds(result)["code-edit", "1", "on-4"]


async def test_a_setting_that_is_not_in_force_makes_it_invalid() -> None:
    regimes = bench(Manner(deepest=4, ignores_off=True), streams="1")
    result = await Regimes().run(regimes)

    doubts = [doubt for doubt in result.doubts if doubt.invalidates]
    assert [doubt.code for doubt in doubts] == ["not-in-force"]
    assert "was asked for, and the engine drafted" in doubts[0].text
    assert not result.tables


async def test_what_the_engine_refuses_is_a_row_with_its_reason() -> None:
    regimes = bench(Manner(deepest=4, refuses_live=True), streams="1")
    result = await Regimes().run(regimes)

    assert {setting for _, _, setting in speeds(result)} == {"off", "as-is"}
    refused = {str(row[2]): row[3] for row in result.tables[0].rows if row[0] == "all"}
    assert refused["on-4"] == refused["off-live"] == Missing("the engine refuses")


async def test_without_restarts_what_is_live_is_compared() -> None:
    result = await Regimes().run(bench(Manner(deepest=4, refuses_restart=True), streams="1"))

    assert "on-4 wins" in result.verdict.text
    assert "off-live" in result.verdict.text
    assert {row[2] for row in result.tables[0].rows if row[0] == "all"} == {"off"}


async def test_an_engine_without_speculation_has_nothing_to_compare() -> None:
    result = await Regimes().run(bench(Manner(deepest=0), streams="1"))

    assert result.verdict.kind == "none"
    assert "started without speculation" in result.verdict.text
    assert set(speeds(result)) == {("prose", "1", "off"), ("code-edit", "1", "off")}


async def test_an_engine_that_dies_leaves_the_arms_before() -> None:
    regimes, design = bench(Manner(deepest=4, dies_after=40), streams="1"), Regimes()
    with pytest.raises(RunStoppedError, match="connection refused"):
        await design.run(regimes)

    result = design.partial(regimes, "the target answers no more")
    assert result.verdict.kind == "none"
    assert speeds(result)
    assert not any(doubt.invalidates for doubt in result.doubts)


async def test_ten_percent_of_errors_leave_no_figure() -> None:
    regimes = bench(Manner(deepest=4, fails_every=10), streams="1,4")
    result = await Regimes().run(regimes)

    assert [doubt.code for doubt in result.doubts if doubt.invalidates] == ["errors"]
    assert not result.tables


async def test_an_engine_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(ArmFailedError, match="does not answer"):
        await Regimes().run(bench(Manner(deepest=4, dies_after=0)))


@pytest.mark.parametrize(
    ("depth", "intrusion", "arms"),
    [(24, "restarts", {"off", "off-live", "on-6", "on-12", "on-24"}), (0, "shares", {"off"})],
)
def test_the_plan_tells_restarts(depth: int, intrusion: str, arms: set[str]) -> None:
    known = replace(KNOWN, window_tokens=262_144, speculation_depth=depth)
    plan = Regimes().plan(settle(Regimes.offer, "standard", {}), known, RunTarget())

    assert plan.intrusion == intrusion
    assert {arm.split(" · ")[1] for arm in plan.arms} == arms
    assert ("nothing to compare; start it" in plan.refusal) is (depth == 0)
    assert number(plan.seconds)


@pytest.mark.parametrize(
    ("asked", "changes", "refused"),
    [
        ({"settings": "off-live,on"}, {"speculation_depth": 0}, "[speculation] enabled = true"),
        ({"settings": "off"}, {"speculation_depth": 0}, ""),
        ({"settings": "off-live,on"}, {"live_speculation": False}, "settings=off,off-live,on"),
        ({"settings": "on", "depths": "9", "scan": "no"}, {}, "on-9: the engine was started for 5"),
        ({"settings": "off-live,on"}, {"speculation_depth": NOT_OURS}, ""),
        ({"settings": "off-live,on"}, {}, ""),
    ],
)
def test_where_nothing_is_left_to_compare_the_plan_is_refused_with_the_next_step(
    asked: dict[str, str], changes: dict[str, Any], refused: str
) -> None:
    known = replace(replace(KNOWN, window_tokens=262_144, speculation_depth=5), **changes)
    plan = Regimes().plan(settle(Regimes.offer, "standard", asked), known, RunTarget())

    assert refused in plan.refusal
    assert bool(plan.refusal) == bool(refused)


def test_the_plan_names_its_settings() -> None:
    known = replace(KNOWN, window_tokens=262_144, speculation_depth=5)
    plan = Regimes().plan(settle(Regimes.offer, "quick", {}), known, RunTarget())

    assert (
        "off-live (turned off as it runs), on-5 (5 drafted tokens a pass)" in plan.consequences[0]
    )


@pytest.mark.parametrize("simulated", [False, True])
async def test_words_that_a_simulation_invents_are_not_called_circles(simulated: bool) -> None:
    regimes = bench(Manner(deepest=4), preset="quick", streams="1", regimes="prose")
    regimes.simulated = simulated
    regimes.says = "round and round "
    await Regimes().run(regimes)

    assert any(doubt.code == "looped-text" for doubt in regimes.doubts) is not simulated


def test_where_nothing_turns_live_the_plan_says_so() -> None:
    arranged = arrange(settle(Regimes.offer, "standard", {}), 6, live=False)
    assert [setting.name for setting in arranged.settings] == ["off", "as-is"]
    assert arranged.restart
    assert set(arranged.skipped) == {"off-live", "on"}


def test_a_url_is_measured_as_it_is() -> None:
    arranged = arrange(settle(Regimes.offer, "standard", {}), NOT_OURS)
    assert [setting.name for setting in arranged.settings] == ["as-is"]
    assert set(arranged.skipped.values()) == {NOT_OURS.reason}


def test_too_deep_is_left_out_with_the_reason() -> None:
    settled = settle(Regimes.offer, "standard", {"depths": "3,30", "scan": "no"})
    arranged = arrange(settled, 5)
    assert [setting.name for setting in arranged.live] == ["off-live", "on-3"]
    assert "started for 5" in arranged.skipped["on-30"]


@given(st.integers(1, 20), st.integers(1, 6))
def test_no_repeat_is_lost_and_each_setting_is_first_in_turn(repeats: int, count: int) -> None:
    settings = tuple(Setting(f"on-{at}", at) for at in range(1, count + 1))
    arranged = arrange(settle(Regimes.offer, "standard", {}), 8)
    before, after = schedule(arranged, repeats)
    assert [*before, *after] == list(range(repeats))
    assert len(before) - len(after) in {0, 1}
    assert {rotated(settings, repeat)[0] for repeat in range(count)} == set(settings)


async def test_drafts_that_are_never_made_make_it_invalid() -> None:
    regimes = bench(Manner(deepest=4, drafts_never=True), streams="1")
    result = await Regimes().run(regimes)

    (doubt,) = [doubt for doubt in result.doubts if doubt.invalidates]
    assert "drafted nothing at all" in doubt.text
    assert not result.tables


def test_no_plot_shows_a_speed_below_none() -> None:
    point = Repeats({0: 10.0, 1: 40.0}).point(1.0, seed=1)

    assert point.low == 0
    assert isinstance(point.high, float)
    assert point.high > 40
