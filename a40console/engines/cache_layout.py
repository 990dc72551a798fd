"""How an engine lays its cache out: blocks a sequence needs, and what they take. Pure.

vLLM (0.27 to 0.33) draws the blocks of all groups of layers from one pool. A group has as many
layers as the rarest kind; a block holds its tokens for each of them. A recurrent state takes a
block of its own, so a block is made as large as the state: with Kimi-Linear 1,920 tokens, and 2,048
with five draft tokens. llama.cpp keeps one cell a token, and the states apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.shape import ModelShape

GPU_BLOCK_TOKENS = 16
CPU_BLOCK_TOKENS = 128
HYBRID_LATENT_ALIGNMENT = 128
"""vLLM makes the blocks of a latent cache beside recurrent states a multiple of this."""

ONE_GROUP_RATIO = 1.5
"""Kinds whose numbers of layers differ by less share groups as large as the larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAsked:
    """What a start asks of its cache."""

    element_bytes: int
    """Of a cached key or value."""

    tensor_parallel: int = 1
    block_tokens: int = GPU_BLOCK_TOKENS
    prefix_caching: bool = True
    draft_tokens: int = 0
    batched_tokens: int = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """The pool of one GPU."""

    bytes_per_token: int
    """Of the layers whose cache grows."""

    block_tokens: int
    block_bytes: int
    growing_groups: int = 1
    sliding_groups: int = 0
    sliding_tokens: int = 0
    """The most that a layer with a window keeps."""

    state_blocks: int = 0
    """Of a sequence, whatever its length."""

    def blocks(self, tokens: int) -> int:
        """Blocks that a sequence of so many tokens takes."""
        growing = self.growing_groups * _ceil(tokens, self.block_tokens)
        kept = min(tokens, self.sliding_tokens)
        sliding = self.sliding_groups * (_ceil(kept, self.block_tokens) + 1)
        return growing + sliding + self.state_blocks

    def bytes_for(self, tokens: int) -> int:
        """What a sequence of so many tokens takes."""
        return self.blocks(tokens) * self.block_bytes

    def sequences(self, room_bytes: int, tokens: int) -> float:
        """Sequences of so many tokens that fit into the room; vLLM's "maximum concurrency"."""
        return max(0, room_bytes // self.block_bytes) / self.blocks(tokens)

    def capacity_tokens(self, room_bytes: int, tokens: int) -> int:
        """Tokens of context that the room holds, in sequences so long; vLLM's "KV cache size"."""
        return int(self.sequences(room_bytes, tokens) * tokens)

    def longest(self, room_bytes: int) -> int:
        """Tokens of the longest single sequence; one block is vLLM's own. 0 where none fits."""
        left = room_bytes // self.block_bytes - 1 - self.state_blocks
        most = max(0, left // self.growing_groups) * self.block_tokens
        while most > 0 and self.blocks(most) > left + self.state_blocks:
            most -= self.block_tokens
        return most


def vllm_layout(shape: ModelShape, asked: CacheAsked) -> CacheLayout:
    """The cache that vLLM makes for a model on each GPU; the model must have layers that attend."""
    token_bytes = layer_token_bytes(shape, asked.element_bytes, asked.tensor_parallel)
    block_tokens, state_bytes = asked.block_tokens, state_page_bytes(shape, asked)
    if state_bytes:
        step = max(block_tokens, HYBRID_LATENT_ALIGNMENT if shape.latent_dim else 0)
        block_tokens = step * _ceil(state_bytes, step * token_bytes)
    group = _group_layers(shape.attention_layers, shape.sliding_layers, shape.recurrent_layers)
    states = asked.draft_tokens + (2 if asked.prefix_caching else 1)
    return CacheLayout(
        bytes_per_token=shape.attention_layers * token_bytes,
        block_tokens=block_tokens,
        block_bytes=group * block_tokens * token_bytes,
        growing_groups=_ceil(shape.attention_layers, group),
        sliding_groups=_ceil(shape.sliding_layers, group),
        sliding_tokens=max(0, shape.sliding_window - 1 + asked.batched_tokens),
        state_blocks=_ceil(shape.recurrent_layers, group) * states,
    )


def layer_token_bytes(shape: ModelShape, element_bytes: int, tensor_parallel: int = 1) -> int:
    """What one layer keeps of one token; a latent is not divided among GPUs, heads are."""
    if shape.latent_dim:
        return shape.latent_dim * element_bytes
    heads = max(1, shape.kv_heads // tensor_parallel)
    return heads * (shape.head_dim + (shape.value_head_dim or shape.head_dim)) * element_bytes


def state_page_bytes(shape: ModelShape, asked: CacheAsked) -> int:
    """A recurrent layer's state of one sequence on each GPU; 0 where there is none.

    Each draft token lengthens what the convolution keeps.
    """
    if not shape.recurrent_layers:
        return 0
    taps = shape.convolution_taps + asked.draft_tokens
    convolution = shape.convolution_channels * taps * shape.element_bytes
    state = shape.recurrent_elements * shape.recurrent_element_bytes
    return (convolution + state) // asked.tensor_parallel


def _group_layers(*kinds: int) -> int:
    present = [layers for layers in kinds if layers]
    if max(present) < ONE_GROUP_RATIO * min(present):
        return max(present)
    return min(present)


def _ceil(value: int, step: int) -> int:
    return -(-value // step)
