"""A Messages body for an engine that has the API, and one of its own ideas about it."""

from __future__ import annotations

from typing import Any

from a40console.gateway.dialect import Dialect


def to_native(body: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The body as this engine must get it to render what was meant.

    llama.cpp puts a turn's text before the tools' results of the same turn, so that the results
    no longer follow their calls: there the text becomes a turn of its own.
    """
    turns = body.get("messages")
    if dialect.results_first or not isinstance(turns, list):
        return body
    return {**body, "messages": [part for turn in turns for part in _parts(turn)]}


def _parts(turn: Any) -> list[Any]:
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return [turn]
    results = [block for block in content if _is_result(block)]
    said = [block for block in content if not _is_result(block)]
    if not results or not said:
        return [turn]
    return [{**turn, "content": results}, {**turn, "content": said}]


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"
