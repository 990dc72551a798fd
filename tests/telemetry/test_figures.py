"""Blocks worked out by hand from recorded expositions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.telemetry.blocks import (
    Load,
    Source,
    decode_passes_per_s,
    kv_cache,
    prefix_cache,
    requests,
    steady_tokens_per_s,
    throughput,
)
from a40console.telemetry.latency import FirstTokens, latency
from a40console.telemetry.reading import CounterName, EngineReading, LiveDepth
from a40console.telemetry.speculation import speculation, tail_verdict
from a40console.telemetry.windows import CounterRing
from tests.telemetry.makers import gateway_row, reading, recorded


def source_of(*readings: EngineReading, now_s: float | None = None) -> Source:
    ring = CounterRing()
    for each in readings:
        ring.add(each)
    end_s = readings[-1].at_s if readings else 0.0
    return Source(
        name=readings[-1].source if readings else "vllm.metrics",
        ring=ring,
        now_s=end_s if now_s is None else now_s,
        why_none="not read yet",
    )


def minute(before: str, after: str) -> Source:
    """Two recordings as one engine's life, a minute apart."""
    first, second = recorded(before, 0.0), recorded(after, 60.0)
    return source_of(replace(first, boot=None), replace(second, boot=None))


def five_seconds(before: str, after: str) -> Source:
    return source_of(recorded(before, 0.0), recorded(after, 5.0))


def test_throughput_of_a_recorded_run() -> None:
    shown = throughput(five_seconds("vllm-0.32-base-before", "vllm-0.32-base-after"))
    assert shown.generation_tokens_per_s == pytest.approx(2120 / 5)
    assert shown.prefill_tokens_per_s == pytest.approx(1561 / 5)  # computed, not the 1,689
    assert shown.passes_per_s == pytest.approx(1257 / 5)
    assert shown.sequences_per_pass == pytest.approx(2100 / 1257)  # 1.67
    assert (shown.window_s, shown.source, shown.age_s) == (5.0, "vllm.metrics", 0.0)


def test_an_idle_engine_takes_no_steps_and_generates_zero() -> None:
    shown = throughput(five_seconds("vllm-0.32-base-after", "vllm-0.32-base-after"))
    assert shown.generation_tokens_per_s == 0
    assert shown.passes_per_s == Missing("no pass in the window")
    assert shown.sequences_per_pass == Missing("no pass in the window")


def test_steps_that_only_prefill_are_left_out_where_they_are_told() -> None:
    source = source_of(
        reading(0, {"passes": 100, "prefill_passes": 10}),
        reading(5, {"passes": 200, "prefill_passes": 60}),
    )
    assert decode_passes_per_s(source) == pytest.approx(10)


def test_tokens_per_pass_counts_all_passes_and_the_verified_token() -> None:
    """1 + accepted ÷ drafts would say 4.74: most passes had no draft."""
    shown = speculation(minute("vllm-0.32-ngram-before", "vllm-0.32-ngram-after"), enabled=True)
    assert number(shown.tokens_per_pass) == pytest.approx(2322 / (1747 + 23))  # 1.31
    assert shown.acceptance_ratio == pytest.approx(569 / 752)
    assert shown.accepted_per_draft == pytest.approx(569 / 152)
    assert shown.drafts == 152
    assert (shown.mode, shown.depth_max, shown.started_with) == ("on", 5, 5)
    plain = speculation(minute("vllm-0.32-base-before", "vllm-0.32-base-after"), enabled=False)
    assert plain.tokens_per_pass == 1.0
    assert plain.mode == "off"
    assert plain.drafts == plain.acceptance_ratio == Missing("speculation is off")
    assert plain.accepted_ratio_per_position == plain.tail_verdict == Missing("speculation is off")


def test_the_workers_word_on_the_depth_is_shown() -> None:
    source = minute("vllm-0.32-ngram-before", "vllm-0.32-ngram-after")
    live = LiveDepth(tokens=3, deepest=5, method="ngram", changeable=True)
    on = speculation(source, enabled=True, live=live)
    assert (on.mode, on.control, on.depth, on.depth_max) == ("on", "live", 3, 5)
    assert on.method == "ngram"
    assert on.accepted_ratio_per_position == tuple(Estimated(a / 152) for a in (131, 120, 111))
    assert on.tail_verdict == "last position 73 %"
    off = speculation(source, enabled=True, live=replace(live, tokens=0))
    assert (off.mode, off.control, off.started_with) == ("off", "live", 5)
    assert off.depth == off.method == off.drafts == Missing("speculation is off")
    fixed = speculation(source, enabled=True, live=replace(live, changeable=False))
    assert fixed.control == "restart"


