"""The short past: means, counts, and changes at the same load only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from a40console.advisor.evidence import Shift, Trends
from a40console.model.figures import Estimated, Figure, Missing, is_estimate, number
from a40console.service.trends import Sample, TrendKeeper, sample
from tests import make_snapshot as made

GONE = Missing("not read")


def watched(seconds: Iterable[int], at: Callable[[int], Sample], life: object = 1) -> Trends:
    keeper = TrendKeeper()
    for second in seconds:
        keeper.observe(at(second), life=life)
    return keeper.trends()


def pinned(second: int) -> Sample:
    """Four requests; after two minutes passes and power fall."""
    fell = second >= 120
    return Sample(
        at_s=second,
        running=4,
        passes_per_s=41.0 if fell else 59.0,
        power_w=198.0 if fell else 283.0,
        throttled_ms_per_s=300.0 if second % 2 else 0.0,
        preemptions=float(second // 50),
        oom_kills=0,
    )


def test_nothing_is_claimed_before_it_was_watched() -> None:
    assert TrendKeeper().trends() == Trends()
    early = watched(range(3), pinned)
    assert isinstance(early.throttled_ms_per_s, Missing)
    assert isinstance(early.busy_ratio, Missing)
    assert isinstance(early.passes_per_s, Missing)
    assert early.oom_kills == 0


def test_a_fall_is_seen_against_the_same_load() -> None:
    found = watched(range(140), pinned)
    assert found.passes_per_s == Shift(41.0, 59.0)
    assert found.power_w == Shift(198.0, 283.0)
    assert found.busy_ratio == 1.0
    assert 100 < (number(found.throttled_ms_per_s) or 0) < 200, "a mean, not the last second"
    assert found.preemptions == 1, "within the last minute"
    assert isinstance(found.sm_clock_mhz, Missing), "it was never read"


def test_another_load_is_not_compared() -> None:
    def busier(second: int) -> Sample:
        return Sample(at_s=second, running=1 if second < 120 else 8, passes_per_s=60.0 - second / 9)

    found = watched(range(140), busier)
    assert found.passes_per_s == Missing("nothing to compare with: not run at this load before")
    idle = watched(range(140), lambda s: Sample(at_s=s, running=0))
    assert idle.passes_per_s == Missing("no request runs")
    assert idle.busy_ratio == 0.0


def test_another_life_of_the_engine_forgets_the_first() -> None:
    keeper = TrendKeeper()
    for second in range(100):
        keeper.observe(pinned(second), life="a")
    keeper.observe(pinned(100), life="b")
    assert isinstance(keeper.trends().throttled_ms_per_s, Missing)


def test_old_figures_are_not_sampled() -> None:
    snapshot = made.snapshot()
    fresh = sample(5.0, None, snapshot.host, snapshot.gpus, 0)
    assert number(fresh.power_w) is not None
    assert number(fresh.running) is None, "no engine answers"
    old = made.gpu(age_s=60.0)
    assert number(sample(5.0, None, snapshot.host, (old,), GONE).power_w) is None
    assert number(sample(5.0, None, snapshot.host, Missing("no GPU"), 0).sm_clock_mhz) is None


def test_what_was_estimated_stays_an_estimate() -> None:
    def guessed(second: int) -> Sample:
        return Sample(
            at_s=second,
            running=4,
            passes_per_s=Estimated(41.0),
            power_w=283.0,
            throttled_ms_per_s=Estimated(12.0),
            preemptions=second,
        )

    found = watched(range(140), guessed)
    assert found.passes_per_s == Shift(41.0, 41.0, estimated=True)
    assert found.power_w == Shift(283.0, 283.0)
    assert found.throttled_ms_per_s == Estimated(12.0)
    assert not is_estimate(found.preemptions)


@given(
    values=st.lists(
        st.tuples(
            st.one_of(st.just(GONE), st.floats(0, 64)),
            st.one_of(st.just(GONE), st.floats(0, 1e4).map(Estimated)),
            st.one_of(st.just(GONE), st.floats(0, 1e4)),
        ),
        max_size=80,
    )
)
def test_whatever_was_seen_shares_are_shares_and_counts_do_not_fall(
    values: list[tuple[Figure, Figure, Figure]],
) -> None:
    keeper = TrendKeeper()
    for second, (running, passes, preempted) in enumerate(values):
        keeper.observe(
            Sample(at_s=second, running=running, passes_per_s=passes, preemptions=preempted),
            life=1,
        )
    found = keeper.trends()
    assert 0 <= (number(found.busy_ratio) or 0) <= 1
    assert (number(found.preemptions) or 0) >= 0
