"""Lossless: exact, near-tie, corrupt with the fragment, and what cannot be told."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from a40console.experiments.answers_compared import compare
from a40console.experiments.bench import ArmFailedError, Request, RunStoppedError
from a40console.experiments.lossless import Lossless
from a40console.experiments.lossless_result import conclude
from a40console.model.experiment import settle
from a40console.model.figures import Missing
from a40console.model.run import RunTarget
from a40console.model.run_record import ArmEnd
from tests.experiments.small_engine import KNOWN, Manner, SmallBench
from tests.experiments.test_answers_compared import reply as probe


def bench(manner: Manner, **asked: str) -> SmallBench:
    return SmallBench(Lossless.offer, manner, asked=asked)


class _Uncounted(SmallBench):
    """Its engine counts no drafts."""

    def arm_ends(self, arm: str) -> Sequence[ArmEnd]:
        return [replace(end, server={}) for end in super().arm_ends(arm)]


class _FailsOnce(SmallBench):
    """Its engine's other token is far from likely, and one answer without speculation fails."""

    def _trouble(self, request: Request) -> tuple[str, int]:
        asked = sum(each.arm == "without" for each in self.requests)
        if request.arm == "without" and asked == 2 * 12:
            return "HTTP 500: out of luck", 500
        return super()._trouble(request)

    def _text(self, request: Request, tokens: int) -> tuple[str, tuple[Mapping[str, Any], ...]]:
        text, steps = super()._text(request, tokens)
        return text, tuple({**step, "logprob": step["logprob"] + 7} for step in steps)


class _EndsAMessage(SmallBench):
    """Its engine leaves the end of a message out of a text, if it is not told otherwise."""

    def _text(self, request: Request, tokens: int) -> tuple[str, tuple[Mapping[str, Any], ...]]:
        text, steps = super()._text(request, tokens)
        end = {"token": "<|im_end|>", "logprob": -0.1, "top_logprobs": ()}
        shown = "" if request.body.get("skip_special_tokens", True) else end["token"]
        return f"{shown}{text}", (end, *steps)


def _drafting() -> SmallBench:
    lossless = bench(Manner(deepest=5))
    end = ArmEnd(arm="with", repeat=0, wall_s=1.0, usd=0.0, server={"drafts": 9}, client={})
    lossless.record(end)
    return lossless


async def test_the_same_output_passes_with_the_number_of_drafts() -> None:
    lossless = bench(Manner(deepest=5))
    result = await Lossless().run(lossless)

    assert result.verdict.kind == "passed"
    assert "all 12 probes" in result.verdict.text
    assert "drafts" in result.verdict.text
    assert lossless.small.told == ["off", "5"]
    assert {each.body["temperature"] for each in lossless.requests} == {0}


async def test_corrupt_code_fails_with_the_spliced_fragment() -> None:
    result = await Lossless().run(bench(Manner(deepest=5, corrupts=True)))

    assert result.verdict.kind == "failed"
    assert "corrupts code at depth 5" in result.verdict.text
    assert result.verdict.paste == "a40console engine speculation off"
    assert "'(n-1' came out again" in result.excerpts[0]
    assert {row[1] for row in result.tables[0].rows} == {"corrupt"}


async def test_corrupt_code_is_found_without_logprobs_too() -> None:
    manner = Manner(deepest=5, corrupts=True, tells_logprobs=False)
    result = await Lossless().run(bench(manner))

    assert result.verdict.kind == "failed"
    assert "'(n-1'" in result.verdict.text


async def test_a_near_tie_passes_and_tells_its_gap() -> None:
    result = await Lossless().run(bench(Manner(deepest=5, near_tie=True)))

    assert result.verdict.kind == "passed"
    assert "near-tie of 0.030 nats" in result.verdict.text


async def test_a_near_tie_after_the_end_of_a_message_is_one() -> None:
    """As vLLM told it: logprobs of a token that its text left out."""
    ends = _EndsAMessage(Lossless.offer, Manner(deepest=5, near_tie=True))
    result = await Lossless().run(ends)

    assert result.verdict.kind == "passed"
    assert {row[1] for row in result.tables[0].rows} == {"near-tie"}


async def test_a_difference_without_logprobs_is_no_verdict() -> None:
    manner = Manner(deepest=5, near_tie=True, tells_logprobs=False)
    result = await Lossless().run(bench(manner))

    assert result.verdict.kind == "none"
    assert "12 of 12 probes differ, and rounding cannot be told from damage" in result.verdict.text
    assert "tells no logprobs of the place" in result.verdict.text


async def test_where_drafts_are_not_counted_nothing_passes() -> None:
    result = await Lossless().run(_Uncounted(Lossless.offer, Manner(deepest=5)))

    assert result.verdict.kind == "none"
    assert "Drafts are not counted" in result.verdict.text