def drafting(at_s: float, depth: int, drafts: int, accepted: tuple[int, ...]) -> EngineReading:
    """All counters of an engine whose drafts were accepted whole, at a depth in force."""
    live = LiveDepth(tokens=depth, deepest=24, method="ngram", changeable=True)
    counters: dict[CounterName, float] = {
        "drafts": drafts,
        "draft_tokens": sum(accepted),
        "accepted_tokens": sum(accepted),
        "generated_tokens": sum(accepted) + drafts,
        "sequence_passes": drafts,
    }
    positions = tuple(map(float, accepted))
    made = reading(at_s, counters, source="vllm.plugin", accepted_per_position=positions)
    return replace(made, live_depth=live)


def test_after_a_change_of_depth_the_figures_are_of_the_new_one_alone() -> None:
    shallow = (1000,) * 3 + (0,) * 21
    deep = tuple(count + 100 for count in shallow)
    readings = [
        drafting(0, 3, 0, (0,) * 24),
        drafting(10, 3, 1000, shallow),
        drafting(11, 24, 1000, shallow),
    ]
    live = readings[-1].live_depth
    assert live is not None
    just_now = speculation(source_of(*readings), enabled=True, live=live)
    assert just_now.drafts == Missing("the depth was changed a moment ago")
    later = speculation(source_of(*readings, drafting(15, 24, 1100, deep)), enabled=True, live=live)
    assert number(later.tokens_per_pass) == 25
    assert later.accepted_ratio_per_position == (1.0,) * 24
    assert (later.drafts, later.window_s) == (100, 4)
    off = replace(live, tokens=0)
    readings += [
        drafting(15, 24, 1100, deep),
        replace(drafting(16, 0, 1100, deep), live_depth=off),
    ]
    plain = drafting(20, 0, 1100, deep)
    plain = replace(
        plain,
        counters={
            **plain.counters,
            "generated_tokens": plain.counters["generated_tokens"] + 40,
            "sequence_passes": plain.counters["sequence_passes"] + 40,
        },
    )
    shown = speculation(source_of(*readings, plain), enabled=True, live=off)
    assert number(shown.tokens_per_pass) == 1


def test_a_shallower_depth_than_the_deepest_is_counted_exactly() -> None:
    first = drafting(0, 3, 0, (0,) * 24)
    last = drafting(30, 3, 100, (100,) * 3 + (0,) * 21)
    shown = speculation(source_of(first, last), enabled=True, live=last.live_depth)
    assert shown.accepted_ratio_per_position == (1.0, 1.0, 1.0)


def test_positions_are_exact_only_if_all_drafts_were_long_enough() -> None:
    full = speculation(minute("vllm-0.32-ngram-before", "vllm-0.32-draftmodel-after"), enabled=True)
    # 187 drafts of 3 tokens each: 561.
    assert full.accepted_ratio_per_position == (38 / 187, 37 / 187, 36 / 187)
    short = speculation(minute("vllm-0.32-ngram-before", "vllm-0.32-ngram-after"), enabled=True)
    # 152 drafts, but 752 tokens instead of 760.
    assert short.accepted_ratio_per_position == tuple(
        Estimated(accepted / 152) for accepted in (131, 120, 111, 106, 101)
    )
    assert short.tail_verdict == "last position 66 %"


def test_the_plugin_knows_how_long_each_draft_was() -> None:
    source = source_of(
        reading(
            0,
            {"drafts": 10, "draft_tokens": 20},
            source="vllm.plugin",
            accepted_per_position=(5.0, 2.0),
            drafted_per_position=(10.0, 10.0),
        ),
        reading(
            60,
            {"drafts": 210, "draft_tokens": 320},
            source="vllm.plugin",
            accepted_per_position=(165.0, 77.0, 0.0),
            drafted_per_position=(210.0, 110.0, 0.0),
        ),
    )
    assert speculation(source, enabled=True).accepted_ratio_per_position == (
        160 / 200,
        75 / 100,
        Missing("no draft of this length in the window"),
    )


def test_no_verdict_from_few_drafts() -> None:
    positions: tuple[Figure, ...] = (0.9, 0.51)
    assert tail_verdict(41, positions) == "41 drafts: too few"
    assert tail_verdict(1, positions) == "1 draft: too few"
    assert tail_verdict(0, positions) == Missing("no drafts in the window")
    assert tail_verdict(100, positions) == "last position 51 %"
    assert "deeper" not in str(tail_verdict(10_000, (0.9, 0.99)))


def test_a_llamacpp_run_by_position() -> None:
    source = minute("llamacpp-before", "llamacpp-spec-draft-synth-after")
    shown = speculation(source, enabled=True)
    assert isinstance(shown.accepted_ratio_per_position, tuple)
    ratios = [number(share) for share in shown.accepted_ratio_per_position]
    assert ratios == pytest.approx([0.74, 0.56, 0.35, 0.18], abs=0.005)
    assert shown.acceptance_ratio == pytest.approx(321 / 703)


