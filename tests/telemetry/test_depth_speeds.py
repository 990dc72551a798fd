"""What an engine decodes at each depth of speculation: only steady stretches of one load count."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import DepthSpeed
from a40console.telemetry.depth_speeds import KEPT, DepthSpeeds
from a40console.telemetry.reading import EngineReading, LiveDepth
from a40console.telemetry.speculation import speculation
from tests.telemetry.makers import engine_row, reading
from tests.telemetry.test_figures import source_of

PERIOD_S = 0.5


class Engine:
    """Readings of an engine in order of time, fed to what remembers them."""

    def __init__(self, depth: int = 0) -> None:
        self.speeds = DepthSpeeds()
        self.depth, self.context = depth, 2_000.0
        self.now_s = self.generated = self.computed = 0.0

    def read(self, streams: int, phase: str = "decode", **others: Any) -> EngineReading:
        rows = tuple(
            engine_row(f"r{n}", 1, phase=phase, prompt_tokens=int(self.context))
            for n in range(streams)
        )
        counters: Any = {
            "generated_tokens": self.generated,
            "computed_prompt_tokens": self.computed,
        }
        live = LiveDepth(tokens=self.depth, deepest=24, method="ngram", changeable=True)
        told: Any = {"rows": rows, "live_depth": live} | others
        return reading(self.now_s, counters, **told)

    def decode(
        self, seconds: float, *, streams: int = 2, rate: float = 200.0, prompts: float = 0.0
    ) -> None:
        """Decode steadily, all streams together at a rate."""
        for _ in range(round(seconds / PERIOD_S)):
            self.speeds.take(self.read(streams))
            self.now_s += PERIOD_S
            self.generated += rate * PERIOD_S
            self.computed += prompts * PERIOD_S
        self.speeds.take(self.read(streams))

    def told(self) -> list[tuple[int, float]]:
        return [
            (each.depth, round(each.tokens_per_s, 1))
            for each in self.speeds.at_this_load(self.now_s)
            if isinstance(each.tokens_per_s, float)
        ]

    def without(self) -> Any:
        return self.speeds.without(self.now_s)


def test_both_speeds_of_a_load_are_told_with_their_age() -> None:
    engine = Engine()
    engine.decode(8, rate=207.0)
    engine.depth = 24
    engine.decode(8, rate=44.8)
    assert engine.told() == [(0, 207.0), (24, 44.8)]
    assert engine.without() == 207.0
    ages = [each.age_s for each in engine.speeds.at_this_load(engine.now_s + 2)]
    assert ages == [10.0, 2.0]


def test_a_speed_of_less_than_five_seconds_or_of_two_depths_is_none() -> None:
    engine = Engine()
    engine.decode(4.5)
    assert engine.without() == Missing("not measured since the engine started")
    for _ in range(6):  # never one depth for five seconds
        engine.depth = 5 - engine.depth
        engine.decode(4.5)
    assert engine.told() == []


def test_another_number_of_requests_is_another_load() -> None:
    engine = Engine()
    engine.decode(8, streams=1, rate=105.0)
    engine.decode(8, streams=4, rate=330.0)
    engine.depth = 5
    engine.decode(8, streams=2, rate=150.0)
    assert engine.told() == [(5, 150.0)]
    assert engine.without() == Missing("measured with 1, 4 running, not with 2")
    engine.decode(8, streams=4, rate=200.0)
    assert engine.without() == 330.0


def test_longer_contexts_are_about_the_same_load_and_then_another() -> None:
    engine = Engine()
    engine.decode(8)
    engine.depth = 5
    engine.context += 2_000
    engine.decode(1)
    assert engine.without() == 200.0
    engine.context += 200
    engine.decode(1)
    assert engine.without() == Estimated(200.0)
    (off,) = engine.speeds.at_this_load(engine.now_s)
    assert off.is_rough
    engine.context += 6_100
    engine.decode(1)
    assert engine.without() == Missing("measured with other contexts only")
    engine.depth, engine.context = 0, 90_000
    engine.decode(8, rate=120.0)
    engine.context = 98_000
    engine.decode(1, rate=120.0)
    assert engine.without() == 120.0


def test_time_that_goes_into_prompts_is_no_decode_speed() -> None:
    engine = Engine()
    engine.decode(20, rate=200.0, prompts=100.0)
    assert engine.told() == []
    for _ in range(20):
        engine.speeds.take(engine.read(2, phase="prefill"))
        engine.now_s += PERIOD_S
        engine.generated += 10
    assert engine.told() == []


def test_an_engine_that_stands_still_was_not_slow() -> None:
    engine = Engine()
    engine.decode(8, rate=200.0)
    engine.decode(20, rate=0.0)
    assert engine.without() > 150
    hung = Engine()
    hung.decode(30, rate=0.0)
    assert hung.without() == Missing("not measured since the engine started")


def test_one_moment_of_another_load_ends_no_long_stretch() -> None:
    engine = Engine()
    engine.decode(14)
    engine.decode(0, streams=3)
    engine.decode(4)
    (off,) = engine.speeds.at_this_load(engine.now_s)
    assert off.age_s == 0.0
    short = Engine()
    short.decode(3)
    short.decode(0, streams=3)
    short.decode(3)
    assert short.told() == []


def test_what_is_old_says_how_old_it_is_and_a_new_start_knows_nothing() -> None:
    engine = Engine()
    engine.decode(8)
    engine.now_s += 72 * 60
    assert engine.without() == Missing("last measured 1 h 12 m ago")
    engine.speeds.clear()
    engine.speeds.take(engine.read(2))
    assert engine.without() == Missing("not measured since the engine started")


def test_nothing_is_said_where_no_request_runs_or_none_is_told() -> None:
    engine = Engine()
    engine.decode(8)
    engine.speeds.take(engine.read(0))
    assert engine.without() == Missing("no request runs")
    assert engine.speeds.at_this_load(engine.now_s) == ()
    for untold in ({"rows": None}, {"live_depth": None}, {"paused": True}):
        engine.decode(8)
        engine.speeds.take(engine.read(2, **untold))
        assert isinstance(engine.without(), float | Missing)
    unknown = engine_row("r", 1, phase="decode", prompt_tokens=None)
    engine.speeds.take(engine.read(1, rows=(unknown,)))
    assert engine.without() == Missing("the engine does not tell its load")


def test_long_drafting_does_not_push_out_what_was_measured_without() -> None:
    engine = Engine()
    engine.decode(8)
    engine.depth = 5
    for step in range(3 * KEPT):
        engine.context = 2_000 + 3_000 * step
        engine.decode(6, rate=90.0)
    engine.context = 2_000
    engine.decode(6, rate=90.0)
    assert engine.told() == [(0, 200.0), (5, 90.0)]


def test_the_block_tells_them_where_the_depth_is_told() -> None:
    engine = Engine()
    engine.decode(8)
    engine.depth = 24
    engine.decode(8, rate=50.0)
    now = engine.read(2)
    info = speculation(source_of(now), enabled=True, live=now.live_depth, speeds=engine.speeds)
    assert info.off_tokens_per_s_at_this_load == 200.0
    assert [each.depth for each in info.measured_at_this_load] == [0, 24]
    untold = speculation(source_of(now), enabled=True)
    assert untold.off_tokens_per_s_at_this_load == Missing("the engine does not tell its depth")
    assert untold.measured_at_this_load == ()


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 3, 24]),
        st.integers(0, 3),
        st.floats(0.5, 12),
        st.sampled_from([2_000.0, 3_500.0, 9_000.0]),
    ),
    max_size=12,
)


@given(STEPS)
def test_no_speed_is_told_that_was_not_decoded_at_its_depth_and_load(
    steps: list[tuple[int, int, float, float]],
) -> None:
    engine = Engine()
    for depth, streams, seconds, context in steps:
        engine.depth, engine.context = depth, context
        engine.decode(seconds, streams=streams, rate=1_000.0 * streams + depth)
        for each in engine.speeds.at_this_load(engine.now_s):
            assert isinstance(each, DepthSpeed)
            known = each.tokens_per_s
            assert isinstance(known, Estimated) is each.is_rough
            speed = known.value if isinstance(known, Estimated) else known
            assert isinstance(speed, float)
            truth = 1_000.0 * streams + each.depth
            assert abs(speed - truth) <= 0.06 * truth
