"""Messages that the tests ask for, and a book that listens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a40console.gateway.meter import Passage
from a40console.gateway.sessions import SessionBook
from tests.gateway.stub import NATIVE_ENGINE, TRANSLATED_ENGINE

MESSAGES = "/v1/messages?beta=true"
ASK: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 80,
    "messages": [{"role": "user", "content": "Say hi to the sea"}],
}
STREAM = {**ASK, "stream": True}
BOTH = pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])


class Overheard(SessionBook):
    """A book that a test looks into."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        self.overflows = 0

    def called(self, passage: Passage, tool_name: str, tool_use_id: str) -> None:
        self.calls.append((tool_name, tool_use_id))
        super().called(passage, tool_name, tool_use_id)

    def overflowed(self, passage: Passage) -> None:
        self.overflows += 1
        super().overflowed(passage)


def chat(*deltas: dict[str, Any], finish: str = "stop") -> list[bytes]:
    """A chat completion's stream with running usage."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": one, "finish_reason": None} for one in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    counted = [
        {
            "choices": [choice],
            "usage": {"prompt_tokens": 37, "completion_tokens": number},
        }
        for number, choice in enumerate(choices)
    ]
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in counted] + [
        b"data: [DONE]\n\n"
    ]
