"""Counts what passes: live and finished requests, time to first token, outcomes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Literal, TypeAlias

from a40console.errors import ConsoleError, Exit
from a40console.model.request import GatewayRow, Method, SharedPrompt, TokenMark

Route: TypeAlias = Literal["messages", "chat", "completions"]
Outcome: TypeAlias = Literal["completed", "aborted", "failed"]
Clock: TypeAlias = Callable[[], float]

KEPT_FINISHED = 512
MARK_SPACING_S = 0.05
"""The newest mark moves until it is this far from the one before: any speed, bounded memory."""

KEPT_MARKS = 256
"""At that spacing at least 12 s of history."""

MARKS_FOR_S = 30.0
"""So long after its end a request keeps its marks: no window reaches back to them then."""


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Requests since the gateway began, by how they ended."""

    aborted: int
    """The client left before the answer was complete."""

    failed: int
    """Answered with an error, the engine's own 4xx included, or cut short."""

    completed: int = 0
    resent: int = 0
    """Sent a second time, because the engine ended before anything of its answer went out."""


def wall_clock() -> datetime:
    """This instant, UTC."""
    return datetime.now(UTC)


class Passage:
    """One request on its way through: what is known of it so far."""

    __slots__ = (
        "_marks",
        "agent",
        "cached_tokens",
        "characters",
        "client",
        "ended_at",
        "ended_at_s",
        "exact",
        "finish_reason",
        "first_token_at_s",
        "generated_tokens",
        "held_at_s",
        "is_stopped",
        "last_token_at_s",
        "max_tokens",
        "model",
        "order",
        "prompt_tokens",
        "received_at_s",
        "request_id",
        "route",
        "sent_at_s",
        "session",
        "shared",
        "status",
    )

    def __init__(self, *, order: int, request_id: str, route: Route, received_at_s: float) -> None:
        self.order = order
        self.request_id = request_id
        self.route = route
        self.received_at_s = received_at_s
        self.client: str | None = None
        self.session: str | None = None
        self.agent: str | None = None
        self.shared: SharedPrompt | None = None
        self.model: str | None = None
        self.max_tokens: int | None = None
        self.held_at_s: float | None = None
        self.sent_at_s: float | None = None
        self.first_token_at_s: float | None = None
        self.last_token_at_s: float | None = None
        self.ended_at_s: float | None = None
        self.ended_at: str | None = None
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.generated_tokens: int | None = None
        self.characters = 0
        self.exact = False
        self.finish_reason: str | None = None
        self.status: int | None = None
        self.is_stopped = False
        """The operator ends it: whatever the engine calls its end, the answer is not whole."""

        self._marks: deque[TokenMark] = deque(maxlen=KEPT_MARKS)

    def streamed(self, at_s: float, characters: int) -> None:
        """Content has arrived from the engine."""
        if self.first_token_at_s is None:
            self.first_token_at_s = at_s
        self.last_token_at_s = at_s
        self.characters += characters

    def progressed(self, at_s: float, tokens: int) -> None:
        """A chunk says how many tokens the engine had emitted for this request by then."""
        grown = tokens > (self.generated_tokens or 0)
        self.totalled(tokens)
        if not grown:
            return
        marks = self._marks
        if len(marks) > 1 and at_s - marks[-2].at_s < MARK_SPACING_S:
            marks.pop()
        marks.append(TokenMark(at_s, tokens))

    def totalled(self, tokens: int) -> None:
        """The engine says how many tokens the answer has; it never takes one back.

        No mark is set: when the tokens came is not known from a total.
        """
        self.exact = True
        self.generated_tokens = max(tokens, self.generated_tokens or 0)

    def begin_again(self) -> None:
        """The engine is gone, and nothing of its answer has reached the client."""
        self.sent_at_s = self.first_token_at_s = self.last_token_at_s = None
        self.prompt_tokens = self.cached_tokens = self.generated_tokens = None
        self.finish_reason = None
        self.characters, self.exact = 0, False
        self._marks.clear()

    def row(self) -> GatewayRow:
        """What is known, frozen."""
        method: Method = "usage" if self.exact else "apportioned"
        return GatewayRow(
            request_id=self.request_id,
            route=self.route,
            client=self.client,
            session=self.session,
            agent=self.agent,
            model=self.model,
            max_tokens=self.max_tokens,
            received_at_s=self.received_at_s,
            sent_at_s=self.sent_at_s,
            first_token_at_s=self.first_token_at_s,
            last_token_at_s=self.last_token_at_s,
            ended_at_s=self.ended_at_s,
            ended_at=self.ended_at,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            generated_tokens=self.generated_tokens,
            characters=self.characters,
            method=method,
            finish_reason=self.finish_reason,
            status=self.status,
            marks=tuple(self._marks),
            shared=self.shared,
            held_at_s=self.held_at_s,
        )