def test_hits_are_those_of_the_prompts_in_the_window() -> None:
    shown = prefix_cache(minute("vllm-0.32-ngram-during", "vllm-0.32-ngram-after"))
    assert (shown.hit_tokens, shown.queried_tokens) == (0, 1794 - 1577)
    assert shown.hit_ratio == 0
    assert shown.prompts == 23 - 17
    assert shown.hit_ratio_since_start == pytest.approx(128 / 1794)
    warm = prefix_cache(minute("vllm-0.32-base-before", "vllm-0.32-dynsd-after"))
    assert warm.hit_ratio == pytest.approx(5632 / 7092)
    assert warm.prompts == 12


def test_no_prompt_in_the_window_is_no_ratio() -> None:
    shown = prefix_cache(minute("vllm-0.32-base-after", "vllm-0.32-base-after"))
    assert shown.hit_ratio == Missing("no prompt in the window")
    assert shown.prompts == 0
    assert number(shown.hit_ratio_since_start) == pytest.approx(128 / 1689)
    never = prefix_cache(minute("vllm-0.32-base-before", "vllm-0.32-base-before"))
    assert never.hit_ratio_since_start == Missing("no prompt yet")


def test_a_prompt_whose_first_token_is_still_to_come_is_at_least_one() -> None:
    source = source_of(
        reading(0, {"queried_tokens": 0, "hit_tokens": 0, "first_tokens": 0}),
        reading(60, {"queried_tokens": 9000, "hit_tokens": 8000, "first_tokens": 0}),
    )
    assert prefix_cache(source).prompts == Estimated(1)


