"""What is known of a model's fit: the figures of one machine, and how they were come by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from a40console.engines.fit_remedies import Remedy
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.profile import Profile

Verdict = Literal["fits", "too_large", "unknown"]
NOT_MEASURED = Missing("no earlier start with this model is on record here")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFit:
    """What the output of an earlier start says of its memory."""

    start: str
    """Its id."""

    same_settings: bool
    """Whether it was asked what is asked now, as far as memory goes."""

    weights_bytes: Figure
    room_bytes: Figure
    capacity_tokens: Figure
    context_tokens: Figure
    sequences: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a start would take, against what there is; bytes are those of one device."""

    profile: str
    verdict: Verdict
    judged_by: Literal["measured", "predicted", "nothing"]
    reason: str
    """One sentence."""

    place: Literal["gpu", "host"]
    memory_bytes: Figure
    devices: int
    """Over which the model is divided."""

    usable_bytes: Figure
    weights_bytes: Figure
    weights_origin: str
    overhead_bytes: Figure
    overhead_origin: str
    kv_bytes_per_token: Figure
    state_bytes_per_sequence: Figure
    """What a sequence takes besides, whatever its length: recurrent states."""

    room_bytes: Figure
    """Left for the cache."""

    needed_bytes: Figure
    """Of the cache, for what must fit: vLLM one sequence, llama.cpp all of its slots."""

    context_tokens: Figure
    capacity_tokens: Figure
    """Tokens that the cache holds."""

    sequences: Figure
    """Of the full context at once."""

    sequences_asked: Figure
    longest_tokens: Figure
    """The longest context that would fit."""

    remedies: tuple[Remedy, ...] = ()
    """Each alone makes it fit, by these figures."""

    measured: MeasuredFit | Missing = NOT_MEASURED


def unknown(profile: Profile, reason: str, **known: Any) -> Fit:
    """A fit that cannot be told, with the figures that can."""
    why = Missing(reason)
    blank = Fit(
        profile=profile.name,
        verdict="unknown",
        judged_by="nothing",
        reason=reason,
        place="gpu",
        memory_bytes=why,
        devices=1,
        usable_bytes=why,
        weights_bytes=why,
        weights_origin="",
        overhead_bytes=why,
        overhead_origin="",
        kv_bytes_per_token=why,
        state_bytes_per_sequence=why,
        room_bytes=why,
        needed_bytes=why,
        context_tokens=why,
        capacity_tokens=why,
        sequences=why,
        sequences_asked=why,
        longest_tokens=why,
    )
    return replace(blank, **known)


def like(figure: float, *sources: Figure) -> Figure:
    """A whole figure, an estimate where one of its sources is."""
    estimated = any(isinstance(source, Estimated) for source in sources)
    return Estimated(float(figure)) if estimated else figure


def gib(size_bytes: float) -> str:
    """Bytes of memory in words, with two places: a fit is often a matter of tenths."""
    return f"{size_bytes / 2**30:.2f} GiB"
