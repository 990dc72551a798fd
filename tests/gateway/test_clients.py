"""Clients are named by one word, and nothing a client sends can disturb a terminal."""

from __future__ import annotations

import pytest

from a40console.gateway.clients import client_of, shown


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-cli/2.1.332 (external, sdk-cli)", "claude-code"),
        ("OpenAI/Python 2.9.0", "openai-python"),
        ("AsyncOpenAI/Python 2.9.0", "openai-python"),
        ("Anthropic/JS 0.60", "anthropic-node"),
        ("curl/8.5.0", "curl"),
        ("python-httpx/0.28.1", "python-httpx"),
        ("a40console/0.1.0", "a40console"),
        ("Mozilla/5.0 (X11)", "mozilla"),
        ("\x1b[31mred", None),
        ("", None),
        (None, None),
    ],
)
def test_the_client_by_its_user_agent(agent: str | None, name: str | None) -> None:
    assert client_of(agent) == name


def test_a_clients_own_text_is_printable_and_short() -> None:
    assert shown("a\x1b[2Jb\nc") == "a[2Jbc"
    assert shown("x" * 1000) == "x" * 120
    assert shown(7) is None
    assert shown("\x00") is None