async def test_an_unsteady_engine_is_not_said_to_tell_no_logprobs() -> None:
    unsteady = compare("p", "", probe("a b c"), probe("a b d"), probe("a x y"))
    verdict = conclude(_drafting(), [unsteady], "", depth=5, baseline="off-live").verdict

    assert verdict.kind == "none"
    assert "differs from itself" in verdict.text
    assert "logprobs" not in verdict.text


async def test_of_one_answer_without_speculation_nothing_tells_that_it_is_steady() -> None:
    result = await Lossless().run(_FailsOnce(Lossless.offer, Manner(deepest=5, near_tie=True)))

    kinds = [row[1] for row in result.tables[0].rows]
    assert kinds == ["corrupt"] * 11 + ["unexplained"]


async def test_where_nothing_is_drafted_nothing_was_tested() -> None:
    manner = Manner(deepest=5)
    lossless = bench(manner, baseline="off")
    lossless.small.manner.refuses_live = True
    lossless.small.depth = 0
    result = await Lossless().run(lossless)

    assert result.verdict.kind == "none"
    assert "Nothing was drafted" in result.verdict.text


@pytest.mark.parametrize(
    ("refuses_live", "restarts", "told"),
    [
        (False, [], "against itself with speculation turned off"),
        (True, ["off", "as-was"], "against an engine started without"),
    ],
)
async def test_the_baseline_is_one_that_the_engine_can_do_and_is_named(
    refuses_live: bool, restarts: list[str], told: str
) -> None:
    lossless = bench(Manner(deepest=5, refuses_live=refuses_live))
    result = await Lossless().run(lossless)

    assert lossless.small.restarts == restarts
    assert result.verdict.kind == "passed"
    assert told in result.headline
    assert told in result.verdict.text


async def test_against_another_start_the_engine_is_put_back() -> None:
    lossless = bench(Manner(deepest=5, corrupts=True), baseline="off")
    result = await Lossless().run(lossless)

    assert lossless.small.restarts == ["off", "as-was"]
    assert result.verdict.kind == "failed"
    assert tomllib.loads(result.verdict.paste) == {"speculation": {"enabled": False}}


@pytest.mark.parametrize(
    ("manner", "asked", "why"),
    [
        (Manner(deepest=0), {}, "started without speculation"),
        (Manner(deepest=5), {"depth": "6"}, "deeper than the 5"),
        (Manner(deepest=5, refuses_live=True), {"baseline": "off-live"}, "baseline=off"),
        (Manner(deepest=5, refuses_live=True, refuses_restart=True), {}, "not started without"),
        (Manner(deepest=5, refuses_restart=True), {"baseline": "off"}, "not started without"),
        (Manner(deepest=5, dies_after=0), {}, "connection refused"),
    ],
)
async def test_what_cannot_be_compared_says_why(
    manner: Manner, asked: dict[str, str], why: str
) -> None:
    with pytest.raises(ArmFailedError, match=why):
        await Lossless().run(bench(manner, **asked))


@pytest.mark.parametrize(
    ("depth", "live", "baseline", "why", "intrusion"),
    [
        (0, True, "auto", "start it from a profile with `[speculation] enabled", "shares"),
        (Missing("not ours"), False, "auto", "not ours", "restarts"),
        (5, False, "off-live", "baseline=off", "shares"),
        (5, False, "off", "", "restarts"),
        (5, True, "off", "", "restarts"),
        (5, False, "auto", "", "restarts"),
        (5, True, "auto", "", "shares"),
        (5, True, "off-live", "", "shares"),
    ],
)
def test_the_plan_says_what_the_baseline_takes_and_refuses_what_cannot_be(
    depth: int | Missing, live: bool, baseline: str, why: str, intrusion: str
) -> None:
    known = replace(KNOWN, speculation_depth=depth, live_speculation=live)
    settled = settle(Lossless.offer, "standard", {"baseline": baseline})
    plan = Lossless().plan(settled, known, RunTarget())

    assert why in plan.refusal
    assert bool(plan.refusal) == bool(why)
    assert plan.intrusion == intrusion


async def test_an_engine_that_dies_under_speculation_leaves_no_verdict() -> None:
    lossless, design = bench(Manner(deepest=5, dies_after=30)), Lossless()
    with pytest.raises(RunStoppedError, match="connection refused"):
        await design.run(lossless)

    result = design.partial(lossless, "it died")
    assert result.verdict.kind == "none"


async def test_errors_leave_no_verdict() -> None:
    lossless = bench(Manner(deepest=5, fails_every=10, corrupts=True))
    result = await Lossless().run(lossless)

    assert result.verdict.kind == "none"
    assert any(doubt.invalidates for doubt in result.doubts)
