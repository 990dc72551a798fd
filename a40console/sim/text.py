"""Words for the simulated model: a tokenizer that never changes its mind, and answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from zlib import crc32

from a40console.sim.sheets import Regime

_TOKEN = re.compile(r" ?\w{1,6}|\s*\n\s*|\s|[^\w\s]")

_PROSE = (
    "The engine reads the weights once for each pass, and every sequence takes its share.\n",
    "A cache that is kept warm saves more than any kernel, for what is not computed is free.\n",
    "Nothing here was thought by a model: these words come from a table and a random number.\n",
    "Two clients that begin alike share their first blocks, and neither of them notices it.\n",
    "Bandwidth bounds a single stream, while many streams wait for the experts instead.\n",
)
_CODE = (
    "def add(first: int, second: int) -> int:\n    return first + second\n\n",
    "def fibonacci(n: int) -> int:\n    return n if n < 2 else fibonacci(n-1) + fibonacci(n-2)\n\n",
    "class Window:\n    def __init__(self, span_s: float) -> None:\n        self.s = span_s\n\n",
    "for row in rows:\n    if row.phase == 'decode':\n        total += row.tokens\n\n",
)
_PIECES = {"prose": _PROSE, "session": (*_PROSE[:3], *_CODE[:2]), "code_edit": _CODE}
_GARBLE_EVERY = 37


def tokenize(text: str) -> list[str]:
    """The text in pieces of at most a blank and six letters; joined they are the text again."""
    return _TOKEN.findall(text)


@lru_cache(maxsize=65536)
def token_id(token: str) -> int:
    """A number for a token, the same in every process."""
    return crc32(token.encode())


def token_ids(text: str) -> tuple[int, ...]:
    """The text as the engine sees it."""
    return tuple(map(token_id, tokenize(text)))


def answer(regime: Regime, seed: int, *, garbled: bool = False) -> Iterator[str]:
    """The tokens of an answer, without end.

    Every piece is whole lines, so that joined and cut again they are the same tokens.

    Args:
        regime: Prose, code, or some of both.
        seed: Chooses the pieces.
        garbled: Whether fragments just written come out again in the wrong place.
    """
    dice = Random(seed)  # noqa: S311 - a simulation wants to be repeated
    pieces = [tokenize(piece) for piece in _PIECES[regime]]
    written: list[str] = []
    while True:
        for token in dice.choice(pieces):
            written.append(token)
            yield token
            if garbled and len(written) % _GARBLE_EVERY == 0:
                yield from written[-4:-1]
