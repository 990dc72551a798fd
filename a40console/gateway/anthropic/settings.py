"""The request's settings: limits, sampling, thinking and effort."""

from __future__ import annotations

from typing import Any

from a40console.gateway.anthropic.busters import Tally
from a40console.gateway.dialect import Dialect
from a40console.gateway.refusals import Refusal

_TAKEN = frozenset({"messages", "model", "system", "tools", "tool_choice", "max_tokens", "stream"})
_SETTINGS = frozenset(
    {"output_config", "stop_sequences", "temperature", "thinking", "top_k", "top_p"}
)
_ANTHROPICS_OWN = frozenset(
    {
        "betas",
        "container",
        "context_management",
        "diagnostics",
        "fallbacks",
        "inference_geo",
        "mcp_servers",
        "metadata",
        "safeguards",
        "service_tier",
        "speed",
    }
)
"""Fields for Anthropic's service that mean nothing to an engine; some hold paths and names."""

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_BYTES_PER_TOKEN = 2
_TEMPLATE_TOKENS = 256
"""What a chat template may add of its own: marks of turns, a system prompt, words about tools."""

_LEAST_BUDGET = 1024
_LONGEST_LIMIT = 2**31 - 1


def read_limit(limit: object) -> int:
    """The client's limit of the answer, in tokens.

    Raises:
        Refusal: If it is absent or no positive whole number.
    """
    if limit is None:
        raise Refusal(400, "max_tokens: Field required")
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise Refusal(400, "max_tokens: must be a whole number, 1 or more.")
    return limit


def fitted_limit(limit: int, prompt_bytes: int, dialect: Dialect) -> int:
    """A limit that the engine takes: the client's own, where the engine makes it fit itself.

    Older engines refuse a request whose prompt and limit together are more than the window, and a
    client that does not know the window asks for 32,000 tokens. How many tokens the prompt has
    only the engine knows: here one is reckoned for two bytes, which for text and code is too many,
    and at least a quarter of the window is left to the answer.
    """
    window = dialect.max_model_len
    if window is None:
        return min(limit, _LONGEST_LIMIT)
    if limit >= window and dialect.route == "translated":
        return window  # no limit at all: then the engine itself goes by what is left
    if dialect.clamps:
        return min(limit, window)
    prompt = prompt_bytes // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS
    room = max(window - prompt, window // 4, 1)
    return min(limit, room)


def read_settings(
    asked: dict[str, Any],
    effort: object,
    limit: int | None,
    tally: Tally,
    *,
    budgets: bool,
) -> dict[str, Any]:
    """Everything beside conversation, tools and limits.

    `effort` is the newest message's own, `limit` the fitted one, None where tokens are counted;
    `budgets` says whether the engine takes a budget for thinking.

    Raises:
        Refusal: If a setting is of a wrong type.
    """
    taken = _open_fields(asked, tally)
    for key in ("temperature", "top_p", "top_k"):
        number = asked.get(key)
        if number is not None:
            taken[key] = _number(number, key)
    stops = _stops(asked.get("stop_sequences"))
    if stops:
        taken["stop_sequences"] = stops
    config = _output_config(asked.get("output_config"), effort)
    if config:
        taken["output_config"] = config
    thinking = _thinking(asked.get("thinking"), limit)
    if thinking is not None and "budget_tokens" in thinking and not budgets:
        tally["thinking budget"] += 1
    elif thinking is not None:
        taken["thinking"] = thinking
    return taken


def _open_fields(asked: dict[str, Any], tally: Tally) -> dict[str, Any]:
    """Fields that mean nothing to us, for the engine, which may know them or ignores them."""
    tally.update({key: 1 for key in _ANTHROPICS_OWN if asked.get(key)})
    ours = _TAKEN | _SETTINGS | _ANTHROPICS_OWN
    return {key: value for key, value in asked.items() if key not in ours and value is not None}


def _number(value: object, key: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(400, f"{key}: must be a number.")
    return value


def _stops(stops: object) -> list[str]:
    if stops is None:
        return []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise Refusal(400, "stop_sequences: must be a list of texts.")
    return [stop for stop in stops if stop]


def _output_config(config: object, effort: object) -> dict[str, Any]:
    """Effort and the answer's form; a message's own effort counts before the request's."""
    config = config if isinstance(config, dict) else {}
    taken: dict[str, Any] = {}
    wished = config.get("effort") if effort is None else effort
    if isinstance(wished, str) and wished in _EFFORTS:
        taken["effort"] = wished
    form = config.get("format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = form.get("schema")
        if isinstance(schema, dict):
            taken["format"] = {"type": "json_schema", "schema": schema}
    return taken


def _thinking(thinking: object, limit: int | None) -> dict[str, Any] | None:
    """The two shapes that engines read; adaptive pins nothing, so nothing stands for it.

    A budget is at least 1024 tokens and less than the limit; where the limit leaves no room for
    one, how much to think is left to the model.
    """
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind == "disabled":
        return {"type": "disabled"}
    if kind != "enabled" or not isinstance(thinking, dict):
        return None
    budget = thinking.get("budget_tokens")
    if isinstance(budget, bool) or not isinstance(budget, int):
        return None
    budget = max(_LEAST_BUDGET, budget)
    if limit is not None:
        budget = min(budget, limit - 1)
    return {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else None
