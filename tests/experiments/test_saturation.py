"""A client that is too busy: which figures it falsifies, and what stands all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.compaction import Compaction
from a40console.experiments.regimes import Regimes
from a40console.experiments.saturation import in_time, spoiled
from a40console.experiments.sweep import Sweep
from a40console.model.experiment import settle
from a40console.model.figures import Figure, Missing
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Interval, RunResult
from tests.experiments.paper_bench import PaperBench, PaperEngine
from tests.experiments.small_engine import Manner, SmallBench, shown

LATE: dict[str, Figure] = {"loop_lag_mean_s": 0.004, "loop_lag_p99_s": 0.02, "cpu_cores": 0.3}
"""A busy machine: 8 % of a first token that takes 50 ms, and next to nothing of a request."""

HELD_UP: dict[str, Figure] = {"loop_lag_mean_s": 0.3, "loop_lag_p99_s": 2.0, "cpu_cores": 0.3}
STREAMS = ("1 stream", "4 streams")


def end_of(**client: Figure) -> ArmEnd:
    return ArmEnd(arm="a", repeat=0, wall_s=10.0, usd=0.0, client=client)


def sample_of(total_s: float, ttft_s: float = 0.02) -> Sample:
    return Sample(
        arm="a",
        repeat=0,
        index=0,
        warm_up=False,
        due_s=0.0,
        sent_s=0.0,
        ttft_s=ttft_s,
        total_s=total_s,
    )


@pytest.mark.parametrize(
    ("client", "is_spoiled"),
    [
        ({"loop_lag_mean_s": 0.045, "cpu_cores": 0.6}, False),
        ({"loop_lag_mean_s": 0.055, "cpu_cores": 0.1}, True),
        ({"loop_lag_mean_s": 0.001, "cpu_cores": 0.75}, True),
        ({"loop_lag_mean_s": Missing("too short"), "cpu_cores": Missing("too short")}, False),
        ({}, False),
    ],
)
def test_seconds_are_judged_by_how_long_a_request_takes(
    client: dict[str, Figure], is_spoiled: bool
) -> None:
    """Of a request of 1 s, 50 ms are 5 %, however soon its first token comes."""
    assert bool(spoiled(end_of(**client), [sample_of(1.0)])) == is_spoiled


def test_a_quick_answer_does_not_make_every_client_slow() -> None:
    assert not spoiled(end_of(loop_lag_mean_s=0.0009), [sample_of(0.002)])
    assert spoiled(end_of(loop_lag_mean_s=0.0011), [sample_of(0.002)])


@given(
    st.floats(1e-3, 10), st.lists(st.floats(0, 10), min_size=1, max_size=5), st.floats(0.01, 0.5)
)
def test_a_figure_rests_on_repeats_of_small_lag_alone(
    value_s: float, lags_s: list[float], most_share: float
) -> None:
    samples = [replace(sample_of(value_s), repeat=at) for at in range(len(lags_s))]
    ends = [replace(end_of(lag=lag_s), repeat=at) for at, lag_s in enumerate(lags_s)]
    kept: list[set[int]] = []

    def figure_of(few: Sequence[Sample]) -> Figure:
        kept.append({sample.repeat for sample in few})
        return value_s

    told, said = in_time(figure_of, samples, ends, "lag", most_share)
    good = {at for at, lag_s in enumerate(lags_s) if lag_s <= max(0.001, most_share * value_s)}
    assert bool(said) == (len(good) < len(lags_s))
    if len(good) < len(lags_s) and len(good) < 2:
        assert isinstance(told, Missing)
    else:
        assert told == value_s
        assert kept[-1] == good


def swept(loads: dict[tuple[str, int], dict[str, Figure]]) -> SmallBench:
    asked = {"output_tokens": "32", "streams": "1,4", "requests": "8"}
    return SmallBench(Sweep.offer, Manner(loads=loads), asked=asked)


async def test_a_busy_machine_takes_latencies_away_and_no_speed() -> None:
    bench = swept({(arm, repeat): LATE for arm in STREAMS for repeat in range(3)})
    result = await Sweep().run(bench)

    (table,) = result.tables
    row = {column.title: cell for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert isinstance(row["TTFT median"], Missing)
    assert "4.0 ms late" in row["TTFT median"].reason
    assert isinstance(row["gap p99"], Missing)
    assert isinstance(row["gap median"], Missing), "gaps of 12.5 ms"
    assert shown(row["sustained"])
    assert result.verdict.kind == "difference"
    assert {(doubt.code, doubt.invalidates) for doubt in result.doubts} == {("client-late", False)}
    assert [doubt.arm for doubt in result.doubts] == list(STREAMS)


async def test_latencies_are_told_of_the_repeats_in_which_the_client_was_in_time() -> None:
    bench = swept({("1 stream", 1): LATE})
    result = await Sweep().run(bench)

    assert shown(result.tables[0].rows[0][6]) == pytest.approx(0.05)
    (doubt,) = result.doubts
    assert (doubt.code, doubt.arm, doubt.invalidates) == ("client-late", "1 stream", False)
    assert "TTFT median over 2 of 3 repeats" in doubt.text


async def test_a_quiet_machine_tells_everything() -> None:
    prompt: dict[str, Figure] = {"loop_lag_mean_s": 0.0002, "loop_lag_p99_s": 0.0009}
    bench = swept({(arm, repeat): prompt for arm in STREAMS for repeat in range(3)})
    result = await Sweep().run(bench)

    assert not any(isinstance(cell, Missing) for row in result.tables[0].rows for cell in row)
    assert not result.doubts


async def test_a_spoiled_repeat_is_left_out_and_the_others_stand() -> None:
    bench = swept({("4 streams", 1): HELD_UP})
    result = await Sweep().run(bench)

    assert result.verdict.kind == "difference"
    assert isinstance(result.verdict.ratio, Interval)
    assert result.verdict.ratio.repeats == 2
    (doubt,) = result.doubts
    assert (doubt.code, doubt.arm, doubt.invalidates) == ("client-saturated", "4 streams", False)
    assert "1 of 3 repeats, left out: repeat 2" in doubt.text
    assert "of 2 repeats" in result.verdict.text, "the knee is told of what stands"


async def test_fewer_than_two_repeats_left_make_the_run_invalid() -> None:
    bench = swept({("1 stream", 0): HELD_UP, ("1 stream", 2): {"cpu_cores": 0.9}})
    result = await Sweep().run(bench)

    (doubt,) = result.doubts
    assert (doubt.code, doubt.invalidates) == ("client-saturated", True)
    assert "0.90 of a core" in doubt.text
    assert "1 left of at least 2" in doubt.text


async def test_of_one_repeat_that_is_spoiled_nothing_is_left() -> None:
    loads = {("1 stream", 0): HELD_UP}
    asked = {"streams": "1", "repeats": "1"}
    bench = SmallBench(Sweep.offer, Manner(loads=loads), asked=asked)
    result = await Sweep().run(bench)

    assert result.headline == "No figure: the client was the limit"
    (doubt,) = result.doubts
    assert doubt.invalidates
    assert "in its only repeat, which is left out: bytes waited" in doubt.text


async def test_requests_that_failed_in_a_repeat_left_out_are_told_all_the_same() -> None:
    manner = Manner(loads={("1 stream", 0): HELD_UP}, fails_every=60)
    bench = SmallBench(Sweep.offer, manner, asked={"streams": "1", "requests": "20"})
    result = await Sweep().run(bench)

    (errors,) = [doubt for doubt in result.doubts if doubt.code == "errors"]
    assert errors.text.startswith("1 of 63 requests failed")


async def test_where_no_latency_is_told_a_late_first_token_is_nobodys_doubt() -> None:
    asked = {"output_tokens": "64", "streams": "1", "regimes": "prose"}
    bench = SmallBench(Regimes.offer, Manner(deepest=4), asked=asked)
    await Regimes().run(bench)
    loads = {(end.arm, end.repeat): LATE for end in bench.records if isinstance(end, ArmEnd)}
    bench = SmallBench(Regimes.offer, Manner(deepest=4, loads=loads), asked=asked)
    result = await Regimes().run(bench)

    assert result.verdict.kind != "none"
    assert not result.doubts


async def compacted(lag_s: dict[tuple[str, int], float]) -> RunResult:
    asked = {"turns": "60", "facts": "0", "ways": "per-turn,block"}
    engine = PaperEngine(lag_s=lag_s)
    bench = PaperBench(engine, settle(Compaction.offer, "standard", asked))
    return await Compaction().run(bench)


async def test_one_stall_in_the_last_session_costs_that_session_alone() -> None:
    result = await compacted({("per-turn-2.9k", 2): 1.0})

    assert result.verdict.winner == "block-2.9k"
    assert isinstance(result.verdict.ratio, Interval)
    assert result.verdict.ratio.repeats == 2
    assert [row[-1] for row in result.tables[0].rows] == [2, 3]
    assert [(doubt.code, doubt.invalidates) for doubt in result.doubts] == [
        ("client-saturated", False)
    ]


async def test_two_stalls_in_one_arm_leave_no_run() -> None:
    result = await compacted({("block-2.9k", 0): 1.0, ("block-2.9k", 2): 1.0})

    assert [doubt.invalidates for doubt in result.doubts] == [True]
    assert result.verdict.kind == "none"
