"""The sweep: what it finds of an engine that is known, and what it says of a faulty one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.bench import ArmFailedError, RunStoppedError
from a40console.experiments.sweep import Sweep
from a40console.experiments.sweep_verdict import knee
from a40console.model.experiment import settle
from a40console.model.figures import Missing, number
from a40console.model.run import RunTarget
from tests.experiments.small_engine import KNOWN, USD_PER_H, Manner, SmallBench, shown


def bench(manner: Manner | None = None, **asked: str) -> SmallBench:
    return SmallBench(Sweep.offer, manner, asked={"output_tokens": "32", **asked})


async def test_rates_prices_and_winner_are_those_of_the_engine() -> None:
    sweep = bench()
    result = await Sweep().run(sweep)

    (table,) = result.tables
    rows = {int(shown(row[0]) or 0): row for row in table.rows}
    for streams, row in rows.items():
        gap_s = (1 + 0.15 * (streams - 1)) / 80
        expected = streams * 32 / (0.05 + 31 * gap_s)
        assert shown(row[1]) == pytest.approx(expected, rel=0.05)
        assert shown(row[5]) == pytest.approx(USD_PER_H / 3600 / expected * 1e6, rel=0.05)
    assert result.verdict.kind == "difference"
    assert result.verdict.winner == "32 streams"
    assert "sustained with 32 streams" in result.headline
    assert "knee" in result.verdict.text
    assert not result.doubts


async def test_every_prompt_begins_differently_and_every_answer_is_equally_long() -> None:
    sweep = bench(streams="1,4")
    await Sweep().run(sweep)

    asked = [each for each in sweep.requests if each.arm != "warm-up"]
    heads = [each.body["messages"][0]["content"][:16] for each in asked]
    assert len(set(heads)) == len(heads) == (1 + 4) * 3 * 3
    assert {each.body["max_tokens"] for each in asked} == {32}
    assert all(each.body["ignore_eos"] for each in asked)


async def test_warm_ups_come_before_the_measured_arm() -> None:
    sweep = bench(streams="1,4")
    await Sweep().run(sweep)

    assert not any(each.warm_up for each in sweep.within_arms)
    assert len(sweep.within_arms) == (1 + 4) * 2 * 3
    warm_ups = [each for each in sweep.requests if each.warm_up and each.arm != "warm-up"]
    assert len(warm_ups) == (1 + 4) * 3


async def test_the_same_run_asked_for_again_finds_none_of_its_prompts_in_a_cache() -> None:
    first, second = bench(streams="1,4"), bench(streams="1,4")
    await Sweep().run(first)
    await Sweep().run(second)

    prompts = [
        [each.body["messages"][0]["content"] for each in one.requests if each.arm != "warm-up"]
        for one in (first, second)
    ]
    heads = {text[:12] for listed in prompts for text in listed}
    assert len(heads) == 2 * len(prompts[0]), "the marks are others"
    tails = [[text.partition("] ")[2] for text in listed] for listed in prompts]
    assert tails[0] == tails[1], "and the work is the same"


@pytest.mark.parametrize(
    ("template", "cached", "doubted"),
    [
        (30, 32, ""),
        (30, 34, ""),
        (30, 90, "60 tokens of a prompt (60 %)"),
        (0, 16, "16 tokens of a prompt (16 %)"),
        (Missing("not counted"), 64, ""),
        (Missing("not counted"), 90, "26 tokens of a prompt (26 %)"),
    ],
)
async def test_what_the_template_puts_before_all_prompts_is_no_shared_prefix(
    template: int | Missing, cached: int, doubted: str
) -> None:
    sweep = bench(Manner(template_tokens=template, cached_tokens=cached), streams="1")
    result = await Sweep().run(sweep)

    told = [doubt.text for doubt in result.doubts if doubt.code == "shared-prefix"]
    assert len(told) == bool(doubted)
    assert all(doubted in text for text in told)


async def test_streams_that_take_turns_are_no_difference_but_for_bad_luck() -> None:
    kinds = []
    for luck in range(12):
        manner = Manner(scaling=1.0, noise=0.1, first_s=0.0, luck=luck)
        result = await Sweep().run(bench(manner, streams="1,2,4"))
        kinds.append(result.verdict.kind)
        assert bool(result.verdict.winner) == (result.verdict.kind == "difference")
        if result.verdict.kind == "no difference":
            assert "one at a time" not in result.verdict.text, "three noisy repeats prove no cause"

    assert kinds.count("no difference") >= 10


async def test_no_knee_says_nothing_of_more_streams_than_were_measured() -> None:
    result = await Sweep().run(bench(Manner(scaling=0.0, first_s=0.0), streams="1,2,4"))

    assert "No knee up to 4 streams" in result.verdict.text
    assert "every step up to there paid" in result.verdict.text


async def test_one_repeat_gives_figures_and_no_verdict() -> None:
    result = await Sweep().run(bench(repeats="1", streams="1,2"))

    assert result.verdict.kind == "none"
    assert shown(result.tables[0].rows[0][1])


async def test_failing_requests_leave_no_figure() -> None:
    sweep = bench(Manner(fails_every=10))
    result = await Sweep().run(sweep)

    assert result.verdict.kind == "none"
    assert "No figure" in result.headline
    assert "HTTP 500" in result.headline
    assert [doubt.code for doubt in result.doubts if doubt.invalidates] == ["errors"]
    for table in result.tables:
        assert not any("tok/s" in column.unit for column in table.columns)


async def test_a_server_without_usage_has_no_rate() -> None:
    result = await Sweep().run(bench(Manner(tells_usage=False), streams="1,2"))

    assert result.verdict.kind == "none"
    assert "no usage" in result.headline


async def test_an_engine_that_dies_leaves_what_was_measured() -> None:
    sweep, design = bench(Manner(dies_after=60)), Sweep()
    with pytest.raises(RunStoppedError, match="connection refused"):
        await design.run(sweep)

    result = design.partial(sweep, "the target answers no more")
    rates = [row[1] for row in result.tables[0].rows if not isinstance(row[1], str)]
    assert number(rates[0]) is not None
    assert isinstance(rates[-1], Missing)
    assert result.verdict.kind == "none"


async def test_an_engine_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(ArmFailedError, match="does not answer: connection refused"):
        await Sweep().run(bench(Manner(dies_after=0)))


async def test_a_cancelled_sweep_tells_the_steps_that_ended() -> None:
    sweep, design = SmallBench(Sweep.offer, preset="quick", stop_at_step=2), Sweep()
    with pytest.raises(RunStoppedError):
        await design.run(sweep)

    result = design.partial(sweep, "cancelled")
    assert "cancelled" in result.verdict.text
    figures = [row[1] for row in result.tables[0].rows if not isinstance(row[1], str)]
    assert [isinstance(figure, Missing) for figure in figures] == [False, False, True]


async def test_a_target_that_forces_no_length_is_told_of() -> None:
    sweep = bench(Manner(refuses_ignore_eos=True), streams="1")
    await Sweep().run(sweep)

    assert [doubt.code for doubt in sweep.doubts] == ["free-length"]
    assert not any("ignore_eos" in each.body for each in sweep.requests[1:])


async def test_what_does_not_fit_the_window_is_refused_before_and_at_the_start() -> None:
    settled = settle(Sweep.offer, "standard", {"output_tokens": "9000"})
    plan = Sweep().plan(settled, KNOWN, RunTarget())
    assert "do not fit" in plan.refusal

    with pytest.raises(ArmFailedError, match="window of 8192"):
        await Sweep().run(bench(output_tokens="9000"))


def test_the_plan_tells_time_and_dollars_as_estimates() -> None:
    plan = Sweep().plan(settle(Sweep.offer, "quick", {}), KNOWN, RunTarget())

    assert plan.arms == ("1 stream", "2 streams", "4 streams")
    assert plan.requests == (1 + 2 + 4) * 2
    seconds, usd = number(plan.seconds), number(plan.usd)
    assert seconds is not None
    assert 2 < seconds < 30
    assert usd == pytest.approx(seconds * 0.44 / 3600)
    assert plan.intrusion == "shares"


def test_the_knee_of_a_measured_card() -> None:
    """The rates that A40s gave: with one the doubling to 32 is the first that brings little."""
    streams = (1, 4, 8, 16, 32)
    assert knee(streams, (77.6, 265.3, 496.8, 782.4, 1165.6)) == 16
    assert knee((1, 2, 4), (5.56, 9.85, 14.53)) == 2


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=6))
def test_speed_in_proportion_has_no_knee_and_a_flat_one_has_the_first(rates: list[float]) -> None:
    streams = [2**at for at in range(len(rates))]
    assert knee(streams, [rates[0] * count for count in streams]) is None
    assert knee(streams, [rates[0]] * len(streams)) == 1