class Meter:
    """Every request that passes through the gateway, live and lately finished."""

    def __init__(
        self, *, clock: Clock = time.monotonic, wall: Callable[[], datetime] = wall_clock
    ) -> None:
        self.clock = clock
        self._wall = wall
        self._orders = count()
        self._outcomes: dict[Outcome, int] = {"completed": 0, "aborted": 0, "failed": 0}
        self.resent = 0
        self._live: dict[int, Passage] = {}
        self._finished: deque[GatewayRow] = deque(maxlen=KEPT_FINISHED)
        self._marked: deque[GatewayRow] = deque(maxlen=KEPT_FINISHED)
        """The newest of the finished ones, which still have their marks."""

    def live(self) -> tuple[GatewayRow, ...]:
        """Requests under way, in the order of their arrival."""
        return tuple(passage.row() for passage in self._live.values())

    def finished(self) -> tuple[GatewayRow, ...]:
        """The last 512 ended requests, oldest first."""
        marked, now_s = self._marked, self.clock()
        while marked and (marked[0].ended_at_s or 0.0) < now_s - MARKS_FOR_S:
            self._finished.append(replace(marked.popleft(), marks=()))
        return (*self._finished, *marked)[-KEPT_FINISHED:]

    def counts(self) -> RequestCounts:
        """Requests since the gateway began, by outcome."""
        return RequestCounts(**self._outcomes, resent=self.resent)

    def accept(self, route: Route, request_id: str) -> Passage:
        """A request has arrived."""
        order = next(self._orders)
        passage = Passage(
            order=order, request_id=request_id, route=route, received_at_s=self.clock()
        )
        self._live[order] = passage
        return passage

    @contextmanager
    def stopping(self, request_id: str | None = None) -> Iterator[None]:
        """In the block the operator has the engine end a request, or all that it was sent.

        To be begun before the engine is asked, whose last words do not tell a cut answer from a
        whole one. Where it refuses, they go on as before; where it did not say, they may yet end.

        Args:
            request_id: As the engine's row of it is named, which may go on behind our id.
        """
        stopped = [
            passage
            for passage in self._live.values()
            if passage.sent_at_s is not None
            and (request_id is None or request_id.startswith(passage.request_id))
        ]
        for passage in stopped:
            passage.is_stopped = True
        try:
            yield
        except ConsoleError as error:
            if error.exit_code is not Exit.TIMED_OUT:
                for passage in stopped:
                    passage.is_stopped = False
            raise

    def content(self, passage: Passage, characters: int) -> None:
        """Content of this many characters has arrived for a request."""
        passage.streamed(self.clock(), characters)

    def end(self, passage: Passage, outcome: Outcome) -> None:
        """A request has ended; a second end of the same one counts for nothing."""
        if self._live.pop(passage.order, None) is None:
            return
        self._outcomes[outcome] += 1
        if outcome == "aborted":
            passage.finish_reason = "aborted"
        elif outcome == "failed":
            passage.finish_reason = "error"
        passage.ended_at_s = self.clock()
        passage.ended_at = self._wall().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._marked.append(passage.row())
