"""An engine that serves while its telemetry lies, breaks or begins again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.console import (
    FaultConsole,
    Snapshot,
    Watch,
    finding,
    missing,
    number,
    source,
)

pytestmark = pytest.mark.slow

LOAD = {"running": 2, "rate": 40.0}
"""80 tokens a second, and 2 prompts of 40 tokens, of which 30 are found in the cache."""


@pytest.fixture
def loaded(serving: FaultConsole) -> FaultConsole:
    """The shared engine, under a steady load that telemetry reads well."""
    serving.control(**LOAD)
    serving.until(reads_well, 30)
    return serving


def rate(snapshot: Snapshot) -> float | None:
    return number(snapshot["throughput"]["generation_tokens_per_s"])


def reads_well(snapshot: Snapshot) -> bool:
    full = snapshot["throughput"]["window_s"] >= 2
    return full and source(snapshot, "vllm.metrics")["state"] == "ok" and steady(snapshot)


def steady(snapshot: Snapshot) -> bool:
    return 70 < (rate(snapshot) or 0.0) < 90


def negative(value: Any, path: str = "") -> Iterator[str]:
    """Every number below zero in a snapshot, by its place."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from negative(item, f"{path}.{name}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from negative(item, f"{path}[{position}]")
    elif isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        yield f"{path} = {value}"


# --- 17: counters that begin again -----------------------------------------------------------


def test_counters_that_begin_again_are_a_gap_and_an_event(loaded: FaultConsole) -> None:
    events = loaded.event_kinds().count("counters.reset")
    with Watch(loaded) as watch:
        time.sleep(1.5)
        loaded.control(**LOAD, epoch=1, hit=0.0)  # another life, its cache is empty
        snapshot = loaded.until(lambda s: finding(s, "counters-reset"), 10)
        loaded.until(reads_well)
    assert loaded.event_kinds().count("counters.reset") == events + 1
    assert snapshot["engine"]["state"] == "serving"

    shown = watch.snapshots
    assert [place for snapshot in shown for place in negative(snapshot)] == []
    rates = [rate(snapshot) for snapshot in shown]
    assert None in rates, "a gap"
    first = rates.index(None)
    assert all(known is not None and known > 50 for known in rates[:first]), "no fall before it"
    assert all(known is None or known > 50 for known in rates), "nor after it"
    why = missing(shown[first]["throughput"]["generation_tokens_per_s"])
    assert "began again" in why
    for snapshot in shown[first:]:
        assert "missing" in snapshot["prefix_cache"]["hit_ratio"], "no hit rate of 0 % yet"


def test_an_engine_that_is_restarted_has_no_negative_rates(loaded: FaultConsole) -> None:
    before = loaded.status()["engine"]["id"]
    with Watch(loaded) as watch:
        loaded.succeed("engine", "restart", "--yes")
        after = loaded.until(steady, 20)
    assert after["engine"]["id"] != before
    assert [place for snapshot in watch.snapshots for place in negative(snapshot)] == []
    for snapshot in watch.snapshots:
        if snapshot["engine"]["state"] not in ("serving", "draining", "stopping"):
            assert rate(snapshot) is None, snapshot["engine"]["state"]


