"""What the model says when it is told to: rules that a test writes, first match first. Pure.

A file of rules is a JSON list. Each has `when`, words that the newest turn must hold, and `say`, a
list of pieces: `{"text": …}`, `{"thinking": …}` or `{"tool": NAME, "input": {…}}`. `times` bounds
how often a rule speaks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from a40console.sim.text import tokenize

Kind = Literal["text", "thinking", "tool"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of an answer."""

    kind: Kind
    tokens: tuple[str, ...]
    """Its words; of a tool's call the arguments in JSON."""

    tool: str = ""


@dataclass(slots=True)
class Rule:
    """What is answered to a turn that holds some words."""

    when: str
    say: tuple[Piece, ...]
    left: int | None = None
    """How often it will still speak; None for always."""


class Script:
    """The rules of one engine."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = list(rules)

    @classmethod
    def read(cls, path: Path) -> Script:
        """The rules of a file.

        Raises:
            argparse.ArgumentTypeError: If it holds none.
        """
        try:
            items = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(items, list):
                raise ValueError("not a list")
            return cls([_rule(dict(item)) for item in items])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise argparse.ArgumentTypeError(f"{path} is no script: {error!r}") from error

    def answer(self, turn: str) -> tuple[Piece, ...]:
        """What the first rule says that these words fulfil; empty where none does."""
        for rule in self._rules:
            if rule.when in turn and rule.left != 0:
                if rule.left is not None:
                    rule.left -= 1
                return rule.say
        return ()


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of one piece, as they come out."""

    index: int
    piece: Piece
    text: str
    first: bool
    last: bool


class Reader:
    """Follows the pieces of an answer as their tokens come out of the engine."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._index = 0
        self._at = 0

    def parts(self, tokens: Sequence[str]) -> Iterator[Part]:
        """What these tokens are, cut where a piece ends."""
        rest = iter(tokens)
        while self._index < len(self._pieces):
            piece = self._pieces[self._index]
            taken = tuple(islice(rest, len(piece.tokens) - self._at))
            first, self._at = self._at == 0, self._at + len(taken)
            if not taken:
                return
            last = self._at == len(piece.tokens)
            yield Part(self._index, piece, "".join(taken), first, last)
            if not last:
                return
            self._index, self._at = self._index + 1, 0


def tokens_of(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """All words of an answer, in their order."""
    return tuple(token for piece in pieces for token in piece.tokens)


def _rule(item: dict[str, Any]) -> Rule:
    times = item.get("times")
    say = tuple(_piece(dict(piece)) for piece in item["say"])
    return Rule(str(item["when"]), say, None if times is None else int(times))


def _piece(item: dict[str, Any]) -> Piece:
    if "tool" in item:
        arguments = json.dumps(item.get("input", {}))
        return Piece("tool", tuple(tokenize(arguments)), str(item["tool"]))
    kind: Kind = "thinking" if "thinking" in item else "text"
    return Piece(kind, tuple(tokenize(str(item[kind]))))
