"""What the client counted beside what the engine counted, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.arm_totals import client_totals, deltas, doubts_of_arm
from a40console.model.figures import Figure, Missing, number
from a40console.model.run_record import NO_USAGE, Sample

TURN = Sample(
    arm="a",
    repeat=0,
    index=0,
    warm_up=False,
    due_s=0.0,
    sent_s=0.0,
    ttft_s=0.1,
    total_s=1.0,
    prompt_tokens=1000,
    cached_tokens=800,
    generated_tokens=50,
)
FAILED = replace(
    TURN,
    error="HTTP 500",
    ttft_s=Missing("failed"),
    total_s=Missing("failed"),
    prompt_tokens=NO_USAGE,
    cached_tokens=NO_USAGE,
    generated_tokens=NO_USAGE,
)


def told(
    samples: list[Sample],
    *,
    client: dict[str, Figure] | None = None,
    server: dict[str, Figure] | None = None,
    machine: dict[str, Figure] | None = None,
) -> dict[str, bool]:
    """The codes of the doubts, and whether they invalidate."""
    doubts = doubts_of_arm(
        "a",
        wall_s=10.0,
        client=client_totals(samples) | (client or {}),
        server=server or {},
        machine=machine or {},
    )
    assert all(doubt.arm == "a" and doubt.text for doubt in doubts)
    return {doubt.code: doubt.invalidates for doubt in doubts}


def as_server(samples: list[Sample], **more: float) -> dict[str, Figure]:
    """What an engine counts that does what the client says, and so much more."""
    totals = client_totals(samples)
    names = ("requests", "prompt_tokens", "cached_tokens", "generated_tokens")
    return {name: (number(totals[name]) or 0) + more.get(name, 0) for name in names}


def test_totals_count_what_the_engine_counts() -> None:
    counting = replace(TURN, role="count", prompt_tokens=7)
    totals = client_totals([TURN, TURN, counting, FAILED])
    assert totals["requests"] == 2
    assert totals["errors"] == 1
    assert totals["prompt_tokens"] == 2000
    assert totals["cached_tokens"] == 1600


def test_one_answer_without_usage_makes_no_sum() -> None:
    bare = replace(TURN, generated_tokens=NO_USAGE)
    totals = client_totals([TURN, bare])
    assert totals["generated_tokens"] == NO_USAGE
    assert totals["without_usage"] == 1
    assert told([TURN, bare]) == {"no-usage": False}


def test_of_nothing_nothing_is_told() -> None:
    totals = client_totals([])
    assert isinstance(totals["prompt_tokens"], Missing)
    assert told([]) == {}


@given(st.integers(1, 60), st.integers(0, 3000), st.integers(0, 500))
def test_an_engine_that_counts_the_same_raises_no_doubt(
    requests: int, prompt: int, generated: int
) -> None:
    turn = replace(TURN, prompt_tokens=prompt, cached_tokens=0, generated_tokens=generated)
    samples = [turn] * requests
    assert told(samples, server=as_server(samples)) == {}


@given(st.integers(1, 60), st.integers(1, 60))
def test_requests_of_others_never_pass(requests: int, foreign: int) -> None:
    samples = [TURN] * requests
    server = as_server(
        samples, requests=foreign, prompt_tokens=400 * foreign, generated_tokens=9 * foreign
    )
    assert told(samples, server=server) == {"foreign-traffic": foreign / requests > 0.01}


def test_a_foreign_prompt_alone_is_seen() -> None:
    """It is read within the arm and answered after it."""
    samples = [TURN] * 10
    assert told(samples, server=as_server(samples, prompt_tokens=3000)) == {"foreign-traffic": True}


@pytest.mark.parametrize(
    ("more", "doubted"),
    [
        ({"generated_tokens": 2.0}, False),
        ({"generated_tokens": 6.0}, True),
        ({"generated_tokens": -6.0}, True),
        ({"cached_tokens": -200.0}, True),
        ({"prompt_tokens": -90.0}, False),
        ({"requests": -3.0}, True),
    ],
)
def test_other_figures_disagree_beyond_what_a_counter_is_late(
    more: dict[str, float], doubted: bool
) -> None:
    samples = [TURN] * 10
    expected = {"counters-disagree": False} if doubted else {}
    assert told(samples, server=as_server(samples, **more)) == expected


def test_what_failed_explains_what_the_engine_counts_beyond_the_answers() -> None:
    samples = [TURN] * 9 + [FAILED]
    server = as_server(samples, requests=1, prompt_tokens=1000, generated_tokens=30)
    assert told(samples, server=server) == {"request-errors": False}
    foreign = as_server(samples, requests=2, prompt_tokens=2000, generated_tokens=60)
    assert told(samples, server=foreign) == {"request-errors": False, "foreign-traffic": True}


def test_an_arm_of_errors_says_nothing() -> None:
    assert told([FAILED, FAILED]) == {"request-errors": True}


def test_a_counter_that_nobody_tells_is_compared_with_nothing() -> None:
    samples = [TURN] * 3
    untold = dict.fromkeys(as_server(samples), Missing("no such counter"))
    assert told(samples, server=dict(untold)) == {}


@pytest.mark.parametrize("step_s", [0.0, 0.2, 0.3, 3600.0])
def test_a_clock_that_was_set_invalidates(step_s: float) -> None:
    assert told([TURN], client={"clock_step_s": step_s}) == (
        {"clock-step": True} if step_s > 0.25 else {}
    )


def test_throttling_is_told_and_stands() -> None:
    machine: dict[str, Figure] = {"vcpu_throttled_s": 0.6, "gpu_throttled_s": 0.4}
    assert told([TURN], machine=machine) == {"vcpu-throttled": False}
    machine = {"vcpu_throttled_s": Missing("no quota"), "gpu_throttled_s": 0.6}
    assert told([TURN], machine=machine) == {"gpu-throttled": False}


def test_counters_that_began_anew_have_no_delta() -> None:
    before: dict[str, Figure] = {"requests": 10, "passes": 5, "drafted_tokens": Missing("off")}
    after: dict[str, Figure] = {"requests": 14, "passes": 2, "drafted_tokens": 3, "new": 1}
    rose = deltas(before, after)
    assert rose["requests"] == 4
    assert all(isinstance(rose[name], Missing) for name in ("passes", "drafted_tokens", "new"))
