"""The tools that the engine is told of."""

from __future__ import annotations

from typing import Any

from a40console.gateway.anthropic.busters import Tally
from a40console.gateway.anthropic.foreign import text_of
from a40console.gateway.refusals import Refusal

_CLIENT_RUN = ("bash_", "computer_", "memory_", "text_editor_")
"""Types of Anthropic's own tools that the client runs; the others run in its service."""

_CHOICES = frozenset({"auto", "any", "tool", "none"})


class ToolChanges:
    """Tools that messages in the conversation add or take away.

    One that is added stands from then on behind all others. One that is taken away stays listed,
    and a text says that it is gone: the list is at the head of the prompt, and a change there
    would cost the whole prefix.
    """

    def __init__(self) -> None:
        self.referenced: list[str] = []
        """Tools that were deferred until then, in the order in which they were referred to."""

        self.defined: list[dict[str, Any]] = []

    def read(self, block: dict[str, Any]) -> str | None:
        """Take a block that changes the tools, and say so in a text; None for any other block."""
        kind, tool = block.get("type"), block.get("tool")
        if kind not in ("tool_addition", "tool_removal"):
            return None
        tool = tool if isinstance(tool, dict) else {}
        definition = tool.get("definition")
        if isinstance(definition, dict):
            self.defined.append(definition)
            tool = definition
        name = text_of(tool.get("name")) or text_of(tool.get("tool_name"))
        if kind == "tool_removal":
            return f"[Tool {name} is no longer available.]"
        self.referenced.append(name)
        return f"[Tool {name} is available now.]"


def read_tools(listed: object, changes: ToolChanges, tally: Tally) -> list[dict[str, Any]]:
    """The tools to list, in the client's order; deferred ones once something refers to them.

    Raises:
        Refusal: If they are not a list of named objects.
    """
    if not isinstance(listed, list | None):
        raise Refusal(400, "tools: must be a list.")
    first: dict[str, dict[str, Any]] = {}
    later: dict[str, dict[str, Any]] = {}
    for number, tool in enumerate(listed or ()):
        if not isinstance(tool, dict):
            raise Refusal(400, f"tools.{number}: must be an object.")
        taken = _tool(tool, number, tally)
        if taken is not None:
            (later if tool.get("defer_loading") is True else first)[taken["name"]] = taken
    for number, tool in enumerate(changes.defined):
        taken = _tool(tool, number, tally)
        if taken is not None and taken["name"] not in first:
            later[taken["name"]] = taken
    loaded = {name: later.pop(name) for name in changes.referenced if name in later}
    tally["deferred tool"] += len(later)
    return [*first.values(), *(tool for name, tool in loaded.items() if name not in first)]


def read_choice(choice: object, tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """How the model is to choose among the tools; None where that is up to it."""
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not tools or not isinstance(choice, dict) or kind not in _CHOICES:
        return None
    taken: dict[str, Any] = {"type": kind}
    if kind == "tool":
        name = choice.get("name")
        if not any(tool["name"] == name for tool in tools):
            return None
        taken["name"] = name
    if isinstance(choice.get("disable_parallel_tool_use"), bool):
        taken["disable_parallel_tool_use"] = choice["disable_parallel_tool_use"]
    return taken


def _tool(tool: dict[str, Any], number: int, tally: Tally) -> dict[str, Any] | None:
    """One tool as every engine takes it; None for one that only Anthropic's service can run."""
    name, kind, schema = tool.get("name"), tool.get("type"), tool.get("input_schema")
    described = text_of(tool.get("description"))
    if not isinstance(schema, dict):
        own = isinstance(kind, str) and kind.startswith(_CLIENT_RUN)
        if not own and kind not in (None, "custom"):
            tally["server tool"] += 1
            return None
        schema = {}
        described = described or (f"The {kind} tool, with its usual arguments." if own else "")
    if not isinstance(name, str) or not name:
        raise Refusal(400, f"tools.{number}.name: must be a text.")
    taken: dict[str, Any] = {"name": name, "description": described}
    taken["input_schema"] = schema if "type" in schema else {"type": "object", **schema}
    if isinstance(tool.get("strict"), bool):
        taken["strict"] = tool["strict"]
    return taken
