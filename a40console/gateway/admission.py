"""One request's way past the gate, and its second sending where the engine was lost.

An engine that dies takes with it what it was asked. As long as nothing of an answer has reached the
client, the next engine can be asked the same, and the client need not know: once, for a request may
be what the engine died of.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Scope

from a40console.gateway.address import written_address
from a40console.gateway.anthropic.identity import identity_of
from a40console.gateway.asking import NoAnswerRefusal, ask_engine
from a40console.gateway.bodies import Body
from a40console.gateway.clients import shown
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter, Passage
from a40console.gateway.refusals import Refusal
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import EngineSessions, Upstream, UpstreamState

DYING = frozenset({500, 502, 503})
"""What an engine may answer whose core has died, until it exits itself."""

_LOOK_PERIOD_S = 0.1
_HEALTH_S = 2.0
_UNEXPECTED_S = 1.0
"""So long no engine may be there with the gate open, before it is taken that none is expected."""


class SendAgainError(Exception):
    """The engine was lost before anything of its answer reached the client."""


class Doors(Protocol):
    """What admissions of every route share."""

    @property
    def gate(self) -> AdmissionGate:
        """Where they wait."""

    @property
    def state(self) -> UpstreamState:
        """Which engine serves."""

    @property
    def sessions(self) -> EngineSessions:
        """How it is reached."""

    @property
    def meter(self) -> Meter:
        """What counts them."""

    @property
    def book(self) -> SessionBook:
        """Whose they are."""


class Admission:
    """One request's; one that is not metered is held without a row."""

    __slots__ = (
        "_again",
        "_body",
        "_doors",
        "_inside",
        "_is_kept",
        "_number",
        "_passage",
        "_scope",
        "_size",
    )

    def __init__(self, doors: Doors, scope: Scope, passage: Passage | None) -> None:
        self._doors = doors
        self._scope = scope
        self._passage = passage
        self._number: int | None = None
        self._body: Body | None = None
        """As long as it may come to a second sending."""

        self._size = 0
        self._is_kept = False
        self._inside = False
        self._again = False

    async def enter(self, body: Body) -> None:
        """Pass the gate, at once or in one's turn.

        Raises:
            Refusal: If there is no room to wait, or the wait was too long.
        """
        gate, passage = self._doors.gate, self._passage
        if self._number is None:
            self._number = gate.number()
        if passage is not None and not gate.is_free:
            self._show(passage, body)
        await gate.enter(body.length, self._number, is_back=self._again)
        self._inside = True
        self._keep(body)

    async def enter_unserved(self, body: Body) -> None:
        """Pass at once where an engine serves, whoever is held; else wait for it, but apart.

        For what is answered without generating anything.

        Raises:
            Refusal: If there is no room to wait, or the wait was too long.
        """
        if self._doors.state.current() is None:
            await self._doors.gate.expected()
        self._keep(body)

    def _keep(self, body: Body) -> None:
        if self._again:
            return
        self._body, self._size = body, body.length
        self._is_kept = self._doors.gate.keep(self._size)
        if self._is_kept:
            body.keep()

    @property
    def again(self) -> bool:
        """Whether this is its second sending."""
        return self._again

    def begun(self) -> None:
        """Something of the answer reaches the client: it is not sent again."""
        body, self._body = self._body, None
        if body is not None and self._is_kept:
            self._is_kept = False
            self._doors.gate.let_body_go(self._size)
            body.let_go()

    def over(self) -> None:
        """It is over, or to be begun again."""
        self.begun()
        if self._inside:
            self._inside = False
            self._doors.gate.leave()

    async def lost(self, upstream: Upstream, *, answered: bool) -> bool:
        """Whether it is to be sent again: the engine that was asked is dead or dying.

        To be asked where an answer failed of which nothing has reached the client. Where an engine
        lives, what it answers stands; `answered` where it did, in words of its own. What the
        operator ended is not asked again.
        """
        if self._passage is not None and self._passage.is_stopped:
            return False
        if self._again or self._body is None or not await self._is_gone(upstream, answered):
            return False
        if self._is_kept:
            self._again = True
        elif self._passage is not None:
            self._doors.gate.on_unkept(self._passage, self._size)
        return self._again

    async def lost_by(self, upstream: Upstream, refusal: Refusal) -> bool:
        """Whether a question that was answered so is to be asked again."""
        answered = not isinstance(refusal, NoAnswerRefusal)
        return refusal.status in DYING and await self.lost(upstream, answered=answered)

    def begin_again(self) -> None:
        """Stand before the gate once more, as it came."""
        passage = self._passage
        if passage is not None:
            if passage.sent_at_s is not None:
                self._doors.meter.resent += 1
                self._doors.gate.on_resent(passage)
            passage.begin_again()
        if self._body is not None:
            self._body.restore()
        self.over()

    def _show(self, passage: Passage, body: Body) -> None:
        """Say whose request waits, as far as that can be told without an engine."""
        passage.held_at_s = self._doors.meter.clock()
        said = body.values(("model", "metadata"))
        passage.model = passage.model or shown(said.get("model"))
        headers, address = Headers(scope=self._scope), written_address(self._scope)
        self._doors.book.waits(passage, identity_of(headers, address, said.get("metadata")))

    async def _is_gone(self, upstream: Upstream, answered: bool) -> bool:
        """Whether the engine is no more, and another is expected in its place."""
        gate, state, clock = self._doors.gate, self._doors.state, asyncio.get_running_loop().time
        seen_at_s = clock()
        give_up_at_s = seen_at_s + gate.patience_s
        lives: bool | None = None
        while (left_s := give_up_at_s - clock()) > 0:
            if self._is_replaced(upstream):
                return True
            if lives is None or (lives and gate.engine_expected):  # one that stops: soon not
                lives = await self._is_healthy(upstream, min(_HEALTH_S, left_s))
            if not lives and gate.engine_expected:
                return True
            if lives and (answered or not gate.engine_expected):
                return False
            if state.current() is not None:
                seen_at_s = clock()
            elif clock() - seen_at_s > _UNEXPECTED_S:
                return False
            await asyncio.sleep(_LOOK_PERIOD_S)
        return False

    def _is_replaced(self, upstream: Upstream) -> bool:
        """Whether another engine serves by now, or is waited for."""
        now = self._doors.state.current()
        if now is None:
            return self._doors.gate.engine_expected
        return now.run_id != upstream.run_id

    async def _is_healthy(self, upstream: Upstream, timeout_s: float) -> bool:
        """Whether the engine says so: one whose core has died answers 503 until it exits."""
        sessions = self._doors.sessions
        try:
            said = await ask_engine(sessions, upstream, "/health", timeout_s=timeout_s)
        except Refusal as refusal:
            return refusal.status == 529  # busy is not dead
        return said.status < 500
