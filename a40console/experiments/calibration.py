"""How the engine under test counts tokens, asked with the requests that warm it up."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.experiments.asking import WARM_UP
from a40console.experiments.bench import ArmFailedError, Bench, Request
from a40console.experiments.transcript import PATHS, Piece, PieceKind, Pieces, body
from a40console.experiments.workload import STYLES, Rates, sample_text
from a40console.model.figures import Missing, number

_ANSWER_TOKENS = 8
_HELLO, _HELLO_TOKENS = "Hello.", 2
_MESSAGES = 5
_SAMPLE_WORDS, _LEAST_WORDS = 200, 24
_REFUSED_AS_ASKED = (400, 422)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the texts of a run are made with."""

    rates: Rates
    forced: bool
    """Whether the server takes an order for an answer's length at all."""


async def calibrate(bench: Bench, window_tokens: int | Missing) -> Calibration:
    """Ask, by usage: every server that streams one tells it, whatever its tokenizer.

    Raises:
        ArmFailedError: If the server does not answer, or tells no usage: nothing could be compared.
        RunStoppedError: If the run is to end.
    """
    words = _SAMPLE_WORDS
    if not isinstance(window_tokens, Missing):
        words = max(min(words, window_tokens // 12), _LEAST_WORDS)
    forced = bench.target.dialect == "openai"
    one = await _count(bench, _hellos(1), 0, forced=forced)
    if one is None and forced:
        forced = False
        one = await _count(bench, _hellos(1), 0, forced=False)
    several = await _count(bench, _hellos(_MESSAGES), 1, forced=forced)
    each = (_told(several) - _told(one)) / (_MESSAGES - 1)
    per_message = max(0.0, each - _HELLO_TOKENS)
    base = max(0.0, _told(one) - each)
    per_word = {}
    for index, style in enumerate(STYLES, 2):
        text = Piece(kind="user", text=sample_text(style, words, bench.seed), tokens=0)
        tokens = _told(await _count(bench, (text,), index, forced=forced))
        per_word[style] = max(0.5, (tokens - base - per_message) / words)
    return Calibration(
        rates=Rates(per_word=per_word, per_message=per_message, base=base), forced=forced
    )


async def _count(bench: Bench, pieces: Pieces, index: int, *, forced: bool) -> float | None:
    """Prompt tokens of a request; None where the server refuses how it is asked."""
    dialect = bench.target.dialect
    reply = await bench.client.send(
        Request(
            path=PATHS[dialect],
            body=body(
                pieces,
                model=bench.model,
                dialect=dialect,
                answer_tokens=_ANSWER_TOKENS,
                forced=forced,
            ),
            arm=WARM_UP,
            index=index,
            warm_up=True,
        )
    )
    sample = reply.sample
    if sample.error:
        if forced and reply.status in _REFUSED_AS_ASKED:
            return None
        raise ArmFailedError(f"the server does not answer a first request: {sample.error}")
    tokens = number(sample.prompt_tokens)
    if tokens is None or number(sample.generated_tokens) is None:
        raise ArmFailedError(
            "the server tells no usage: that all arms did the same work could not be seen"
        )
    return tokens


def _told(tokens: float | None) -> float:
    if tokens is None:
        raise ArmFailedError("the server refuses a request of several messages")
    return tokens


def _hellos(count: int) -> Pieces:
    kinds: tuple[PieceKind, PieceKind] = ("user", "assistant")
    return tuple(Piece(kind=kinds[at % 2], text=_HELLO, tokens=0) for at in range(count))
