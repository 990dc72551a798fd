"""Runs one session of one arm: its turns in a row, summaries among them, then the recall."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from a40console.experiments.asking import Asking, Place
from a40console.experiments.bench import ArmFailedError, Bench, Reply, Request
from a40console.experiments.compaction_offer import Arm, Conditions
from a40console.experiments.planted import ANSWER_TOKENS, Fact, knows, stands_in
from a40console.experiments.session_course import Course, summary_request
from a40console.experiments.session_log import Recall, SessionLog, TurnLog
from a40console.experiments.shrinking import restarted
from a40console.experiments.transcript import (
    Piece,
    Pieces,
    Transcript,
    Turn,
    messages,
    shared_tokens,
    tokens_of,
)
from a40console.experiments.workload import Rates, cut, text_piece, with_nonce
from a40console.model.figures import Figure, Missing, number, total

FAILED_IN_A_ROW = 3
"""After so many the engine is taken for gone."""

TIMEOUT_S = 1_800.0

_OVERFLOW_WORDS = ("context length", "context size", "context window", "prompt is too long")
_SUMMARY_HEAD = "Summary of the session so far, from which the work goes on:"
_FILLER = "Nothing else is to be told."

Tick = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all sessions of a run share."""

    bench: Bench
    asking: Asking
    conditions: Conditions
    transcript: Transcript
    rates: Rates
    window_tokens: int | Missing

    def request(
        self, pieces: Pieces, place: Place, *, answer_tokens: int, free: bool = False
    ) -> Request:
        """A request of these pieces; `free`: it ends when the model is done."""
        request = self.asking.request(
            messages(pieces), place, output_tokens=answer_tokens, free=free, regime="session"
        )
        return replace(request, timeout_s=TIMEOUT_S)


