"""A cache laid out as vLLM lays it out: exact where the size of its room is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.cache_layout import (
    CPU_BLOCK_TOKENS,
    CacheAsked,
    CacheLayout,
    layer_token_bytes,
    vllm_layout,
)
from tests.engines.model_configs import shape


def test_bytes_a_token() -> None:
    kimi, k3, qwen = shape("kimi-linear-48b"), shape("kimi-k3"), shape("qwen3-coder-30b")
    assert kimi.attention_layers * layer_token_bytes(kimi, 2) == 8_064
    assert k3.attention_layers * layer_token_bytes(k3, 2) == 27_648
    assert qwen.attention_layers * layer_token_bytes(qwen, 1) == 49_152
    assert qwen.attention_layers * layer_token_bytes(qwen, 2) == 98_304


def test_a_million_tokens_of_k3_take_29_gb() -> None:
    k3 = shape("kimi-k3")
    size_bytes = 1_048_576 * k3.attention_layers * layer_token_bytes(k3, 2)
    assert round(size_bytes / 1e9) == 29


@pytest.mark.parametrize(
    ("draft_tokens", "prefix_caching", "pool_blocks", "block_tokens", "told_tokens"),
    [(5, False, 716, 2048, 1_416_566), (0, True, 794, 1920, 1_505_550)],
)
def test_the_two_starts_of_kimi_linear_to_the_token(
    draft_tokens: int,
    prefix_caching: bool,
    pool_blocks: int,
    block_tokens: int,
    told_tokens: int,
) -> None:
    asked = CacheAsked(element_bytes=2, draft_tokens=draft_tokens, prefix_caching=prefix_caching)
    layout = vllm_layout(shape("kimi-linear-48b"), asked)
    assert layout.block_tokens == block_tokens
    assert layout.capacity_tokens(pool_blocks * layout.block_bytes, 1_048_576) == told_tokens


def test_the_cpu_build_with_one_gib() -> None:
    layout = vllm_layout(
        shape("smollm2-135m"), CacheAsked(element_bytes=2, block_tokens=CPU_BLOCK_TOKENS)
    )
    assert layout.capacity_tokens(2**30, 4096) == 46_592
    assert layout.sequences(2**30, 4096) == 11.375
    assert layout.longest(100_000_000) == 4096  # what vLLM estimates for so small a cache
    assert round(layout.bytes_for(8192) / 2**30, 2) == 0.18


def test_a_latent_is_not_divided_among_gpus_and_heads_are() -> None:
    kimi, qwen = shape("kimi-linear-48b"), shape("qwen3-coder-30b")
    assert layer_token_bytes(kimi, 2, 4) == layer_token_bytes(kimi, 2, 1)
    assert layer_token_bytes(qwen, 2, 2) * 2 == layer_token_bytes(qwen, 2, 1)
    assert layer_token_bytes(qwen, 2, 8) == layer_token_bytes(qwen, 2, 4)  # one head at least


def test_windows_keep_no_more_than_themselves() -> None:
    layout = vllm_layout(shape("sliding-dense"), CacheAsked(element_bytes=2))
    assert layout.bytes_per_token == 2 * 2 * 4 * 256 * 2
    growing_only = layout.growing_groups * (131_072 - 65_536) // layout.block_tokens
    assert layout.blocks(131_072) - layout.blocks(65_536) == growing_only


LAYOUTS = st.builds(
    CacheLayout,
    bytes_per_token=st.just(1),
    block_tokens=st.sampled_from([1, 16, 128, 1920]),
    block_bytes=st.integers(1, 10**7),
    growing_groups=st.integers(1, 4),
    sliding_groups=st.integers(0, 6),
    sliding_tokens=st.integers(0, 5000),
    state_blocks=st.integers(0, 30),
)


@given(LAYOUTS, st.integers(0, 10**10))
def test_the_longest_context_fits_and_a_block_more_does_not(
    layout: CacheLayout, room_bytes: int
) -> None:
    longest, pool = layout.longest(room_bytes), room_bytes // layout.block_bytes
    if longest:
        assert layout.blocks(longest) < pool
    more = longest + layout.block_tokens
    assert layout.blocks(more) >= pool


@given(LAYOUTS, st.integers(0, 10**10), st.integers(1, 10**6))
def test_more_room_holds_no_less(layout: CacheLayout, room_bytes: int, tokens: int) -> None:
    less, more = (layout.capacity_tokens(size, tokens) for size in (room_bytes, 2 * room_bytes))
    assert 0 <= less <= more
