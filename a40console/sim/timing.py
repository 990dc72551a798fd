"""How long one pass of the engine takes. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from a40console.sim.sheets import SPECULATION_BATCHED_TOKENS, ModelSheet

EAGER_FACTOR = 1.6
"""Without CUDA graphs each kernel of a small pass is launched by the CPU."""

READ_GROWTH = 0.387
"""Weights read by n sequences: 4.7 GB for one and some 18 GB for 32, so n to this power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """A piece of a prompt that a pass computes."""

    tokens: int
    context_tokens: int
    """What stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one pass does."""

    contexts: Sequence[int]
    """Tokens of context of each sequence that decodes."""

    prefills: Sequence[Prefill] = ()
    speculating: bool = False
    """Whether the engine was started with drafts and they are on."""

    depth: int = 0
    batched_tokens: int = 8192
    eager: bool = False


def pass_s(sheet: ModelSheet, work: Work) -> float:
    """Seconds of a pass: what it decodes, what of the context that reads, and prompts beside it."""
    seconds = sum(
        piece.tokens
        * (sheet.prefill_s + sheet.prefill_attention_s * (piece.context_tokens + piece.tokens / 2))
        for piece in work.prefills
    )
    if work.contexts:
        seconds += _decode_s(sheet, work, len(work.contexts))
        each_s = sheet.attention_s
        if work.speculating and sheet.drafts is not None:
            each_s *= 1 + sheet.attention_growth * work.depth
        seconds += each_s * sum(work.contexts)
    elif work.prefills:
        seconds += sheet.pass_s[0]
    return seconds * (EAGER_FACTOR if work.eager else 1.0)


def read_bytes(sheet: ModelSheet, work: Work) -> float:
    """Bytes that a pass reads from the GPU's memory: a model, as vLLM's own estimate is one."""
    sequences = len(work.contexts) + len(work.prefills)
    if not sequences:
        return 0.0
    context = sum(work.contexts) + sum(piece.context_tokens for piece in work.prefills)
    return float(sheet.read_bytes * sequences**READ_GROWTH + sheet.kv_bytes * context)


def _decode_s(sheet: ModelSheet, work: Work, sequences: int) -> float:
    start_s, root_s, each_s = sheet.pass_s
    plain_s = start_s + root_s * sqrt(sequences) + each_s * sequences
    if not work.speculating:
        return plain_s
    drafts = sheet.drafts
    if drafts is None:
        return plain_s * sheet.eager
    alone_s = _between(drafts.alone_s, work.depth)
    if work.batched_tokens <= SPECULATION_BATCHED_TOKENS and work.depth:
        alone_s *= drafts.starved
    return alone_s * (1 + drafts.growth * (sqrt(sequences) - 1))


def _between(known: Mapping[int, float], depth: int) -> float:
    """Linear between the measured depths, and on from the last two beyond them."""
    depths = sorted(known)
    upper = min(max(1, bisect_left(depths, depth)), len(depths) - 1)
    low, high = depths[upper - 1], depths[upper]
    slope = (known[high] - known[low]) / (high - low)
    return known[low] + slope * (depth - low)
