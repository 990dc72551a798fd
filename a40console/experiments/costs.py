"""What a run would take, and what tokens cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.experiments.bench import Known
from a40console.model.figures import Estimated, Figure, Missing, combine, number, total

_STREAMS_EXPONENT = 0.7
"""All streams together are about so much faster: their number to this power, on cards measured."""


def load_seconds(
    known: Known, *, streams: int, requests: int, prompt_tokens: int, output_tokens: int
) -> Figure:
    """≈ seconds of so many requests, shared by so many streams."""

    def formula(one_stream: float, prefill: float) -> float | None:
        if one_stream <= 0 or prefill <= 0:
            return None
        together = one_stream * float(streams**_STREAMS_EXPONENT)
        return requests * (output_tokens / together + prompt_tokens / prefill)

    rates = (known.generation_tokens_per_s, known.prefill_tokens_per_s)
    return estimated(combine(formula, *rates, reason="the engine's speed is not known"))


def estimated(figure: Figure) -> Figure:
    """The figure as the estimate that it is."""
    value = number(figure)
    return figure if value is None else Estimated(value)


def sum_of(seconds: Iterable[Figure]) -> Figure:
    """All of them together."""
    return total(seconds, reason="nothing is asked")


def dollars(seconds: Figure, usd_per_h: Figure) -> Figure:
    """What so many seconds cost."""
    return combine(lambda each_s, per_h: each_s * per_h / 3600, seconds, usd_per_h)


def dollars_per_million(tokens_per_s: Figure, usd_per_h: Figure) -> Figure:
    """Dollars of a million tokens at this rate."""
    return combine(
        lambda rate, per_h: per_h / 3600 / rate * 1e6 if rate > 0 else None,
        *(tokens_per_s, usd_per_h),
        reason="no tokens",
    )


def window_refusal(prompt_tokens: int, output_tokens: int, window_tokens: Figure) -> str:
    """Why requests of this size cannot be asked; empty where they can, or nothing is known."""
    window = number(window_tokens)
    if isinstance(window_tokens, Missing) or window is None:
        return ""
    if prompt_tokens + output_tokens <= window:
        return ""
    return (
        f"≈ {prompt_tokens} tokens of prompt and {output_tokens} of answer do not fit the "
        f"engine's window of {int(window)}"
    )
