"""A session as data: its pieces, what is sent of them, and what two requests share. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from a40console.experiments.planted import Fact

PieceKind: TypeAlias = Literal[
    "system", "user", "tool_result", "assistant", "summary", "files", "request"
]
"""`summary` and `files` are what a restarted history begins with; `request` asks for the summary,
or for a fact."""

_BEGINNING = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One text of a history."""

    kind: PieceKind
    text: str
    tokens: int
    """By the engine's own rate for texts of this kind, with its share of the chat template."""

    turn: int = 0
    """The turn that it came in; 0 for the system prompt."""

    is_file: bool = False
    """Whether it is a file's content, which a restarted client reads again."""

    @property
    def role(self) -> str:
        """Who says it. Results of tools are the user's: every chat template knows that role."""
        return self.kind if self.kind in {"system", "assistant"} else "user"


Pieces: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model is given, and the answer that goes into the history whatever it says."""

    given: Piece
    answer: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A whole session."""

    system: Piece
    turns: tuple[Turn, ...]
    facts: tuple[Fact, ...] = ()


def tokens_of(pieces: Iterable[Piece]) -> int:
    """What they come to."""
    return sum(piece.tokens for piece in pieces)


def shared_tokens(before: Sequence[Piece], now: Sequence[Piece]) -> int:
    """Tokens of a request that the one before held too, wherever they stood in it."""
    had = Counter(map(_origin, before))
    total = 0
    for piece in now:
        if had[_origin(piece)] > 0:
            had[_origin(piece)] -= 1
            total += piece.tokens
    return total


def prefix_tokens(before: Sequence[Piece], now: Sequence[Piece]) -> int:
    """Tokens with which both begin: what a prefix cache can spare."""
    total = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        total += new.tokens
    return total


def _origin(piece: Piece) -> tuple[int, str, str]:
    """What a piece is known by: a file that is read again, and cut, begins as it did."""
    return (piece.turn, piece.role, piece.text[:_BEGINNING])


def messages(pieces: Sequence[Piece]) -> list[dict[str, str]]:
    """As a chat; neighbours of one role are one message: some templates want them to alternate."""
    told: list[dict[str, str]] = []
    for piece in pieces:
        if told and told[-1]["role"] == piece.role:
            told[-1]["content"] += f"\n\n{piece.text}"
        else:
            told.append({"role": piece.role, "content": piece.text})
    return told
