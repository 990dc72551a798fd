"""Requests of the Messages API as tests write them: recorded ones, and small ones of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import Asked, read_asked
from a40console.gateway.dialect import Dialect
from a40console.gateway.upstream import Upstream

RECORDED = Path(__file__).parent.parent / "data" / "claude-code"
FOLDING = Dialect(
    route="native",
    system_turns="fold",
    images=False,
    counting="messages",
    served_name="smollm2",
    max_model_len=32_768,
    evidence=(),
)
KEEPING = replace(FOLDING, system_turns="keep")
SEEING = replace(FOLDING, images=True)


class Known:
    """Says the same dialect of every engine."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    async def of(self, upstream: Upstream) -> Dialect:
        return self._dialect


def recorded(name: str) -> tuple[dict[str, Any], Headers, str]:
    """A request of the real client: body, headers and path."""
    data = json.loads((RECORDED / f"{name}.json").read_text())
    headers = Headers(dict(data["headers"]))
    return data["body"], headers, data["path_qs"].partition("?")[0]


def read_recorded(name: str, dialect: Dialect = FOLDING) -> Asked:
    body, headers, path = recorded(name)
    counting = path.endswith("count_tokens")
    return read_asked(json.dumps(body).encode(), headers, path, dialect, counting=counting)


def ask(
    body: dict[str, Any],
    dialect: Dialect = FOLDING,
    headers: dict[str, str] | None = None,
    path: str = "/v1/messages",
) -> Asked:
    """Read a body; model, limit and one message stand in it unless it has its own."""
    whole = {"model": "any", "max_tokens": 100, "messages": [user("hi")], **body}
    return read_asked(json.dumps(whole).encode(), Headers(headers or {}), path, dialect)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def result(tool_use_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **more}


def use(tool_use_id: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_use_id, "name": name, "input": given}
