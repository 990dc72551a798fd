"""How long the pieces of a session are: of the shipped one, or of one's own. Pure.

Only lengths ever come from an own session, never its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from random import Random

from a40console.model.figures import Missing, number
from a40console.model.session import SessionDetail

REAL_THRESHOLD_TOKENS = 48_000
"""The threshold for which the shipped lengths are real ones; for others they are scaled."""

SHIPPED_TURNS = 120
SYSTEM_TOKENS = 12_000
"""A coding agent's system prompt and tools."""

SUMMARY_TOKENS = 2_000
FILE_TOKENS = 5_000
"""The most that a restarted client reads again of one file."""

LEAST_SYSTEM, LEAST_GIVEN, LEAST_ANSWER, LEAST_SUMMARY = 40, 12, 8, 32

_SEED = 2026
_TURN = re.compile(r"(\d+)/(\d+)(?:\*(\d+))?")


@dataclass(frozen=True, slots=True)
class TurnLength:
    """Tokens of one turn."""

    given: int
    answer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of a session."""

    system: int
    turns: tuple[TurnLength, ...]
    summary: int = SUMMARY_TOKENS
    file: int = FILE_TOKENS

    def scaled(self, factor: float) -> Lengths:
        """The same session in a smaller window; nothing gets so short that it says nothing."""
        return Lengths(
            system=max(round(self.system * factor), LEAST_SYSTEM),
            turns=tuple(
                TurnLength(
                    max(round(turn.given * factor), LEAST_GIVEN),
                    max(round(turn.answer * factor), LEAST_ANSWER),
                )
                for turn in self.turns
            ),
            summary=max(round(self.summary * factor), LEAST_SUMMARY),
            file=max(round(self.file * factor), LEAST_GIVEN),
        )


def shipped(turns: int = SHIPPED_TURNS) -> Lengths:
    """The shipped session: mostly short calls of tools, now and then a file or an edit.

    It is the same for every seed, so that runs with different texts compare.
    """
    dice = Random(_SEED)  # noqa: S311 - to be repeated
    drawn = [_drawn(dice, at) for at in range(max(turns, SHIPPED_TURNS))]
    return Lengths(system=SYSTEM_TOKENS, turns=tuple(drawn[:turns]))


def read_lengths(text: str) -> Lengths:
    """Lengths as they are written: `SYSTEM;GIVEN/ANSWER,GIVEN/ANSWER*TIMES,...`.

    Raises:
        ValueError: Where the text is something else; says what.
    """
    system, mark, listed = text.replace(" ", "").partition(";")
    if not mark or not system.isdecimal():
        raise ValueError("lengths are written SYSTEM;GIVEN/ANSWER,...: 2400;330/700*120")
    turns: list[TurnLength] = []
    for item in listed.split(","):
        match = _TURN.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is not GIVEN/ANSWER in tokens, as in 330/700*120")
        given, answer, times = int(match[1]), int(match[2]), int(match[3] or 1)
        turns += [TurnLength(max(given, 1), max(answer, 1))] * times
    return Lengths(system=max(int(system), LEAST_SYSTEM), turns=tuple(turns))


def write_lengths(system: int, turns: Sequence[TurnLength]) -> str:
    """Lengths as `read_lengths` reads them."""
    return f"{system};" + ",".join(f"{turn.given}/{turn.answer}" for turn in turns)


def lengths_of_session(session: SessionDetail) -> str | Missing:
    """The lengths of an own session, from the counts of its main agent's turns."""
    counted = [
        (number(request.prompt_tokens), number(request.generated_tokens))
        for request in session.timeline
        if request.agent == "main" and request.purpose == "turn" and not request.repeats
    ]
    known = [(prompt, made) for prompt, made in counted if prompt and made]
    if len(known) < 2:
        return Missing("fewer than two of its turns have counted tokens")
    first = int(known[0][0])
    turns = [TurnLength(max(first // 20, 1), int(known[0][1]))]
    grown = [(after - before - made, answer) for (before, made), (after, answer) in pairwise(known)]
    typical = sorted(given for given, _ in grown if given > 0)
    middle = typical[len(typical) // 2] if typical else LEAST_GIVEN
    # Where its context shrank, what came in that turn cannot be told.
    turns += [
        TurnLength(int(given if given > 0 else middle), int(answer)) for given, answer in grown
    ]
    # Without its beginning, how long its system prompt is cannot be told.
    forgotten = bool(session.forgotten_requests)
    system = min(SYSTEM_TOKENS, first // 2) if forgotten else first - turns[0].given
    return write_lengths(system, turns)


def _drawn(dice: Random, at: int) -> TurnLength:
    """Medians of 480 tokens in and 150 out, with long tails: files are read, files are written."""
    given = min(480 * exp(dice.gauss(0, 1.0)), 6_000)
    answer = min(150 * exp(dice.gauss(0, 0.9)), 1_600)
    return TurnLength(round(given) if at else 260, round(max(answer, 24)))
