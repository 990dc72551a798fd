"""The bandwidth is vLLM's own model: an estimate always, and missing where it does not model."""

from __future__ import annotations

from a40console.model.figures import Estimated, Missing
from a40console.telemetry.blocks import Source, read_bytes_per_s
from a40console.telemetry.reading import EngineReading
from a40console.telemetry.windows import CounterRing


def source(*values: float) -> Source:
    ring = CounterRing()
    for second, value in enumerate(values):
        counters = {"read_bytes": value}
        ring.add(EngineReading(source="vllm.metrics", at_s=float(second), counters=counters))  # type: ignore[arg-type]
    return Source(name="vllm.metrics", ring=ring, now_s=float(len(values)), why_none="")


def test_a_growing_counter_is_an_estimate() -> None:
    assert read_bytes_per_s(source(1e9, 2e9, 3e9)) == Estimated(1e9)


def test_a_counter_that_stays_zero_says_which_flag_is_missing() -> None:
    shown = read_bytes_per_s(source(0, 0))
    assert isinstance(shown, Missing)
    assert "--enable-mfu-metrics" in shown.reason


def test_before_two_readings_it_is_not_said_that_the_engine_does_not_estimate() -> None:
    assert read_bytes_per_s(source(1e9)) == Missing("one reading so far")