# --- 18, 19, 23, 25: answers that are no metrics ---------------------------------------------


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("empty", "no metrics exposed"),
        ("error", "HTTP 500"),
        ("html", "not a metrics endpoint"),
        ("json", "not a metrics endpoint"),
        ("locked", "needs an API key"),
        ("abroad", "redirects to another server"),
    ],
)
def test_an_engine_without_metrics_is_unknown_and_serves(
    serving: FaultConsole, mode: str, reason: str
) -> None:
    serving.control(**LOAD, metrics=mode)
    serving.succeed("engine", "restart", "--yes")
    snapshot = serving.until(
        lambda s: source(s, "vllm.metrics")["state"] == "failed" and finding(s, "telemetry-broken")
    )
    assert snapshot["engine"]["state"] == "serving"
    assert reason in source(snapshot, "vllm.metrics")["reason"]
    for block, names in {
        "throughput": ("generation_tokens_per_s", "prefill_tokens_per_s", "passes_per_s"),
        "requests": ("running", "waiting"),
        "prefix_cache": ("hit_ratio", "hit_ratio_since_start"),
        "kv_cache": ("held_ratio", "capacity_tokens"),
        "latency": ("ttft_s", "pass_s", "queue_s"),
    }.items():
        for name in names:
            assert reason in missing(snapshot[block][name]), (block, name)
    found = finding(snapshot, "telemetry-broken")
    assert found is not None
    assert found["title"] == "The engine is well, its telemetry is broken"
    assert reason in found["evidence"]
    assert "/health says 200" in found["evidence"]
    assert "wave" in serving.ask()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("error", "the engine answers, but its telemetry is broken: HTTP 500"),
        ("cut", "the metrics text is cut"),
    ],
)
def test_metrics_that_break_leave_the_last_figures_with_their_age(
    loaded: FaultConsole, mode: str, reason: str
) -> None:
    with Watch(loaded) as watch:
        loaded.control(**LOAD, metrics=mode)
        broken = loaded.until(
            lambda s: (
                source(s, "vllm.metrics")["state"] == "failed" and finding(s, "telemetry-broken")
            )
        )
        loaded.control(**LOAD)
        loaded.until(lambda s: reads_well(s) and finding(s, "telemetry-broken") is None)
    assert reason in source(broken, "vllm.metrics")["reason"]
    assert reason in (finding(broken, "telemetry-broken") or {})["evidence"]
    assert broken["engine"]["state"] == "serving"
    for snapshot in watch.snapshots:
        assert steady(snapshot), "the last figures stay, and no gap makes a peak"
    ages = [snapshot["throughput"]["age_s"] for snapshot in watch.snapshots]
    assert ages[-1] < 1


# --- 24: cut in the middle -------------------------------------------------------------------


def test_one_cut_answer_costs_one_answer(loaded: FaultConsole) -> None:
    loaded.control(**LOAD, metrics="cut")
    cut = loaded.until(lambda s: source(s, "vllm.metrics")["state"] != "ok")
    loaded.control(**LOAD)
    assert source(cut, "vllm.metrics")["state"] == "stale", "not failed yet"
    assert "cut" in source(cut, "vllm.metrics")["reason"]
    assert steady(cut)
    assert "source.failed" not in loaded.event_kinds()[-1:]
    loaded.until(reads_well)


# --- 20 and 21: names ------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["old", "both"])
def test_old_and_new_names_say_the_same_once(loaded: FaultConsole, names: str) -> None:
    loaded.control(**LOAD, names=names)
    loaded.succeed("engine", "restart", "--yes")
    snapshot = loaded.until(lambda s: (number(s["prefix_cache"]["prompts"]) or 0) >= 5)
    cache = snapshot["prefix_cache"]
    assert number(cache["hit_ratio"]) == pytest.approx(0.75, abs=0.02)
    queried, prompts = number(cache["queried_tokens"]), number(cache["prompts"])
    assert queried is not None
    assert prompts is not None
    assert queried / prompts == pytest.approx(40, rel=0.3), "not counted twice"


def test_a_name_that_is_gone_is_named(loaded: FaultConsole) -> None:
    loaded.control(**LOAD, names="none")
    snapshot = loaded.until(
        lambda s: "missing" in str(s["prefix_cache"]["hit_ratio"]) and reads_well(s)
    )
    assert "prefix_cache" in missing(snapshot["prefix_cache"]["hit_ratio"])
    assert "is not exposed" in missing(snapshot["prefix_cache"]["hit_ratio"])
    assert number(snapshot["kv_cache"]["held_ratio"]) == 0.25


def test_created_series_are_ignored(loaded: FaultConsole) -> None:
    loaded.control(**LOAD, created=True, odd={"generation_tokens_created": "NaN"})
    loaded.until(reads_well)
    text = loaded.succeed("status", "--json")
    assert not re.search(r"created", text)
    loaded.control(**LOAD, created=False)
    time.sleep(1)
    assert reads_well(loaded.status())


