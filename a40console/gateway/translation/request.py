"""A Messages request as a chat completions request."""

from __future__ import annotations

from typing import Any

from a40console.gateway.dialect import Dialect
from a40console.gateway.translation.turns import chat_messages

_SAME = (
    "temperature",
    "top_p",
    "top_k",
    "cache_salt",
    "vllm_xargs",
    "chat_template_kwargs",
)
"""Members that mean the same in both; the last three are vLLM's own."""

_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""OpenAI's three; engines that know none ignore the member, some refuse any other word."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def to_chat(body: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The chat completions body that asks for the same, for the engine of this dialect.

    `body` is a Messages body that was normalised: what no engine takes is out of it.
    """
    chat: dict[str, Any] = {
        "model": dialect.served_name,
        "messages": chat_messages(body, images=dialect.images),
    }
    chat |= {name: body[name] for name in _SAME if body.get(name) is not None}
    limit = body.get("max_tokens")
    if isinstance(limit, int) and not _beyond(limit, dialect):
        chat["max_tokens"] = limit
    if body.get("stop_sequences"):
        chat["stop"] = body["stop_sequences"]
    chat |= _tools(body) | _thinking(body, dialect) | _format(body)
    if body.get("stream") is True:
        options = {"include_usage": True}
        if dialect.running_usage:
            options["continuous_usage_stats"] = True
        chat |= {"stream": True, "stream_options": options}
    return chat


def _beyond(limit: int, dialect: Dialect) -> bool:
    """Whether a limit is none: older engines refuse more than the window, not ending there."""
    return dialect.max_model_len is not None and limit >= dialect.max_model_len


def _tools(body: dict[str, Any]) -> dict[str, Any]:
    """Tools and how to choose among them; without tools there is nothing to choose."""
    tools = body.get("tools")
    declared = [
        _tool(tool)
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    ]
    if not declared:
        return {}
    choice = body.get("tool_choice")
    choice = choice if isinstance(choice, dict) else {}
    chat: dict[str, Any] = {"tools": declared, "tool_choice": _choice(choice)}
    if choice.get("disable_parallel_tool_use") is True:
        chat["parallel_tool_calls"] = False
    return chat


def _choice(choice: dict[str, Any]) -> str | dict[str, Any]:
    if choice.get("type") == "tool" and isinstance(choice.get("name"), str):
        return {"type": "function", "function": {"name": choice["name"]}}
    return _CHOICES.get(str(choice.get("type")), "auto")


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("input_schema")
    function: dict[str, Any] = {"name": tool["name"]}
    if isinstance(tool.get("description"), str):
        function["description"] = tool["description"]
    function["parameters"] = (
        schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
    )
    if tool.get("strict") is True:
        function["strict"] = True
    return {"type": "function", "function": function}


def _thinking(body: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """How much to think: an effort, or not at all, by the switch that templates have for it.

    A budget in tokens goes only to an engine that takes one: without a parser for thoughts vLLM
    refuses it.
    """
    config, thinking = body.get("output_config"), body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "disabled":
        given = body.get("chat_template_kwargs")
        kept = given if isinstance(given, dict) else {}
        return {"chat_template_kwargs": {"enable_thinking": False, **kept}}
    effort = config.get("effort") if isinstance(config, dict) else None
    effort = _EFFORTS.get(effort) if isinstance(effort, str) else None
    wanted: dict[str, Any] = {} if effort is None else {"reasoning_effort": effort}
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(budget, int) and dialect.budgets:
        wanted["thinking_token_budget"] = budget
    return wanted


def _format(body: dict[str, Any]) -> dict[str, Any]:
    """An answer that must fit a JSON schema."""
    config = body.get("output_config")
    wanted = config.get("format") if isinstance(config, dict) else body.get("output_format")
    if not isinstance(wanted, dict) or not isinstance(wanted.get("schema"), dict):
        return {}
    schema = {"name": "answer", "schema": wanted["schema"]}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
