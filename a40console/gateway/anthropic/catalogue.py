"""The models that can be asked for: the one that serves, under any name."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from a40console.gateway.admission import DYING, Admission
from a40console.gateway.anthropic.doors import MessagesDoors
from a40console.gateway.anthropic.failures import refusal_of
from a40console.gateway.asking import ask_engine
from a40console.gateway.bodies import Body, declared_length, read_body
from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.opening import expect_poll, serving
from a40console.gateway.refusals import Refusal, grammar_of, refuse
from a40console.gateway.upstream import Upstream

_ALIAS = "claude-local-"
_UNSAFE = re.compile(r"[^a-z0-9.]+")
_DISCOVERER = "claude-code/"
"""Claude Code's user agent when it looks for models; it keeps ids that name Claude alone."""

_UNKNOWN_DATE = "1970-01-01T00:00:00Z"
"""What the API says of a model whose date is not known."""

_ASK_S = 10.0


class Catalogue:
    """ASGI endpoint: all models, or the one of that name, in the shape of the caller's API.

    It costs the engine nothing, so one that serves answers whoever is held; where none does, the
    question waits for the engine that comes, apart from the requests and not as long.
    """

    def __init__(self, doors: MessagesDoors) -> None:
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asked = Request(scope)
        try:
            answer = await self._when_served(asked, receive)
        except Refusal as refusal:
            answer = refuse(grammar_of(asked.url.path, asked.headers), refusal)
        except ClientLeftError:
            return
        await answer(scope, receive, send)

    async def _when_served(self, asked: Request, receive: Receive) -> Response:
        doors, declared = self._doors, declared_length(asked.headers)
        expect_poll(doors.gate, doors.state)
        body = await read_body(receive, declared, doors.budget, doors.limits)
        try:
            admission = Admission(doors, asked.scope, None)
            return await unless_left(receive, self._in_turn(asked, body, admission))
        finally:
            body.discard()

    async def _in_turn(self, asked: Request, body: Body, admission: Admission) -> Response:
        try:
            while True:
                await admission.enter_unserved(body)
                upstream = serving(self._doors.state)
                try:
                    return await self._answer(asked, upstream)
                except Refusal as refusal:
                    if not await admission.lost_by(upstream, refusal):
                        raise
                    admission.begin_again()
        finally:
            admission.over()

    async def _answer(self, asked: Request, upstream: Upstream) -> Response:
        """Any name is one of the served model, but to OpenAI's callers one that it lists itself."""
        name = asked.path_params.get("name")
        if grammar_of(asked.url.path, asked.headers) == "openai":
            return await self._as_openai(upstream, name)
        entries = await self._entries(upstream, asked.headers.get("user-agent", ""), name)
        if name is not None:
            return JSONResponse(entries[0])
        ids = [entry["id"] for entry in entries]
        page = {"data": entries, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}
        return JSONResponse(page)

    async def _entries(
        self, upstream: Upstream, user_agent: str, name: str | None
    ) -> list[dict[str, Any]]:
        dialect = await self._doors.dialects.of(upstream)
        served, window = upstream.served_name, dialect.max_model_len
        names = [served if name is None else name]
        if name is None and user_agent.lower().startswith(_DISCOVERER):
            names.append(alias_of(served))
        return [_entry(one, served, window) for one in names]

    async def _as_openai(self, upstream: Upstream, name: str | None) -> Response:
        """The engine's own list, or the one of that name in it, or that of the served model."""
        said = await ask_engine(self._doors.sessions, upstream, "/v1/models", timeout_s=_ASK_S)
        if said.status in DYING:
            raise refusal_of(said.status, said.raw)
        if name is None:
            return Response(said.raw, said.status, media_type="application/json")
        data = said.body().get("data")
        entries = data if isinstance(data, list) else []
        listed = {entry.get("id"): entry for entry in entries if isinstance(entry, dict)}
        entry = listed.get(name) or listed.get(upstream.served_name)
        if entry is None:
            raise Refusal(404, f"There is no such model; {upstream.served_name} serves.")
        return JSONResponse({**entry, "id": name})


def alias_of(served: str) -> str:
    """A name for the served model that passes for one of Claude's, to be found by it.

    To be asked for by it is not wise: Claude Code takes such a name's window for Claude's.
    """
    return _ALIAS + _UNSAFE.sub("-", served.lower()).strip("-")


def _entry(name: str, served: str, window: int | None) -> dict[str, Any]:
    told = f"{served}, served by a40console"
    if window is not None:
        told += f", window {window:,} tokens"
    entry: dict[str, Any] = {
        "type": "model",
        "id": name,
        "display_name": served,
        "description": told,
        "created_at": _UNKNOWN_DATE,
    }
    if window is not None:
        entry["max_input_tokens"] = window
    return entry
