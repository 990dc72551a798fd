"""What two runs may say together, and what they may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.ledger.comparison import compare
from a40console.ledger.store import Ledger
from a40console.model.figures import Missing
from a40console.model.run import Comparison, Run, RunEnvironment, RunTarget
from a40console.model.run_result import Interval
from tests import make_runs

LEFT = make_runs.run()


def other(**changes: Any) -> Run:
    """A repeat of the same, with what is changed."""
    return make_runs.run(**({"id": "20261130-170000-compaction-0b0b"} | changes))


def placed(**changes: Any) -> RunEnvironment:
    return make_runs.environment(**changes)


def compared(right: Run, left: Run = LEFT) -> Comparison:
    return compare(
        left,
        right,
        samples=(make_runs.samples(left), make_runs.samples(right)),
        arm_ends=(make_runs.arm_ends(left), make_runs.arm_ends(right)),
    )


def counted(comparison: Comparison) -> list[str]:
    return [each.name for each in comparison.differences if each.weight != "note"]


def effective(**changes: str) -> dict[str, str]:
    return {**placed().effective, **changes}


def argv(*more: str) -> tuple[str, ...]:
    return (*placed().argv, *more)


def test_a_repeat_differs_in_nothing() -> None:
    told = compared(other())
    assert told.differences == ()
    assert not told.attributable
    assert "No recorded setting differs" in told.verdict


ONE_VARIABLE: list[tuple[str, dict[str, Any]]] = [
    ("settled.turns", {"settled": {**LEFT.settled, "turns": "60"}}),
    ("seed", {"spec": replace(LEFT.spec, seed=8)}),
    ("target.kind", {"spec": replace(LEFT.spec, target=RunTarget(kind="gateway"))}),
    ("environment.vcpu_quota", {"environment": placed(vcpu_quota=41.0)}),
    ("environment.host", {"environment": placed(host="77c2d1")}),
    ("environment.engine_version", {"environment": placed(engine_version="0.33.0")}),
    ("environment.gpu", {"environment": placed(gpu="NVIDIA L40S")}),
    ("environment.gpu_count", {"environment": placed(gpu_count=2)}),
    ("environment.driver", {"environment": placed(driver=Missing("not read"))}),
    ("environment.model_digest", {"environment": placed(model_digest="77" * 32)}),
    ("environment.config_digest", {"environment": placed(config_digest="77" * 32)}),
    (
        "effective.speculation",
        {"environment": placed(effective=effective(speculation="off"), config_digest="0")},
    ),
    (
        "asked.block_size",
        {"environment": placed(argv=argv("--block-size", "32"), config_digest="0")},
    ),
    (
        "effective.prefix_caching",
        {"environment": placed(effective=effective(prefix_caching="off"), config_digest="0")},
    ),
]


@pytest.mark.parametrize(("name", "changes"), ONE_VARIABLE, ids=[name for name, _ in ONE_VARIABLE])
def test_one_change_is_named_and_counted_once(name: str, changes: dict[str, Any]) -> None:
    told = compared(other(**changes))
    assert counted(told) == [name]
    assert told.attributable
    assert f"Only {name} differs" in told.verdict


@given(
    pair=st.lists(
        st.sampled_from([name for name, _ in ONE_VARIABLE if name[:4] in ("sett", "seed", "envi")]),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_two_changes_are_never_one_effect(pair: list[str]) -> None:
    changes = dict(ONE_VARIABLE)
    fields: dict[str, Any] = {}
    for name in pair:
        for field, value in changes[name].items():
            if field == "environment" and field in fields:
                short = name.removeprefix("environment.")
                value = replace(fields[field], **{short: getattr(value, short)})
            fields[field] = value
    told = compared(other(**fields))
    assert sorted(counted(told)) == sorted(pair)
    assert not told.attributable
    assert "2 settings differ" in told.verdict
    for name in pair:
        assert name in told.verdict


def test_a_flag_its_effect_and_its_digest_are_one_change() -> None:
    drafted = placed(
        argv=argv("--speculative-config", '{"method":"ngram"}', "--worker-extension-cls=x"),
        effective=effective(speculation="ngram", cudagraph_mode="NONE", async_scheduling="False"),
        config_digest="0" * 64,
        profile="qwen3-coder-spec",
    )
    plain = placed(effective=effective(speculation="off"))
    told = compared(other(environment=drafted), replace(LEFT, environment=plain))
    assert counted(told) == ["effective.speculation"]
    notes = {each.name for each in told.differences if each.weight == "note"}
    assert notes == {
        "effective.async_scheduling",
        "effective.cudagraph_mode",
        "environment.config_digest",
        "environment.profile",
    }


def test_depth_and_batched_tokens_are_two_variables() -> None:
    def at(depth: int, tokens: int) -> RunEnvironment:
        return placed(
            argv=argv(
                *("--speculative-config", f'{{"num_speculative_tokens":{depth}}}'),
                *("--max-num-batched-tokens", str(tokens)),
            ),
            effective=effective(speculation=f"ngram {depth}", max_num_batched_tokens=str(tokens)),
        )

    told = compared(other(environment=at(12, 16384)), replace(LEFT, environment=at(5, 2048)))
    assert counted(told) == ["effective.max_num_batched_tokens", "effective.speculation"]
    assert not told.attributable


def test_a_flag_that_is_not_in_force_changed_nothing() -> None:
    asked = placed(argv=argv("--enable-prefix-caching"), config_digest="0")
    told = compared(other(environment=asked), replace(LEFT, environment=placed(config_digest="0")))
    assert counted(told) == []
    assert [each.name for each in told.differences] == ["asked.prefix_caching"]


def test_what_neither_knows_is_no_difference_but_what_one_knows_is() -> None:
    left = replace(LEFT, environment=placed(driver=Missing("no GPU"), host=Missing("not told")))
    told = compared(other(environment=placed(driver=Missing("not read"))), left)
    assert [each.name for each in told.differences] == ["environment.host"]


def test_where_it_listens_and_what_it_costs_change_no_figure() -> None:
    moved = placed(argv=argv("--uds", "/tmp/x.sock", "--port=8001"), usd_per_h=0.79)
    told = compared(other(environment=moved, spec=replace(LEFT.spec, max_usd=None, note="again")))
    assert counted(told) == []
    assert {each.name for each in told.differences} == {"environment.usd_per_h", "max_usd"}


REFUSED: list[tuple[Run, str]] = [
    (make_runs.simulated(), "simulated engine"),
    (make_runs.invalid(id="x", spec=LEFT.spec), "is invalid: the client was saturated"),
    (make_runs.failed(id="x", spec=LEFT.spec), "failed"),
    (make_runs.running(), "has not ended"),
    (make_runs.sweep(), "two experiments"),
    (LEFT, "one and the same run"),
]


@pytest.mark.parametrize(("right", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_may_not_stand_side_by_side_has_no_figure(right: Run, words: str) -> None:
    for told in (compared(right), compared(LEFT, right)):
        assert told.verdict.startswith("Not compared")
        assert words in told.verdict
        assert told.ratios == ()
        assert not told.attributable


def test_two_simulated_runs_may_be_compared_and_say_so() -> None:
    left = make_runs.simulated()
    told = compared(replace(left, id="x", settled={**left.settled, "turns": "60"}), left)
    assert told.attributable
    assert told.verdict.startswith("SIMULATED")


def test_a_reference_row_is_marked_and_nothing_is_put_down_to_a_setting() -> None:
    left = make_runs.sweep(settled=make_runs.reference().settled)
    told = compare(left, make_runs.reference())
    assert "REFERENCE" in told.verdict
    assert not told.attributable
    cells = {(each.arm, each.figure): each for each in told.ratios}
    assert len(cells) >= 5
    for each in cells.values():
        assert each.left == each.right
        assert isinstance(each.ratio, Missing)
    assert "cannot be told from noise" in told.verdict


def test_figures_of_shared_arms_have_intervals_over_repeats() -> None:
    slower = tuple(replace(end, wall_s=end.wall_s * 2) for end in make_runs.arm_ends(LEFT))
    told = compare(
        LEFT,
        other(settled={**LEFT.settled, "turns": "60"}),
        samples=(make_runs.samples(LEFT), make_runs.samples(LEFT)),
        arm_ends=(make_runs.arm_ends(LEFT), slower),
    )
    found = {(each.arm, each.figure): each for each in told.ratios}
    wall = found["block", "wall_s"]
    assert isinstance(wall.ratio, Interval)
    assert wall.ratio.value == pytest.approx(2)
    assert wall.ratio.repeats == make_runs.REPEATS
    same = found["block", "ttft_s"]
    assert isinstance(same.ratio, Interval)
    assert same.ratio.low <= 1 <= same.ratio.high
    assert "block 2.00 ×" in told.verdict
    timed = [
        sample
        for sample in make_runs.samples(LEFT)
        if (sample.arm, sample.repeat, sample.warm_up) == ("block", 0, False)
    ]
    last = timed[-1]
    assert isinstance(last.total_s, float)
    span_s = last.due_s + last.total_s - timed[0].due_s
    rate = found["block", "generated_tok_per_s"]
    assert rate.left == pytest.approx(256 * len(timed) / span_s, rel=0.1)
    assert found["none", "generated_tok_per_s"].left != rate.left
    good = [
        sample.ttft_s
        for sample in make_runs.samples(LEFT)
        if sample.arm == "none" and not sample.warm_up and not sample.error
    ]
    means = [value for value in good if isinstance(value, float)]
    assert found["none", "ttft_s"].left == pytest.approx(fmean(means), rel=0.02)
    assert found["none", "errors"].left > 0  # type: ignore[operator]
    assert ("block", "errors") not in found, "there were none on either side"


def test_a_repeat_in_which_a_request_failed_has_no_time_and_no_price() -> None:
    samples, ends = make_runs.samples(LEFT), make_runs.arm_ends(LEFT)
    broken = tuple(
        replace(sample, error="HTTP 500")
        if (sample.arm, sample.repeat, sample.index) == ("block", 0, 1)
        else sample
        for sample in samples
    )
    thinned = tuple(
        replace(end, client={**end.client, "errors": 1})
        if (end.arm, end.repeat) == ("block", 0)
        else end
        for end in ends
    )
    for right in ((broken, ends), ((), thinned)):
        told = compare(
            LEFT,
            other(),
            samples=(samples, right[0]),
            arm_ends=(ends, right[1]),
        )
        found = {(each.arm, each.figure): each for each in told.ratios}
        for figure in ("wall_s", "usd"):
            ratio = found["block", figure].ratio
            assert isinstance(ratio, Interval)
            assert ratio.repeats == make_runs.REPEATS - 1
        wall = found["per-turn", "wall_s"].ratio
        assert isinstance(wall, Interval)
        assert wall.repeats == make_runs.REPEATS


def test_an_answer_whose_end_nobody_knows_gives_no_rate() -> None:
    ends = make_runs.arm_ends(LEFT)
    untold = tuple(
        replace(sample, total_s=Missing("the answer is empty")) if sample.arm == "block" else sample
        for sample in make_runs.samples(LEFT)
    )
    told = compare(
        LEFT,
        other(),
        samples=(make_runs.samples(LEFT), untold),
        arm_ends=(ends, ends),
    )
    found = {(each.arm, each.figure): each for each in told.ratios}
    assert isinstance(found["block", "generated_tok_per_s"].right, Missing)
    assert isinstance(found["per-turn", "generated_tok_per_s"].right, float)


def test_what_differs_without_a_recorded_cause_is_not_called_noise() -> None:
    slower = tuple(replace(end, wall_s=end.wall_s * 2) for end in make_runs.arm_ends(LEFT))
    ends = (make_runs.arm_ends(LEFT), slower)
    told = compare(LEFT, other(), arm_ends=ends)
    assert not told.attributable
    assert "2.00 ×" in told.verdict
    assert "noise" not in told.verdict


def test_an_arm_of_one_run_only_is_not_compared() -> None:
    ends: tuple[Sequence[Any], Sequence[Any]] = (
        make_runs.arm_ends(LEFT),
        [end for end in make_runs.arm_ends(LEFT) if end.arm != "block"],
    )
    told = compare(LEFT, other(), arm_ends=ends)
    assert {each.arm for each in told.ratios} == set(make_runs.ARMS) - {"block"}


def test_the_ledger_compares_with_what_it_kept(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    for run in (LEFT, other(settled={**LEFT.settled, "turns": "60"})):
        ledger._update(run, make_runs.samples(run), make_runs.arm_ends(run))
    told = ledger.compare(LEFT.id, "20261130-17")
    assert counted(told) == ["settled.turns"]
    assert any(isinstance(each.ratio, Interval) for each in told.ratios)
    ledger.close()
