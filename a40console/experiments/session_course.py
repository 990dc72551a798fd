"""A session's way through one arm, turn by turn, and what it will cost before it is run. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from a40console.experiments.session_lengths import Lengths
from a40console.experiments.shrinking import Shrinking, Shrunk, restarted
from a40console.experiments.transcript import (
    Piece,
    Pieces,
    Transcript,
    Turn,
    prefix_tokens,
    tokens_of,
)

SUMMARY_REQUEST = (
    "CRITICAL: Respond with TEXT ONLY. Do not call any tools. Write a detailed summary of this "
    "session so far, from which the work can go on without it: what was asked, every file and "
    "path, every number, every decision and what was rejected, every attempt that failed, the "
    "state of the work and the next step."
)
SUMMARY_REQUEST_TOKENS = 90


class Course:
    """The history of one session under one way."""

    def __init__(self, system: Piece, shrink: Shrinking, base_tokens: float = 0.0) -> None:
        self.history: Pieces = (system,)
        self._shrink = shrink
        self._base_tokens = base_tokens
        self._correction = 1.0

    def context_tokens(self, pieces: Pieces) -> float:
        """What pieces come to as a prompt, as far off as the last prompt was."""
        return (tokens_of(pieces) + self._base_tokens) * self._correction

    def next(self, turn: Turn) -> Shrunk:
        """The history with the turn's message, shrunk if it is time."""
        pieces = (*self.history, turn.given)
        return self._shrink(pieces, self.context_tokens(pieces))

    def counted(self, pieces: Pieces, prompt_tokens: float) -> None:
        """The engine counted a prompt that was made of these pieces."""
        expected = tokens_of(pieces) + self._base_tokens
        if expected > 0 and prompt_tokens > 0:
            self._correction = prompt_tokens / expected

    def answered(self, pieces: Pieces, turn: Turn) -> None:
        """The turn is over: its own answer goes into the history, whatever the model said."""
        self.history = (*pieces, turn.answer)


def summary_request(pieces: Pieces) -> Pieces:
    """The history without the newest message, and what asks for its summary."""
    asks = Piece(kind="request", text=SUMMARY_REQUEST, tokens=SUMMARY_REQUEST_TOKENS)
    return (*pieces[:-1], asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What one session of an arm will come to, with a cache that loses nothing."""

    computed_tokens: int
    generated_tokens: int
    requests: int
    shrinks: int
    overflows_at: int | None
    """The first turn that does not fit the window."""


def forecast(lengths: Lengths, shrink: Shrinking, window_tokens: int | None) -> Forecast:
    """Go through a session on paper."""
    session = outline(lengths)
    course = Course(session.system, shrink)
    had: Pieces = ()
    computed = generated = requests = shrinks = 0

    def sends(pieces: Pieces, answer: int) -> None:
        nonlocal had, computed, generated, requests
        computed += tokens_of(pieces) - prefix_tokens(had, pieces)
        generated += answer
        requests += 1
        had = pieces

    for number, turn in enumerate(session.turns, 1):
        shrunk = course.next(turn)
        pieces = shrunk.pieces
        shrinks += shrunk.happened
        if shrunk.summarise:
            sends(summary_request(pieces), lengths.summary)
            summary = Piece(kind="summary", text=f"s{number}", tokens=lengths.summary, turn=number)
            pieces = restarted(pieces, summary, _cut_to(lengths.file))
        if window_tokens is not None and tokens_of(pieces) + turn.answer.tokens > window_tokens:
            return Forecast(
                computed_tokens=computed,
                generated_tokens=generated,
                requests=requests,
                shrinks=shrinks,
                overflows_at=number,
            )
        sends(pieces, turn.answer.tokens)
        course.answered(pieces, turn)
    return Forecast(
        computed_tokens=computed,
        generated_tokens=generated,
        requests=requests,
        shrinks=shrinks,
        overflows_at=None,
    )


def outline(lengths: Lengths) -> Transcript:
    """A session of lengths alone, in place of its text each piece's name."""
    return Transcript(
        system=Piece(kind="system", text="system", tokens=lengths.system),
        turns=tuple(
            Turn(
                given=Piece(
                    kind="user" if number == 1 else "tool_result",
                    text=f"given {number}",
                    tokens=turn.given,
                    turn=number,
                    is_file=is_file(number),
                ),
                answer=Piece(
                    kind="assistant", text=f"answer {number}", tokens=turn.answer, turn=number
                ),
            )
            for number, turn in enumerate(lengths.turns, 1)
        ),
    )


def is_file(turn: int) -> bool:
    """Whether what a turn is given is a file's content: every third result is."""
    return turn > 1 and turn % 3 == 0


def _cut_to(tokens: int) -> Callable[[Piece], Piece]:
    def cut(piece: Piece) -> Piece:
        return Piece(
            kind=piece.kind,
            text=piece.text,
            tokens=min(piece.tokens, tokens),
            turn=piece.turn,
            is_file=True,
        )

    return cut
