"""Every recorded exposition against figures worked out by hand, and the naming traps."""

from __future__ import annotations

from math import isnan

import pytest

from a40console.telemetry.aliases import WANTED, read_samples, why_absent
from a40console.telemetry.exposition import parse_exposition
from a40console.telemetry.reading import CounterName, EngineReading
from tests.telemetry.makers import reading, recorded, text_of

# name: generated, prompt, computed, queried, hit, passes, samples, first tokens
VLLM = {
    "vllm-0.27.1-before": (0, 0, 0, 0, 0, 0, 0, 0),
    "vllm-0.27.1-during": (2, 114, 114, 114, 0, 1, 0, 2),
    "vllm-0.27.1-after": (166, 202, 202, 202, 0, 53, 120, 4),
    "vllm-0.32-base-before": (0, 0, 0, 0, 0, 0, 0, 0),
    "vllm-0.32-base-during": (1368, 1542, 1414, 1542, 128, 1011, 1352, 16),
    "vllm-0.32-base-after": (2120, 1689, 1561, 1689, 128, 1257, 2100, 20),
    "vllm-0.32-ngram-before": (0, 0, 0, 0, 0, 0, 0, 0),
    "vllm-0.32-ngram-during": (1441, 1577, 1449, 1577, 128, 571, 918, 17),
    "vllm-0.32-ngram-after": (2322, 1794, 1666, 1794, 128, 950, 1747, 23),
    "vllm-0.32-draftmodel-after": (300, 84, 84, 84, 0, 189, 187, 2),
    "vllm-0.32-dynsd-after": (1800, 7092, 1460, 7092, 5632, 509, 1412, 12),
    "vllm-0.32-full-during-preempt": (3017, 1899, 875, 1899, 1024, 605, 2676, 13),
    "vllm-0.32-full-after": (5652, 1933, 909, 1933, 1024, 1127, 5300, 17),
    "vllm-0.33-during": (1456, 1577, 1449, 1577, 128, 593, 933, 17),
    "vllm-0.33-after": (2309, 1794, 1666, 1794, 128, 938, 1732, 23),
    "vllm-0.33-rust-during": (1490, 1577, 1449, 1577, 128, 595, 967, 17),
    "vllm-0.33-rust-after": (2105, 1646, 1518, 1646, 128, 730, 1529, 19),
}
NAMES: tuple[CounterName, ...] = (
    "generated_tokens",
    "prompt_tokens",
    "computed_prompt_tokens",
    "queried_tokens",
    "hit_tokens",
    "passes",
    "pass_samples",
    "first_tokens",
)


def read(text: str) -> EngineReading:
    samples = parse_exposition(text, families=WANTED)
    return read_samples(samples, source="vllm.metrics", at_s=0.0)


@pytest.mark.parametrize("name", VLLM)
def test_counters_of_recorded_vllm(name: str) -> None:
    counters = recorded(name).counters
    assert tuple(counters[key] for key in NAMES) == VLLM[name]
    assert counters["sequence_passes"] == counters["pass_samples"] + counters["first_tokens"]


# name: drafts, draft tokens, accepted, accepted by position
DRAFTS = {
    "vllm-0.27.1-after": (9, 45, 42, (9, 9, 9, 9, 6)),
    "vllm-0.32-ngram-after": (152, 752, 569, (131, 120, 111, 106, 101)),
    "vllm-0.32-draftmodel-after": (187, 561, 111, (38, 37, 36)),
    "vllm-0.32-dynsd-after": (83, 415, 388, (80, 77, 77, 77, 77)),
    "vllm-0.32-full-after": (187, 928, 345, (79, 68, 66, 66, 66)),
    "vllm-0.33-after": (158, 785, 565, (133, 120, 111, 104, 97)),
    "vllm-0.33-rust-after": (164, 819, 568, (136, 120, 111, 104, 97)),
    "llamacpp-spec-draft-synth-after": (176, 703, 321, (130, 99, 61, 31)),
    "llamacpp-spec-ngram-mod-after": (60, 474, 63, (55, 2, 2, 2, 2, 0, 0, 0)),
}


@pytest.mark.parametrize("name", DRAFTS)
def test_speculation_counters_in_the_order_of_positions(name: str) -> None:
    found = recorded(name)
    drafts, tokens, accepted, positions = DRAFTS[name]
    assert found.counters["drafts"] == drafts
    assert found.counters["draft_tokens"] == tokens
    assert found.counters["accepted_tokens"] == accepted == sum(positions)
    assert found.accepted_per_position == positions


def test_the_families_are_there_only_when_vllm_speculates() -> None:
    assert recorded("vllm-0.32-base-after").speculating is False
    assert recorded("vllm-0.32-ngram-before").speculating is True
    assert recorded("llamacpp-after").speculating is None


@pytest.mark.parametrize(
    ("name", "running", "waiting", "usage", "capacity"),
    [
        ("vllm-0.32-base-during", 8, 1, 8 / 363, 46592),
        ("vllm-0.32-full-during-preempt", 6, 6, 18 / 19, 2560),
        ("vllm-0.27.1-during", 2, 0, 2 / 363, 46592),
        ("vllm-0.33-during", 8, 0, 8 / 363, 46592),
    ],
)
def test_gauges_and_capacity(
    name: str, running: int, waiting: int, usage: float, capacity: int
) -> None:
    gauges = recorded(name).gauges
    assert (gauges["running"], gauges["waiting"]) == (running, waiting)
    assert gauges["kv_usage_ratio"] == pytest.approx(usage)
    assert gauges["kv_capacity_tokens"] == capacity
    assert gauges["awake"] == 1