# --- 22: one value that is no number ---------------------------------------------------------


@pytest.mark.parametrize("odd", ["NaN", "+Inf"])
def test_one_odd_value_costs_its_own_figure(loaded: FaultConsole, odd: str) -> None:
    loaded.control(**LOAD, odd={"kv_cache_usage_perc": odd})
    snapshot = loaded.until(lambda s: "missing" in str(s["kv_cache"]["held_ratio"]))
    assert reads_well(snapshot)
    assert number(snapshot["requests"]["running"]) == 2
    assert number(snapshot["kv_cache"]["capacity_tokens"]) == 2912 * 16
    assert number(snapshot["prefix_cache"]["hit_ratio"]) is not None

    loaded.control(**LOAD, odd={"generation_tokens_total": odd})
    snapshot = loaded.until(lambda s: rate(s) is None)
    assert source(snapshot, "vllm.metrics")["state"] == "ok"
    assert number(snapshot["requests"]["running"]) == 2
    assert number(snapshot["throughput"]["prefill_tokens_per_s"]) is not None
    assert number(snapshot["kv_cache"]["held_ratio"]) == 0.25


# --- 25: redirects ---------------------------------------------------------------------------


def test_a_redirect_on_the_same_server_is_followed(loaded: FaultConsole) -> None:
    loaded.control(**LOAD, metrics="moved")
    with Watch(loaded) as watch:
        time.sleep(2)
    assert all(reads_well(snapshot) for snapshot in watch.snapshots)
    loaded.succeed("engine", "restart", "--yes")
    loaded.until(reads_well)


# --- 26: a log that states another throughput --------------------------------------------------


def test_counters_win_over_a_log_of_several_api_servers(loaded: FaultConsole) -> None:
    """Each of two servers logs its share: 30 and 50 of 80 tokens a second."""
    loaded.control(**LOAD, log_rates=[30.0, 50.0])
    snapshot = loaded.until(lambda s: finding(s, "log-disagrees"), 40)
    assert steady(snapshot), "the counters are shown"
    found = finding(snapshot, "log-disagrees")
    assert found is not None
    assert found["severity"] == "info"
    assert re.search(r"log (30|50) tok/s · counters (7\d|8\d) tok/s", found["evidence"])
    assert "2 API servers log" in found["evidence"]
    loaded.control(**LOAD, log_rates=[80.0, 80.0])
    loaded.until(lambda s: finding(s, "log-disagrees") is None, 40)


# --- 27: latencies that a mean would hide ------------------------------------------------------


def test_percentiles_tell_what_a_falling_mean_hides(loaded: FaultConsole) -> None:
    """First a tenth of the requests wait 100 s, then all wait 0.9 s: the mean falls, p50 rises."""
    load = {"running": 8, "rate": 10.0}
    loaded.control(**load, ttft=[0.3] * 9 + [100.0])
    loaded.succeed("engine", "restart", "--yes")  # nothing of what went through the gateway before
    first = loaded.until(lambda s: s["latency"]["ttft_s"].get("count", 0) >= 40, 30)["latency"]
    assert first["ttft_s"]["origin"] == "engine"
    assert 0.25 < (number(first["ttft_s"]["p50"]) or 0) <= 0.5
    assert missing(first["ttft_s"]["p95"]) == "> 80 s", "the last finite bound"

    loaded.control(**load, ttft=[0.9], epoch=7)
    later = loaded.until(lambda s: 5 <= s["latency"]["ttft_s"].get("count", 0) < 20, 30)["latency"]
    assert 0.75 < (number(later["ttft_s"]["p50"]) or 0) <= 1.0
    assert missing(later["ttft_s"]["p95"]) == f"{later['ttft_s']['count']} samples"
    last = loaded.until(lambda s: s["latency"]["ttft_s"].get("count", 0) >= 20, 30)["latency"]
    assert 0.75 < (number(last["ttft_s"]["p95"]) or 0) <= 1.0
    assert "mean" not in str(last) + str(first)
