"""The text of a session: our own, the same for a seed, as long as it is asked to be. Pure.

Each text is made of so many words, at the number of tokens that the engine counts for a word of its
kind: engines with other tokenizers read other words, and equally many tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeAlias, get_args

from a40console.experiments.planted import Fact, planted
from a40console.experiments.session_course import is_file
from a40console.experiments.session_lengths import Lengths
from a40console.experiments.transcript import Piece, PieceKind, Transcript, Turn

Style: TypeAlias = Literal["prose", "code", "log"]
STYLES: tuple[Style, ...] = get_args(Style)

_NOUNS = (
    *("queue", "worker", "buffer", "session", "ledger", "socket", "parser", "window", "batch"),
    *("cursor", "record", "stream", "cache", "index", "journal", "schema", "router", "lease"),
    *("token", "header", "segment", "counter", "timer", "replica", "snapshot", "bucket", "shard"),
)
_VERBS = (
    *("reads", "drains", "holds", "closes", "merges", "retries", "rejects", "counts", "flushes"),
    *("locks", "splits", "rebuilds", "checks", "skips", "signs", "trims", "copies", "awaits"),
)
_MANNERS = (
    *("before", "after", "without", "beside", "instead of", "while it keeps", "as soon as it has"),
    *("unless it lost", "only with", "together with"),
)
_LEVELS = ("INFO", "DEBUG", "WARNING")
_NONCE_WORDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Tokens as the engine counts them."""

    per_word: Mapping[Style, float] = field(
        default_factory=lambda: {"prose": 1.2, "code": 2.2, "log": 2.6}
    )
    per_message: float = 4.0
    """Of the chat template, around each message."""

    base: float = 4.0
    """Of the chat template, once a request."""


def sample_text(style: Style, words: int, seed: int) -> str:
    """A text of one kind."""
    dice = Random(f"{seed}/{style}")  # noqa: S311 - to be repeated
    lines: list[str] = []
    count = 0
    for line in _lines(style, dice):
        taken = line.split()
        left = words - count
        lines.append(line if len(taken) <= left else " ".join(taken[:left]))
        count += len(taken)
        if count >= words:
            break
    return "\n".join(lines)


def transcript(lengths: Lengths, rates: Rates, *, seed: int, facts: int) -> Transcript:
    """A whole session."""
    told = planted(len(lengths.turns), facts, seed)
    said = {fact.turn: fact for fact in told}
    writer = _Writer(rates, seed)
    system = writer.piece("system", "prose", lengths.system, 0, head=_SYSTEM)
    turns: list[Turn] = []
    for number, turn in enumerate(lengths.turns, 1):
        first = number == 1
        of_file = is_file(number)
        style: Style = "prose" if first else "code" if of_file else "log"
        turns.append(
            Turn(
                given=writer.piece(
                    "user" if first else "tool_result",
                    style,
                    turn.given,
                    number,
                    head=_TASK if first else f"Result of call {number}:",
                    fact=said.get(number),
                    is_file=of_file,
                ),
                answer=writer.piece(
                    "assistant",
                    "code" if number % 4 == 0 else "prose",
                    turn.answer,
                    number,
                    head=f"Step {number}.",
                ),
            )
        )
    return Transcript(system=system, turns=tuple(turns), facts=told)


def with_nonce(system: Piece, nonce: int) -> Piece:
    """The system prompt with something new at its head: no cached prefix can begin like it.

    The nonce is of as many words as any other, so that sessions are equally long.
    """
    dice = Random(nonce)  # noqa: S311 - it has only to differ
    words = " ".join(dice.choice(_NOUNS) for _ in range(_NONCE_WORDS))
    return Piece(
        kind="system", text=f"Session {words}.\n{system.text}", tokens=system.tokens, turn=0
    )


def text_piece(
    kind: PieceKind, text: str, style: Style, rates: Rates, *, turn: int = 0, is_file: bool = False
) -> Piece:
    """A given text as a piece, its tokens by the rate of its kind."""
    tokens = round(_words(text) * rates.per_word[style] + rates.per_message)
    return Piece(kind=kind, text=text, tokens=tokens, turn=turn, is_file=is_file)


def cut(piece: Piece, tokens: int) -> Piece:
    """The beginning of a piece, in about so many tokens; as it is, where it is no longer."""
    if piece.tokens <= tokens:
        return piece
    share = tokens / piece.tokens
    kept = piece.text[: max(1, int(len(piece.text) * share))]
    return Piece(kind=piece.kind, text=kept, tokens=tokens, turn=piece.turn, is_file=piece.is_file)


_SYSTEM = (
    "You are a careful engineer who works on one repository with tools. You are told the results "
    "of your calls, and answer with the next step. What follows describes the repository."
)
_TASK = "Work through the repository step by step and repair what is broken."


class _Writer:
    """Writes pieces of a wanted length."""

    def __init__(self, rates: Rates, seed: int) -> None:
        self._rates = rates
        self._seed = seed
        self._written = 0

    def piece(
        self,
        kind: PieceKind,
        style: Style,
        tokens: int,
        turn: int,
        *,
        head: str,
        fact: Fact | None = None,
        is_file: bool = False,
    ) -> Piece:
        """A piece that comes to about so many tokens; a fact in it comes on top."""
        self._written += 1
        room = tokens - self._rates.per_message
        words = max(0, round(room / self._rates.per_word[style]) - _words(head))
        parts = [head]
        if fact is not None:
            parts.append(fact.statement)
        if words:
            parts.append(sample_text(style, words, self._seed * 10_007 + self._written))
        return text_piece(kind, "\n".join(parts), style, self._rates, turn=turn, is_file=is_file)


def _words(text: str) -> int:
    return len(text.split())


def _lines(style: Style, dice: Random) -> Iterator[str]:
    """Lines without end."""
    while True:
        noun, other, third = dice.sample(_NOUNS, 3)
        verb, manner = dice.choice(_VERBS), dice.choice(_MANNERS)
        number = dice.randrange(1, 100)
        match style:
            case "prose":
                yield f"The {noun} {verb} the {other} {manner} the {third}."
            case "code":
                yield f"def {verb}_{noun}({other}: int, {third}: str) -> {noun.title()}:"
                yield f"    if {other} > {number}: return {third}.{verb}({noun}_{number})"
            case "log":
                level = dice.choice(_LEVELS)
                yield f"{level} {noun}.{other}: {verb} {third}={number} in {number / 10:.1f} ms"