class Session:
    """One session."""

    def __init__(self, stage: Stage, arm: Arm, log: SessionLog, nonce: int) -> None:
        self._stage = stage
        self._log = log
        self._course = Course(
            with_nonce(stage.transcript.system, nonce),
            arm.shrinking(stage.conditions.low_water),
            stage.rates.base,
        )
        self._had: Pieces = ()
        """What the last request held."""

        self._answer_before = 0
        self._failed = 0

    async def go(self, tick: Tick) -> None:
        """All its turns, or as many as fit; what they came to is in the log.

        Args:
            tick: Awaited with a turn's number before it begins.

        Raises:
            ArmFailedError: If the engine answers no more.
            RunStoppedError: If the run is to end.
        """
        for number_, turn in enumerate(self._stage.transcript.turns, 1):
            await tick(number_)
            await self._turn(number_, turn)
            if self._log.overflow:
                return

    async def recall(self, label: str) -> None:
        """Ask for each fact, on a fork of the history as it ended."""
        history = self._course.history
        texts = [piece.text for piece in history]
        for index, fact in enumerate(self._stage.transcript.facts):
            request = self._stage.request(
                (*history, _question(fact, self._stage.rates)),
                Place(arm=label, repeat=self._log.repeat, index=index, role="recall"),
                answer_tokens=ANSWER_TOKENS,
                free=True,
            )
            reply = await self._stage.bench.client.send(request)
            answered = not reply.sample.error
            self._log.recalls.append(
                Recall(fact, stands_in(fact, texts), answered, knows(fact, reply.text))
            )

    async def _turn(self, number_: int, turn: Turn) -> None:
        shrunk = self._course.next(turn)
        pieces, summary_s = shrunk.pieces, 0.0
        shrank = shrunk.happened
        if shrunk.summarise:
            told = await self._summary(pieces, number_)
            if self._log.overflow:
                return
            shrank = told is not None
            if told is not None:
                summary, summary_s = told
                pieces = restarted(pieces, summary, self._reloaded)
        if self._does_not_fit(pieces, turn.answer.tokens, f"turn {number_}"):
            return
        new = tokens_of(pieces) - shared_tokens(self._had, pieces)
        timed = await self._send(pieces, number_, turn.answer.tokens)
        if timed is None:
            self._end(pieces, turn)
            return
        reply, answer_s = timed
        sample = reply.sample
        self._course.counted(pieces, number(sample.prompt_tokens) or 0.0)
        self._log.turns.append(
            TurnLog(
                turn=number_,
                seconds=summary_s + answer_s,
                ttft_s=_plus(sample.ttft_s, summary_s),
                prompt_tokens=sample.prompt_tokens,
                cached_tokens=sample.cached_tokens,
                generated_tokens=sample.generated_tokens,
                new_tokens=new,
                own_tokens=turn.given.tokens + self._answer_before,
                asked_tokens=turn.answer.tokens,
                shrank=shrank,
                summary_s=summary_s,
            )
        )
        self._end(pieces, turn)

    def _end(self, pieces: Pieces, turn: Turn) -> None:
        self._course.answered(pieces, turn)
        self._answer_before = turn.answer.tokens

    async def _summary(self, pieces: Pieces, number_: int) -> tuple[Piece, float] | None:
        """The summary as the model writes it, and its seconds; None where it failed.

        It has a fixed length, in the request and in the history: every repeat does the same work.
        """
        asked = summary_request(pieces)
        tokens = self._stage.conditions.lengths.summary
        if self._does_not_fit(asked, tokens, f"the summary at turn {number_}"):
            return None
        timed = await self._send(asked, number_, tokens, role="summary")
        if timed is None:
            return None
        reply, seconds = timed
        return self._fitted(reply.text, tokens, number_), seconds

    async def _send(
        self, pieces: Pieces, number_: int, answer_tokens: int, *, role: str = "turn"
    ) -> tuple[Reply, float] | None:
        """The reply and its seconds; None where there is none to count, and the log says why."""
        log = self._log
        place = Place(arm=log.label, repeat=log.repeat, index=number_, role=role)
        reply = await self._stage.bench.client.send(
            self._stage.request(pieces, place, answer_tokens=answer_tokens)
        )
        error = reply.sample.error
        if not error:
            self._failed = 0
            self._had = pieces
            if (seconds := number(reply.sample.total_s)) is not None:
                return reply, seconds
            log.errors.append(f"{role} {number_} has no seconds: {_why(reply.sample.total_s)}")
            return None
        if _is_overflow(error):
            log.overflow = f"{role} {number_} overflows the window: {error}"
            return None
        log.errors.append(error)
        self._failed += 1
        if self._failed >= FAILED_IN_A_ROW:
            raise ArmFailedError(
                f"arm {log.label}, repeat {log.repeat + 1}: {self._failed} requests in a row "
                f"failed, the last at turn {number_}: {error}"
            )
        return None

    def _does_not_fit(self, pieces: Pieces, answer_tokens: int, what: str) -> bool:
        window = self._stage.window_tokens
        if isinstance(window, Missing):
            return False
        context = self._course.context_tokens(pieces)
        if context + answer_tokens <= window:
            return False
        self._log.overflow = (
            f"{what} overflows the window: {context:,.0f} tokens and {answer_tokens:,} of answer "
            f"in {window:,}"
        )
        return True

    def _fitted(self, text: str, tokens: int, number_: int) -> Piece:
        """A summary's text in the length that it is to have."""
        rates = self._stage.rates
        piece = text_piece("summary", f"{_SUMMARY_HEAD}\n{text}", "prose", rates, turn=number_)
        if piece.tokens >= tokens:
            return cut(piece, tokens)
        filler = text_piece("summary", _FILLER, "prose", rates)
        times = int((tokens - piece.tokens) / max(filler.tokens - rates.per_message, 1.0))
        padded = "\n".join([piece.text, *[_FILLER] * times])
        return text_piece("summary", padded, "prose", rates, turn=number_)

    def _reloaded(self, piece: Piece) -> Piece:
        return cut(piece, self._stage.conditions.lengths.file)


def _question(fact: Fact, rates: Rates) -> Piece:
    return text_piece("request", fact.question, "prose", rates)


def _plus(figure: Figure, seconds: float) -> Figure:
    return total((figure, seconds)) if seconds else figure


def _why(figure: Figure) -> str:
    return figure.reason if isinstance(figure, Missing) else ""


def _is_overflow(error: str) -> bool:
    said = error.casefold()
    return any(words in said for words in _OVERFLOW_WORDS)