def test_kv_is_counted_in_whole_blocks() -> None:
    """vLLM keeps one of its 364 blocks for itself: 8 ÷ 363 of 46,592 are 1,024, not 1,027."""
    source = source_of(recorded("vllm-0.32-base-during"))
    cache = kv_cache(source, load=Load(contexts=(250.0, 150.0)))
    assert cache.held_tokens == 1024
    assert cache.capacity_tokens == 46592
    assert cache.held_ratio == pytest.approx(8 / 363)
    assert isinstance(cache.reusable_tokens, Missing)
    assert cache.free_tokens == cache.reusable_tokens  # not told apart
    assert cache.fits_more == Estimated((46592 - 1024) // 200)
    full = kv_cache(source_of(recorded("vllm-0.32-full-during-preempt")), load=Load(contexts=()))
    assert full.held_tokens == 18 * 128
    assert full.fits_more == Missing("no session to take the size of")


def test_tokens_of_a_hybrids_blocks_are_an_estimate() -> None:
    gauges: dict[Any, float] = {
        "kv_usage_ratio": 0.5,
        "kv_blocks": 101.0,
        "kv_block_tokens": 16.0,
        "kv_capacity_tokens": 1000.0,
        "kv_pools": 1.0,
    }
    cache = kv_cache(source_of(reading(0, {}, gauges)), load=Load(contexts=()))
    assert cache.held_tokens == Estimated(500)


def test_the_rust_front_end_tells_no_capacity() -> None:
    cache = kv_cache(source_of(recorded("vllm-0.33-rust-during")), load=Load(contexts=(10.0,)))
    assert number(cache.held_ratio) == pytest.approx(8 / 363)
    assert isinstance(cache.capacity_tokens, Missing)
    assert isinstance(cache.held_tokens, Missing)


def test_requests_by_the_gauges() -> None:
    shown = requests(source_of(recorded("vllm-0.32-full-during-preempt")))
    assert (shown.running, shown.waiting, shown.preemptions) == (6, 6, 0)
    assert shown.waiting_by_reason == {"capacity": 6, "deferred": 0}
    assert shown.held == 0
    assert isinstance(shown.aborted, Missing)  # vLLM counts no aborts: 0 would be a lie


def test_without_a_reading_everything_says_why() -> None:
    source = source_of()
    why = Missing("not read yet")
    assert throughput(source).generation_tokens_per_s == why
    assert throughput(source).window_s == 5.0
    assert requests(source).running == why
    assert prefix_cache(source).hit_ratio == why
    assert kv_cache(source, load=Load(contexts=())).held_ratio == why
    assert speculation(source, enabled=None).drafts == why
    assert latency(source, FirstTokens(since_s=0.0), 0.0).pass_s == why


def test_first_tokens_at_the_gateway() -> None:
    seen = FirstTokens(since_s=0.0)
    rows = [
        gateway_row(f"a40-{index:x}", received_at_s=100.0 + index, first_token_at_s=100.3 + index)
        for index in range(5)
    ]
    seen.observe([*rows, gateway_row("a40-ff", received_at_s=104.0)])
    seen.observe(rows)  # the same rows again are the same samples
    block = seen.block(106.0)
    assert block is not None
    assert (block.count, block.origin) == (5, "gateway")
    assert number(block.p50) == pytest.approx(0.3)
    assert block.p95 == Missing("5 samples")
    assert block.last == pytest.approx([0.3] * 5)
    later = seen.block(1000.0)
    assert later is not None
    assert (later.count, len(later.last)) == (0, 5)
    assert later.p50 == Missing("no sample in the window")


def test_twenty_first_tokens_have_a_95th_percentile() -> None:
    seen = FirstTokens(since_s=0.0)
    seen.observe(
        gateway_row(f"a40-{index:x}", received_at_s=0.0, first_token_at_s=0.1 * index)
        for index in range(1, 21)
    )
    block = seen.block(10.0)
    assert block is not None
    assert number(block.p95) == pytest.approx(1.905)
    assert block.last == pytest.approx([1.6, 1.7, 1.8, 1.9, 2.0])


def test_first_tokens_are_of_this_engine_and_of_one_route() -> None:
    """The gateway outlives an engine; a thought and a whole completion are not one latency."""
    seen = FirstTokens(since_s=100.0)
    seen.observe(
        [
            gateway_row("a40-01", received_at_s=90.0, first_token_at_s=99.0),
            gateway_row("a40-02", received_at_s=101.0, first_token_at_s=101.2),
            gateway_row("a40-03", received_at_s=102.0, first_token_at_s=102.2),
            gateway_row("a40-04", route="messages", received_at_s=103.0, first_token_at_s=108.0),
        ]
    )
    block = seen.block(110.0)
    assert block is not None
    assert block.last == pytest.approx([0.2, 0.2])
    later = seen.block(1000.0)
    assert later is not None
    assert later.last == pytest.approx([5.0]), "none in the window: the route used last"
    seen.begin_again(200.0)
    assert seen.block(210.0) is None


def test_an_engine_we_only_watch_tells_its_own_first_tokens() -> None:
    source = minute("vllm-0.32-base-before", "vllm-0.32-base-after")
    shown = latency(source, FirstTokens(since_s=0.0), 60.0)
    assert not isinstance(shown.ttft_s, Missing)
    assert (shown.ttft_s.origin, shown.ttft_s.count, shown.ttft_s.last) == ("engine", 20, ())
    assert isinstance(shown.ttft_s.p50, Estimated)
    assert not isinstance(shown.pass_s, Missing)
    assert shown.pass_s.count == 2100


def generating(*spans: tuple[float, float], rate: float, until_s: float) -> Source:
    """Read once a second; tokens move at that rate within the spans."""

    def tokens(at_s: float) -> float:
        return sum(rate * max(0.0, min(at_s, end) - begin) for begin, end in spans)

    seconds = [0.3 + second for second in range(int(until_s) + 1)]
    return source_of(*(reading(at, {"generated_tokens": tokens(at)}) for at in seconds))


@given(
    rate=st.floats(5.0, 2000.0),
    began_s=st.floats(20.0, 30.0),
    after_s=st.integers(0, 20),
    pause_s=st.floats(6.0, 15.0),
)
def test_a_rate_that_a_price_may_rest_on_is_never_that_of_a_half_empty_window(
    rate: float, began_s: float, after_s: int, pause_s: float
) -> None:
    """After silence, however long and whether or not something was generated before it."""
    spans = ((0.0, began_s - pause_s), (began_s, 1000.0))
    now_s = began_s + after_s
    found = steady_tokens_per_s(generating(*spans, rate=rate, until_s=now_s))
    value = number(found)
    if value is None:
        assert found == Missing(
            "nothing was generated 5 s ago, as the window began: too short for a rate"
        )
        assert after_s <= 6
    elif after_s >= 1:
        assert value == 0.0 or rate * 0.6 <= value <= rate * 1.001
    if after_s >= 7:
        assert value == pytest.approx(rate, rel=1e-6)


def test_nothing_generated_is_a_rate_of_nothing_and_one_reading_is_none() -> None:
    assert steady_tokens_per_s(generating((0.0, 1.0), rate=100.0, until_s=20.0)) == 0.0
    young = steady_tokens_per_s(generating((0.0, 9.0), rate=100.0, until_s=3.0))
    assert young == Missing("read for less than 5 s"), "it may have generated all along"
    one = steady_tokens_per_s(generating((0.0, 1.0), rate=100.0, until_s=0.0))
    assert one == Missing("one reading so far")
