"""An engine that keeps ending is not started for ever; a change of speculation is checked."""

from __future__ import annotations

import pytest

from a40console.errors import RefusedError, UsageError
from a40console.model.profile import Profile, Speculation
from a40console.operations.speculation import turned_live, with_speculation
from a40console.operations.watch import RestartPolicy


def test_three_restarts_with_growing_delays_then_none() -> None:
    policy = RestartPolicy()
    assert [policy.delay_s(at) for at in (0.0, 10.0, 20.0, 30.0)] == [1.0, 5.0, 20.0, None]


def test_an_engine_that_ran_long_enough_starts_with_a_clean_slate() -> None:
    policy = RestartPolicy()
    for at_s in (0.0, 1.0, 2.0):
        policy.delay_s(at_s)
    assert policy.delay_s(700.0) == 1.0


def test_what_was_asked_for_anew_starts_with_a_clean_slate() -> None:
    policy = RestartPolicy()
    for at_s in (0.0, 1.0, 2.0):
        policy.delay_s(at_s)
    assert policy.delay_s(3.0) is None
    assert policy.in_words() == "3 restarts within 10 min"
    policy.begin_anew()
    assert policy.delay_s(4.0) == 1.0


def test_it_can_be_turned_off() -> None:
    assert RestartPolicy(enabled=False).in_words() == "[service] restart_engine is off"
    assert RestartPolicy(enabled=False).delay_s(0.0) is None


def profile(speculation: Speculation | None) -> Profile:
    return Profile(name="x", kind="vllm", model="m", speculation=speculation)


def test_speculation_on_off_and_at_a_depth() -> None:
    base = profile(Speculation(tokens=5))
    on = with_speculation(base, "on").speculation
    deep = with_speculation(base, "24").speculation
    assert on is not None
    assert deep is not None
    assert (on.enabled, on.tokens) == (True, 5)
    assert (deep.enabled, deep.tokens) == (True, 24)
    assert with_speculation(with_speculation(base, "on"), "off") == base


@pytest.mark.parametrize("mode", ["", "maybe", "-1", "0", "1.5", "1001", "9" * 40])
def test_a_mode_that_means_nothing_is_a_usage_error(mode: str) -> None:
    with pytest.raises(UsageError):
        with_speculation(profile(Speculation(tokens=5)), mode)


def test_an_engine_that_is_ready_in_any_case_stays_so() -> None:
    base = profile(Speculation(tokens=5, start="off"))
    assert with_speculation(base, "on").speculation == Speculation(
        tokens=5, start="on", enabled=True
    )
    assert with_speculation(base, "3").speculation == Speculation(tokens=5, start=3, enabled=True)
    assert with_speculation(base, "9").speculation == Speculation(
        tokens=9, start="on", enabled=True
    )
    assert with_speculation(with_speculation(base, "3"), "off") == base


@pytest.mark.parametrize(("tokens", "begins"), [(0, 0), (3, 3), (5, 5)])
def test_what_was_turned_live_begins_there_again(tokens: int, begins: int) -> None:
    for asked in (Speculation(tokens=5, enabled=True), Speculation(tokens=5, start="off")):
        turned = turned_live(profile(asked), tokens).speculation
        assert turned is not None
        assert (turned.ready, turned.start_tokens, turned.tokens) == (True, begins, 5)


@pytest.mark.parametrize("mode", ["on", "off", "3"])
def test_a_locked_profile_refuses_with_its_reason(mode: str) -> None:
    with pytest.raises(RefusedError) as refused:
        with_speculation(profile(Speculation(tokens=5, locked="it corrupts code")), mode)
    assert refused.value.evidence == "it corrupts code"


def test_a_profile_without_speculation_refuses() -> None:
    with pytest.raises(RefusedError):
        with_speculation(profile(None), "on")


@pytest.mark.parametrize(
    "mode", ["٣", "３", "²", "-3", "0", "1001", "99999", "3.0", " 3", "", "On"]
)
def test_only_a_depth_in_plain_digits_is_a_mode(mode: str) -> None:
    with pytest.raises(UsageError, match="Speculation is on, off or a number"):
        with_speculation(profile(Speculation(tokens=5)), mode)