def test_preemptions_and_waiting_by_reason() -> None:
    assert recorded("vllm-0.32-full-after").counters["preemptions"] == 5
    full = recorded("vllm-0.32-full-during-preempt")
    assert full.waiting_by_reason == {"capacity": 6, "deferred": 0}


def test_settings_are_what_the_engine_says_it_runs() -> None:
    settings = recorded("vllm-0.32-base-after").settings
    assert settings["enable_prefix_caching"] is True
    assert settings["block_size"] == 128
    assert settings["num_gpu_blocks"] == 364
    assert settings["cache_dtype"] == "auto"
    assert settings["gpu_memory_utilization"] == 0.92
    assert "num_gpu_blocks_override" not in settings  # "None": not set


def test_the_rust_front_end_tells_less_and_that_is_missing_not_zero() -> None:
    before = recorded("vllm-0.33-rust-before")
    assert "sequence_passes" not in before.counters
    assert "kv_capacity_tokens" not in before.gauges
    assert before.settings == {}
    assert before.counters["generated_tokens"] == 0


def test_llamacpp_counts_cached_tokens_as_queried() -> None:
    counters = recorded("llamacpp-after").counters
    assert counters["generated_tokens"] == 1111
    assert counters["computed_prompt_tokens"] == 192
    assert (counters["queried_tokens"], counters["hit_tokens"]) == (252, 60)
    assert counters["passes"] == 400


OLD = """vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 1000
vllm:gpu_prefix_cache_hits_total{model_name="m"} 400
vllm:time_per_output_token_seconds_bucket{model_name="m",le="0.1"} 5
vllm:time_per_output_token_seconds_bucket{model_name="m",le="+Inf"} 6
vllm:time_per_output_token_seconds_count{model_name="m"} 6
vllm:time_per_output_token_seconds_sum{model_name="m"} 0.4
"""
NEW = """vllm:kv_cache_usage_perc{model_name="m"} 0.5
vllm:prefix_cache_queries_total{model_name="m"} 2000
vllm:prefix_cache_hits_total{model_name="m"} 1900
"""


def test_old_names_resolve() -> None:
    old = read(OLD)
    assert old.gauges["kv_usage_ratio"] == 0.25
    assert (old.counters["queried_tokens"], old.counters["hit_tokens"]) == (1000, 400)
    assert old.counters["pass_samples"] == 6
    assert old.histograms["pass_s"].counts == (5, 6)


def test_new_names_win_and_nothing_is_counted_twice() -> None:
    for text in (OLD + NEW, NEW + OLD):
        both = read(text)
        assert both.gauges["kv_usage_ratio"] == 0.5
        assert (both.counters["queried_tokens"], both.counters["hit_tokens"]) == (2000, 1900)


def test_what_is_not_exposed_is_named() -> None:
    assert why_absent("hit_tokens", read('vllm:num_requests_running{engine="0"} 1\n')) == (
        "vllm:prefix_cache_hits_total is not exposed"
    )
    plugin = reading(0.0, source="vllm.plugin")
    assert why_absent("drafts", plugin) == "vllm.plugin does not count drafts"


def test_vllm_cpp_without_sources_computes_what_was_computed() -> None:
    text = (
        'vllm:prompt_tokens_total{model_name="m",engine="0"} 500\n'
        'vllm:prompt_tokens_cached_total{model_name="m",engine="0"} 120\n'
    )
    assert read(text).counters["computed_prompt_tokens"] == 380


def test_engines_are_summed_in_counters_and_maxed_in_gauges() -> None:
    text = "".join(
        f'vllm:generation_tokens_total{{engine="{engine}",model_name="m"}} {tokens}\n'
        f'vllm:kv_cache_usage_perc{{engine="{engine}",model_name="m"}} {usage}\n'
        f'vllm:request_queue_time_seconds_bucket{{engine="{engine}",le="0.3"}} {engine}\n'
        f'vllm:request_queue_time_seconds_bucket{{engine="{engine}",le="+Inf"}} 2\n'
        f'vllm:request_queue_time_seconds_count{{engine="{engine}"}} 2\n'
        for engine, tokens, usage in ((0, 100, 0.2), (1, 250, 0.7))
    )
    found = read(text)
    assert found.counters["generated_tokens"] == 350
    assert found.gauges["kv_usage_ratio"] == 0.7
    assert found.histograms["queue_s"].counts == (1, 4)


def test_created_series_are_never_a_figure() -> None:
    text = (
        'vllm:generation_tokens_created{engine="0"} 1.7e9\n'
        'vllm:generation_tokens_total{engine="0"} 7\n'
        'vllm:iteration_tokens_total_created{engine="0"} 1.7e9\n'
    )
    assert read(text).counters == {"generated_tokens": 7}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_one_value_that_is_no_number_costs_one_figure(value: str) -> None:
    text = text_of("vllm-0.32-ngram-after")
    line = next(row for row in text.splitlines() if row.startswith("vllm:kv_cache_usage_perc{"))
    spoilt = read(text.replace(line, f"{line.rpartition(' ')[0]} {value}"))
    whole = read(text)
    assert "kv_usage_ratio" not in spoilt.gauges
    assert {**spoilt.gauges, "kv_usage_ratio": 0.0} == whole.gauges
    assert spoilt.counters == whole.counters
    assert spoilt.histograms == whole.histograms


def test_a_position_that_is_no_number_costs_that_position() -> None:
    text = "".join(
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{position}"}} {count}\n'
        for position, count in ((0, 9), (1, "NaN"), (2, 4))
    )
    positions = read(text).accepted_per_position
    assert positions is not None
    assert (positions[0], positions[2]) == (9, 4)
    assert isnan(positions[1])
