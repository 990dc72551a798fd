"""Conversations that both routes must answer alike; greedy, so that an engine repeats itself."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

GREEDY: Body = {"model": "claude-sonnet-5", "max_tokens": 24, "temperature": 0}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "Weather", "input_schema": CITY, "strict": True}
CLOCK = {
    "name": "get_time",
    "description": "The time",
    "input_schema": {"type": "object", "properties": {}},
}


def user(text: str) -> Body:
    """A user's turn."""
    return {"role": "user", "content": text}


def asked(*messages: Body, **more: Any) -> Body:
    """A request with these turns."""
    return {**GREEDY, "messages": list(messages), **more}


CALLED: list[Body] = [
    user("How is the weather in Rome and Oslo?"),
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Two calls.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}},
            {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Oslo"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": "Sunny, 21 C"}],
            },
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "", "is_error": True},
            {"type": "text", "text": "So?"},
        ],
    },
]

PLAIN: dict[str, Body] = {
    "a text": asked(user("Say hi to the sea")),
    "a system prompt in blocks": asked(
        user("What is the capital of France?"),
        system=[
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.18b;"},
            {"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "You like rivers."},
        ],
    ),
    "a prompt that is in the cache": asked(
        user("Which is the third?"),
        system=" ".join(f"Item {number} costs {number * 7} coins." for number in range(40)),
        max_tokens=8,
    ),
    "several turns": asked(
        user("Name a colour"),
        {"role": "assistant", "content": [{"type": "text", "text": "Red."}]},
        user("Another one"),
    ),
    "a later system message": asked(
        user("Name a colour"),
        {"role": "assistant", "content": "Red."},
        {"role": "system", "content": [{"type": "text", "text": "Answer in French."}]},
        user("Another one"),
    ),
    "a system message at the end": asked(
        user("Name a colour"), {"role": "system", "content": "12000 tokens are left."}
    ),
    "the answer's own end": asked(user("Say only the word yes."), max_tokens=200),
    "a limit of one token": asked(user("Count to ten."), max_tokens=1),
    "a limit beyond the window": asked(user("Say only the word yes."), max_tokens=32000),
    "a stop sequence": asked(
        user("Count: 1 2 3 4 5 6 7"), max_tokens=80, stop_sequences=["zebra", "a", "the"]
    ),
    "thinking and effort": asked(
        user("Say hi"),
        thinking={"type": "adaptive", "display": "omitted"},
        output_config={"effort": "high"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    ),
    "no thinking": asked(user("Say hi"), thinking={"type": "disabled"}),
    "an image for a model without eyes": asked(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                },
            ],
        }
    ),
    "tools that are not called": asked(user("How is the weather in Rome?"), tools=[WEATHER, CLOCK]),
    "tools that must not be called": asked(
        user("How is the weather in Rome?"), tools=[WEATHER], tool_choice={"type": "none"}
    ),
    "results of tools": asked(*CALLED, tools=[WEATHER]),
}

FORCED: dict[str, Body] = {
    "a tool that must be called": asked(
        user("How is the weather in Rome?"),
        max_tokens=80,
        tools=[CLOCK, WEATHER],
        tool_choice={"type": "tool", "name": "get_weather"},
    ),
    "any tool": asked(
        user("How is the weather in Rome?"),
        max_tokens=160,
        tools=[WEATHER],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
    ),
    "an answer in JSON": asked(
        user("How is the weather in Rome?"),
        max_tokens=80,
        output_config={"format": {"type": "json_schema", "schema": CITY}},
    ),
}
"""What needs an engine that holds the model to a grammar."""

OVERFLOW = asked(user("word " * 6000))
