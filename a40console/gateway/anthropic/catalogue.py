"""The models that can be asked for: the one that serves, under any name."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from a40console.gateway.asking import ask_engine
from a40console.gateway.dialect import DialectOf
from a40console.gateway.opening import serving
from a40console.gateway.refusals import Refusal, grammar_of, refuse
from a40console.gateway.upstream import EngineSessions, Upstream, UpstreamState

_ALIAS = "claude-local-"
_UNSAFE = re.compile(r"[^a-z0-9.]+")
_DISCOVERER = "claude-code/"
"""Claude Code's user agent when it looks for models; it keeps ids that name Claude alone."""

_UNKNOWN_DATE = "1970-01-01T00:00:00Z"
"""What the API says of a model whose date is not known."""

_ASK_S = 10.0


class Catalogue:
    """Lists models in the shape of the caller's API."""

    def __init__(self, state: UpstreamState, dialects: DialectOf, sessions: EngineSessions) -> None:
        self._state = state
        self._dialects = dialects
        self._sessions = sessions

    async def models(self, request: Request) -> Response:
        """All of them."""
        return await self._answer(request, None)

    async def model(self, request: Request) -> Response:
        """One. Messages take any name, so to their callers every name is one of the served model.

        OpenAI's routes take the engine's own names alone.
        """
        return await self._answer(request, request.path_params["name"])

    async def _answer(self, request: Request, name: str | None) -> Response:
        grammar = grammar_of(request.url.path, request.headers)
        try:
            upstream = serving(self._state)
            if grammar == "openai":
                return await self._as_openai(upstream, name)
            entries = await self._entries(upstream, request.headers.get("user-agent", ""), name)
        except Refusal as refusal:
            return refuse(grammar, refusal)
        if name is not None:
            return JSONResponse(entries[0])
        ids = [entry["id"] for entry in entries]
        page = {"data": entries, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}
        return JSONResponse(page)

    async def _entries(
        self, upstream: Upstream, user_agent: str, name: str | None
    ) -> list[dict[str, Any]]:
        dialect = await self._dialects.of(upstream)
        served, window = upstream.served_name, dialect.max_model_len
        names = [served if name is None else name]
        if name is None and user_agent.lower().startswith(_DISCOVERER):
            names.append(alias_of(served))
        return [_entry(one, served, window) for one in names]

    async def _as_openai(self, upstream: Upstream, name: str | None) -> Response:
        """The engine's own list, or the one of that name in it."""
        said = await ask_engine(self._sessions, upstream, "/v1/models", timeout_s=_ASK_S)
        if name is None:
            return Response(said.raw, said.status, media_type="application/json")
        data = said.body().get("data")
        for entry in data if isinstance(data, list) else ():
            if isinstance(entry, dict) and entry.get("id") == name:
                return JSONResponse(entry)
        raise Refusal(404, f"There is no such model; {upstream.served_name} serves.")


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
