"""The way to the engine: a request is sent, and the head of its answer awaited."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from a40console.gateway.bodies import Body
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Clock, Passage
from a40console.gateway.refusals import ENDED_BY_OPERATOR, Refusal
from a40console.gateway.upstream import Upstream, UpstreamState

TROUBLE = (aiohttp.ClientError, OSError, TimeoutError)
"""What an engine's connection ends with when it does not end well."""

_RETRY_S = 2.0
_QUEUE_RETRY_S = 0.01
_QUEUE_PATIENCE_S = 5.0
_CUT_SHORT = (
    "The engine ended this answer before it was complete; what came of it is cut short. "
    "Send the request again."
)


def new_request_id() -> str:
    """An id that the engine keeps, so that its own row of the request can be found."""
    return f"a40-{secrets.token_hex(12)}"


def serving(state: UpstreamState) -> Upstream:
    """The engine that serves.

    Raises:
        Refusal: If none does, with why.
    """
    upstream = state.current()
    if upstream is None:
        why = state.why_not()
        raise Refusal(503, why.text, retry_after_s=why.retry_after_s)
    return upstream


def expect(gate: AdmissionGate, state: UpstreamState, declared: int | None) -> None:
    """See, before a body is read, whether an engine serves or is waited for.

    Raises:
        Refusal: If neither, or if the gate has no room for a body of the declared length.
    """
    if gate.is_free:
        serving(state)
    else:
        gate.check_room(declared or 0)


def expect_poll(gate: AdmissionGate, state: UpstreamState) -> None:
    """The same for a question that costs the engine nothing, which waits apart.

    Raises:
        Refusal: If none serves and none is waited for, or if as many such questions wait as may.
    """
    if state.current() is None:
        if gate.engine_expected:
            gate.check_poll_room()
        else:
            serving(state)


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What the engine is sent, but for the body."""

    method: str
    url: URL
    headers: CIMultiDict[str]


class EngineDoor:
    """What stands between a request and the engine: whether one serves, and what goes wrong."""

    def __init__(self, state: UpstreamState, clock: Clock, passage: Passage | None) -> None:
        self._state = state
        self._clock = clock
        self._passage = passage

    def engine(self) -> Upstream:
        """The engine that serves.

        Raises:
            Refusal: If none does.
        """
        return serving(self._state)

    async def open(
        self, session: aiohttp.ClientSession, request: EngineRequest, body: Body
    ) -> aiohttp.ClientResponse:
        """Send the request and wait for the head of the answer.

        Raises:
            Refusal: If the engine does not answer.
        """
        give_up_at_s = self._clock() + _QUEUE_PATIENCE_S
        while True:
            if self._passage:
                self._passage.sent_at_s = self._clock()
            try:
                return await session.request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    data=body.sent() if body.length else None,
                    allow_redirects=False,
                )
            except aiohttp.ClientConnectorError as error:
                # A Unix socket whose queue of connections is full refuses instead of waiting.
                busy = isinstance(error.os_error, BlockingIOError)
                if not busy or self._clock() > give_up_at_s:
                    if self._passage:
                        self._passage.sent_at_s = None
                    raise self.no_engine(
                        f"The engine does not answer: {error.strerror}."
                    ) from error
                await asyncio.sleep(_QUEUE_RETRY_S)
            except TROUBLE as error:
                reason = str(error) or type(error).__name__
                raise self.no_engine(
                    f"The engine closed the connection before it answered: {reason}.", status=502
                ) from error

    def no_engine(self, seen: str, *, status: int = 503) -> Refusal:
        """What was seen, and what the service knows about it by now."""
        if self._state.current() is None:
            why = self._state.why_not()
            return Refusal(503, f"{seen} {why.text}", retry_after_s=why.retry_after_s)
        return Refusal(status, f"{seen} Send the request again.", retry_after_s=_RETRY_S)

    def by_now(self, refusal: Refusal) -> Refusal:
        """The same, or why no engine serves, where that has come to be known since."""
        if self._state.current() is not None:
            return refusal
        why = self._state.why_not()
        told = f"The engine ended before it answered. {why.text}"
        return Refusal(503, told, retry_after_s=why.retry_after_s)

    def cut_short(self) -> str:
        """What a client is told of an answer that has no end."""
        if self._passage is not None and self._passage.is_stopped:
            return ENDED_BY_OPERATOR
        if self._state.current() is None:
            return f"{_CUT_SHORT} {self._state.why_not().text}"
        return _CUT_SHORT
