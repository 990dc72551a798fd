"""The routes that change something: a small JSON body in, a JSON object out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .controls import (  # noqa: TID252 - the folder is installed under another name
    Controls,
    RefusedError,
    UnansweredError,
)

LARGEST_BODY_BYTES = 4096
LARGEST_NUMBER = 10_000
LONGEST_ID = 512

Act = Callable[[Controls, dict[str, Any]], Awaitable[dict[str, Any]]]


class BadBodyError(ValueError):
    """The body is not what the route takes; the text says what is."""


async def answer(act: Act, controls: Controls | None, request: Request) -> Response:
    """Does what a request asks and tells how it went; every error is JSON."""
    if controls is None:
        return JSONResponse({"error": "the plugin is not attached to an engine"}, 503)
    try:
        result = await act(controls, await _body(request))
    except BadBodyError as error:
        return JSONResponse({"error": str(error)}, 400)
    except RefusedError as error:
        return JSONResponse({"error": str(error)}, 409)
    except UnansweredError as error:
        return JSONResponse({"error": str(error)}, 504)
    except Exception as error:  # noqa: BLE001 - a surprise of ours is told, and ends nothing
        return JSONResponse({"error": f"it could not be done: {error!r}"}, 500)
    return JSONResponse(result)


async def _speculation(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    return await controls.set_speculation(_number(body, "tokens"))


async def _abort(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    request_id = body.get("request_id")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST_ID:
        raise BadBodyError("request_id must be a string")
    return {"aborted": await controls.abort(request_id)}


async def _reset(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    return {"reset": await controls.reset_prefix_cache()}


async def _sleep(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    await controls.sleep(_number(body, "level"))
    return {"asleep": True}


async def _wake(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    await controls.wake()
    return {"asleep": False}


async def _pause(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    await controls.pause()
    return {"paused": True}


async def _resume(controls: Controls, body: dict[str, Any]) -> dict[str, Any]:
    await controls.resume()
    return {"paused": False}


ACTS: dict[str, Act] = {
    "speculation": _speculation,
    "abort": _abort,
    "reset-prefix-cache": _reset,
    "sleep": _sleep,
    "wake": _wake,
    "pause": _pause,
    "resume": _resume,
}
"""By the last part of the route."""


def _number(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise BadBodyError(f"{name} must be a whole number from 0 to {LARGEST_NUMBER}")
    return value


async def _body(request: Request) -> dict[str, Any]:
    """The body's JSON object; nothing at all is an empty one."""
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > LARGEST_BODY_BYTES:
            raise BadBodyError(f"the body is larger than {LARGEST_BODY_BYTES} bytes")
    try:
        body = json.loads(bytes(read) or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadBodyError(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadBodyError("the body must be a JSON object")
    return body
