"""Facts planted in a session, what asks for them, and whether an answer knows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias, get_args

FactKind: TypeAlias = Literal["path", "number", "decision", "attempt"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
ANSWER_TOKENS = 48

# None of these words stands in the session's own text: whoever says one has read the fact.
_PLACES = ("quarry", "harbour", "meadow", "glacier", "orchard", "canyon", "lagoon", "tundra")
_ANIMALS = ("marten", "heron", "badger", "osprey", "weasel", "plover", "walrus", "gannet")
_ANIMALS_TOO = ("bittern", "ferret", "curlew", "ermine", "puffin", "lemming", "dunlin", "stoat")
_MATTERS = (
    *("retry queue", "session index", "upload relay", "billing job", "search cache"),
    *("audit trail", "thumbnail worker", "mail outbox"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that is said once, and asked for at the end."""

    kind: FactKind
    turn: int
    """In which it is said, from 1."""

    statement: str
    question: str
    expected: str
    """The word that an answer must hold; it stands nowhere else."""

    rejected: str = ""
    """The word that must not stand before it: the option that was not taken."""


def planted(turns: int, count: int, seed: int) -> tuple[Fact, ...]:
    """Facts spread evenly over a session, the kinds in turn, so that each age has each kind."""
    dice = Random(seed)  # noqa: S311 - to be repeated
    count = min(count, turns)
    return tuple(
        _fact(FACT_KINDS[at % len(FACT_KINDS)], 1 + at * turns // count, at, dice)
        for at in range(count)
    )


def knows(fact: Fact, answer: str) -> bool:
    """Whether an answer holds what was asked for."""
    said = answer.casefold()
    at = said.find(fact.expected)
    if at < 0:
        return False
    wrong = said.find(fact.rejected) if fact.rejected else -1
    return wrong < 0 or at < wrong


def stands_in(fact: Fact, texts: Iterable[str]) -> bool:
    """Whether what was asked for still stands in what the model is given."""
    return any(fact.expected in text.casefold() for text in texts)


def _fact(kind: FactKind, turn: int, at: int, dice: Random) -> Fact:
    number = dice.randrange(100, 1000) * 100 + at
    # Two digits: no word that is asked for may begin another fact's.
    mark = f"{at + 1:02d}"
    matter = f"{_MATTERS[at // 4 % len(_MATTERS)]} {mark}"
    place = _PLACES[at % len(_PLACES)]
    taken = f"{_ANIMALS[at // 4 % len(_ANIMALS)]}{mark}"
    left = f"{_ANIMALS_TOO[at // 4 % len(_ANIMALS_TOO)]}{mark}"
    match kind:
        case "path":
            path = f"src/{place}/{place}_{number}.py"
            statement = f"The {matter} is configured in {path}."
            return _of(kind, turn, statement, f"Which file configures the {matter}?", path)
        case "number":
            statement = f"The limit of the {matter} is {number} rows."
            question = f"How many rows is the limit of the {matter}?"
            return _of(kind, turn, statement, question, str(number))
        case "decision":
            statement = f"Decision: the {matter} uses the {taken} store, not the {left} store."
            question = f"Which store does the {matter} use?"
            return _of(kind, turn, statement, question, taken, left)
        case "attempt":
            statement = f"Tried for the {matter}: raising {taken}_limit. It failed, do not retry."
            question = f"Which setting was raised for the {matter} without success?"
            return _of(kind, turn, statement, question, f"{taken}_limit")


def _of(
    kind: FactKind, turn: int, statement: str, question: str, expected: str, rejected: str = ""
) -> Fact:
    return Fact(
        kind=kind,
        turn=turn,
        statement=statement,
        question=f"{question} Answer in a few words, from this session only.",
        expected=expected,
        rejected=rejected,
    )
