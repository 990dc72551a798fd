"""What was measured of two models on one A40, as the numbers that the simulation runs on.

The measurements are field notes: tables of aggregate tokens a second by streams, prefill rates and
speculation by depth. Where two runs disagree, the fit takes the one with more points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Regime = Literal["prose", "session", "code_edit"]
"""How much of an answer stands in its prompt already: none, as in an agent's turns, most."""

DEFAULT_BATCHED_TOKENS = 8192
"""Tokens a pass that vLLM schedules on a 48 GB card without being told."""

SPECULATION_BATCHED_TOKENS = 2048
"""What vLLM lowers that to while it speculates, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTimes:
    """How long a pass takes while it verifies drafts."""

    alone_s: Mapping[int, float]
    """Pass of one sequence by depth, between which it is interpolated."""

    growth: float
    """Pass of n sequences ÷ pass of one, less one, per (√n − 1): each sequence is verified."""

    starved: float
    """Factor where vLLM has lowered the batched tokens to 2,048."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSheet:
    """One model on one A40."""

    name: str
    architecture: str
    max_model_len: int
    kv_capacity_tokens: int
    block_tokens: int

    pass_s: tuple[float, float, float]
    """a, b, c of a pass of n sequences without drafts: a + b·√n + c·n."""

    attention_s: float
    """Added to a pass for each token of context that a sequence reads."""

    attention_growth: float
    """Growth of that for each drafted token that is verified."""

    prefill_s: float
    """For each prompt token computed, what its admission takes apart."""

    prefill_attention_s: float
    """For each prompt token computed and each token of context before it."""

    admission_s: float
    """For each prompt token, cached or not: tokenising and hashing, on the CPU."""

    drafts: DraftTimes | None
    """None: with drafts CUDA graphs are off, and every pass takes `eager` times as long."""

    eager: float = 1.0
    caches_by_itself: bool = True
    """Whether the prefix cache is on without being asked for: not so for hybrid models."""

    corrupts_code: bool = False
    """Whether n-gram drafts garble code, as measured."""

    weights_bytes: int
    """In the GPU's memory."""

    read_bytes: float
    """Weights that a pass of one sequence reads; n sequences read n^0.387 times that."""

    kv_bytes: float
    """Of one token in the KV cache."""


SHEETS: Mapping[str, ModelSheet] = {
    sheet.name: sheet
    for sheet in (
        ModelSheet(
            name="qwen3-coder-30b",
            architecture="Qwen3MoeForCausalLM",
            max_model_len=262_144,
            kv_capacity_tokens=450_112,
            block_tokens=16,
            # 122.9, 209.5, 331.2, 512.1, 776.8, 1,159.7 tok/s with 1 … 32 sessions; 130 at best.
            pass_s=(3.70e-3, 4.10e-3, 0.0),
            # 119k of context: 34.3 instead of 77.6 tok/s.
            attention_s=0.137e-6,
            attention_growth=0.13,
            # 4,485 tok/s cold; 38,494 tokens in 10.42 s.
            prefill_s=1 / 4485 - 1 / 63_315,
            prefill_attention_s=2.48e-9,
            admission_s=1 / 63_315,
            # n=12 and n=24 with 16,384 batched tokens, n=5 with 2,048; alone and by sessions.
            drafts=DraftTimes(
                alone_s={0: 7.75e-3, 12: 11.6e-3, 24: 31.6e-3}, growth=1.65, starved=1.88
            ),
            weights_bytes=int(16.9 * 2**30),
            read_bytes=4.7e9,
            kv_bytes=49_152,
        ),
        ModelSheet(
            name="kimi-linear-48b",
            architecture="KimiLinearForCausalLM",
            max_model_len=1_048_576,
            kv_capacity_tokens=1_505_536,
            block_tokens=64,
            # 83.9, 250.6, 402.9, 616.4, 772.4 tok/s with 1, 4, 8, 16, 32 streams.
            pass_s=(9.57e-3, 1.64e-3, 0.705e-3),
            attention_s=0.02e-6,
            attention_growth=0.13,
            prefill_s=1 / 7647 - 1 / 36_257,
            prefill_attention_s=0.3e-9,
            admission_s=1 / 36_257,
            drafts=None,
            # 23.1, 58.7, 203.9 against 71.2, 249.6, 781 tok/s with 1, 4, 32 streams.
            eager=3.9,
            caches_by_itself=False,
            corrupts_code=True,
            weights_bytes=int(28.4 * 2**30),
            read_bytes=3.2e9,
            kv_bytes=8_069,
        ),
    )
}
"""By the name that a profile's model ends in."""

_CODE_EDIT: Mapping[int, tuple[float, ...]] = {
    5: tuple(count / 207 for count in (179, 156, 131, 120, 120)),
    12: tuple(count / 312 for count in (257, 118, 82, 72, 71, 63, 61, 59, 59, 58, 58, 51)),
    24: tuple(0.972**position for position in range(1, 25)),
}
"""Drafts accepted at least up to a position, of all: three runs, on different prompts."""

_SESSION = tuple(0.8 * 0.855**position for position in range(24))
_PROSE = (0.28, 0.08, 0.03, 0.01)

DRAFTED: Mapping[Regime, float] = {"prose": 0.5, "session": 0.75, "code_edit": 1.0}
"""Share of the passes for which the prompt holds a draft."""


def survival(regime: Regime, depth: int) -> tuple[float, ...]:
    """For each position of a draft, the share of drafts that are accepted at least that far.

    Measured for code edits at depths 5, 12 and 24, blended between them; for an agent's session
    and for prose as much as explains the measured speeds.
    """
    if regime == "prose":
        return _padded(_PROSE, depth)
    if regime == "session":
        return _padded(_SESSION, depth)
    known = sorted(_CODE_EDIT)
    lower = max((at for at in known if at <= depth), default=known[0])
    upper = min((at for at in known if at >= depth), default=known[-1])
    low, high = _padded(_CODE_EDIT[lower], depth), _padded(_CODE_EDIT[upper], depth)
    share = (depth - lower) / (upper - lower) if upper > lower else 0.0
    return tuple((1 - share) * one + share * other for one, other in zip(low, high, strict=True))


def _padded(curve: tuple[float, ...], depth: int) -> tuple[float, ...]:
    """The curve as long as the drafts are; beyond what is known it stays as it ends."""
    return (*curve[:depth], *([curve[-1]] * (depth - len(curve))))


def sheet_for(model: str) -> ModelSheet:
    """The sheet of a model by its name, whatever stands around it.

    Raises:
        KeyError: If nothing was measured of it.
    """
    for name, sheet in SHEETS.items():
        if name in model.casefold():
            return sheet
    raise KeyError(model)
