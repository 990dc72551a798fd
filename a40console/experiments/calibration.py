"""How the engine under test counts tokens, asked with the requests that warm it up."""

from __future__ import annotations

from a40console.experiments.asking import WARM_UP, Asking, Place
from a40console.experiments.bench import ArmFailedError, Bench
from a40console.experiments.transcript import Piece, PieceKind, Pieces, messages
from a40console.experiments.workload import STYLES, Rates, sample_text
from a40console.model.figures import Missing, number

_ANSWER_TOKENS = 8
_HELLO, _HELLO_TOKENS = "Hello.", 2
_MESSAGES = 5
_SAMPLE_WORDS, _LEAST_WORDS = 200, 24


async def calibrate(bench: Bench, asking: Asking, window_tokens: int | Missing) -> Rates:
    """Ask, by usage: every server that streams one tells it, whatever its tokenizer.

    Raises:
        ArmFailedError: If the server does not answer, or tells no usage: nothing could be compared.
        RunStoppedError: If the run is to end.
    """
    words = _SAMPLE_WORDS
    if not isinstance(window_tokens, Missing):
        words = max(min(words, window_tokens // 12), _LEAST_WORDS)
    one = await _count(bench, asking, _hellos(1), 0)
    several = await _count(bench, asking, _hellos(_MESSAGES), 1)
    each = (several - one) / (_MESSAGES - 1)
    per_message = max(0.0, each - _HELLO_TOKENS)
    base = max(0.0, one - each)
    per_word = {}
    for index, style in enumerate(STYLES, 2):
        text = Piece(kind="user", text=sample_text(style, words, bench.seed), tokens=0)
        tokens = await _count(bench, asking, (text,), index)
        per_word[style] = max(0.5, (tokens - base - per_message) / words)
    return Rates(per_word=per_word, per_message=per_message, base=base)


async def _count(bench: Bench, asking: Asking, pieces: Pieces, index: int) -> float:
    """Prompt tokens of a request."""
    place = Place(arm=WARM_UP, index=index, warm_up=True, role="probe")
    request = asking.request(messages(pieces), place, output_tokens=_ANSWER_TOKENS)
    sample = (await bench.client.send(request)).sample
    if sample.error:
        raise ArmFailedError(f"the server does not answer a first request: {sample.error}")
    tokens = number(sample.prompt_tokens)
    if tokens is None or number(sample.generated_tokens) is None:
        raise ArmFailedError(
            "the server tells no usage: that all arms did the same work could not be seen"
        )
    return tokens


def _hellos(count: int) -> Pieces:
    kinds: tuple[PieceKind, PieceKind] = ("user", "assistant")
    return tuple(Piece(kind=kinds[at % 2], text=_HELLO, tokens=0) for at in range(count))
