"""How many tokens a prompt has, by the tokenizer and the template of the engine that serves.

Nothing is generated, so nothing is metered. Claude Code's `/context` asks 26 times at once: a few
go to the engine at a time, so that its tokenizer stays free for those who wait for an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from a40console.gateway.address import written_address
from a40console.gateway.admission import Admission
from a40console.gateway.answer import tokens
from a40console.gateway.anthropic.asked import read_asked
from a40console.gateway.anthropic.doors import MessagesDoors
from a40console.gateway.anthropic.failures import refusal_of
from a40console.gateway.asking import ask_engine
from a40console.gateway.bodies import Body, declared_length, read_body
from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.dialect import Dialect
from a40console.gateway.opening import expect, serving
from a40console.gateway.refusals import Refusal, refuse
from a40console.gateway.translation import to_chat, to_native
from a40console.gateway.upstream import EngineSessions, Upstream

AT_ONCE = 2
_PATIENCE_S = 30.0
_ASK_S = 20.0
_RETRY_S = 2.0
_COUNTED = frozenset(
    {
        "chat_template_kwargs",
        "messages",
        "model",
        "output_config",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""Fields that the prompt depends on."""

_RENDERED = ("messages", "tools", "chat_template_kwargs")


class TokenCounter:
    """Counts prompts at the engine, a few at once."""

    def __init__(
        self, sessions: EngineSessions, *, at_once: int = AT_ONCE, patience_s: float = _PATIENCE_S
    ) -> None:
        self._sessions = sessions
        self._turns = asyncio.Semaphore(at_once)
        self._patience_s = patience_s

    async def count(self, upstream: Upstream, dialect: Dialect, body: dict[str, Any]) -> int:
        """The tokens of a normalised body's prompt, as a request with it would be charged.

        Raises:
            Refusal: If the engine cannot count, is busy or refuses the prompt.
        """
        path, asked, key = _question(dialect, body)
        try:
            async with asyncio.timeout(self._patience_s):
                await self._turns.acquire()
        except TimeoutError as error:
            raise Refusal(
                529, "Too many prompts wait to be counted.", retry_after_s=_RETRY_S
            ) from error
        try:
            said = await ask_engine(self._sessions, upstream, path, asked, timeout_s=_ASK_S)
        finally:
            self._turns.release()
        if said.status != 200:
            raise refusal_of(said.status, said.raw)
        counted = tokens(said.body(), key)
        if counted is None:
            raise Refusal(502, f"The engine answered {path} without a count.")
        return counted


class CountRoute:
    """ASGI endpoint of /v1/messages/count_tokens."""

    def __init__(self, doors: MessagesDoors, counter: TokenCounter) -> None:
        self._doors = doors
        self._counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = Headers(scope=scope)
        try:
            counted = await self._count(scope, receive, headers)
        except Refusal as refusal:
            answer = refuse("anthropic", refusal)
        except ClientLeftError:
            return
        else:
            answer = JSONResponse({"input_tokens": counted})
        await answer(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, headers: Headers) -> int:
        doors, declared = self._doors, declared_length(headers)
        expect(doors.gate, doors.state, declared)
        body = await read_body(receive, declared, doors.budget, doors.limits)
        try:
            path = written_address(scope)
            admission = Admission(doors, scope, None)
            return await unless_left(receive, self._in_turn(body, headers, path, admission))
        finally:
            body.discard()

    async def _in_turn(self, body: Body, headers: Headers, path: str, admission: Admission) -> int:
        try:
            while True:
                await admission.enter(body)
                upstream = serving(self._doors.state)
                try:
                    return await self._counted(body, headers, path, upstream)
                except Refusal as refusal:
                    if not await admission.lost_by(upstream, refusal):
                        raise
                    admission.begin_again()
        finally:
            admission.over()

    async def _counted(self, body: Body, headers: Headers, path: str, upstream: Upstream) -> int:
        """The body's room stays taken to the end: what was read of it takes as much."""
        doors = self._doors
        dialect = await doors.dialects.of(upstream)
        asked = await doors.reading.read(
            body, lambda: read_asked(body.whole(), headers, path, dialect, counting=True)
        )
        body.rewrite(b"")
        counted = None
        try:
            counted = await self._counter.count(upstream, dialect, asked.body)
        finally:
            if counted is not None or dialect.counting == "none":
                doors.book.counted(asked.outline, counted)
        return counted


def _question(dialect: Dialect, body: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
    """Where the engine counts, what it is asked, and the name of its answer."""
    if dialect.counting == "messages":
        native = to_native(body, dialect)
        asked = {key: value for key, value in native.items() if key in _COUNTED}
        return "/v1/messages/count_tokens", asked, "input_tokens"
    if dialect.counting == "tokenize":
        chat = to_chat(body, dialect)
        rendered = {key: chat[key] for key in _RENDERED if key in chat}
        asked = {"model": dialect.served_name, **rendered, "add_generation_prompt": True}
        return "/tokenize", asked, "count"
    raise Refusal(404, "The engine that serves does not count tokens.")
