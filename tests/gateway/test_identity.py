"""Who asks: the surest sign counts, and nothing personal is shown or kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.anthropic.identity import identity_of, safe_name, tool_durations

DEVICE, ACCOUNT = "d0" * 32, "11111111-2222-4333-8444-555555555555"
HEADER, CUSTOM = "x-claude-code-session-id", "x-a40console-session"
UUID = "0a1b2c3d-0000-4000-8000-000000000000"
PERSON = {"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": "m-1"}
META = {"user_id": json.dumps(PERSON)}
LEGACY = {"user_id": f"user_{DEVICE}_account_{ACCOUNT}_session_{UUID}"}


@pytest.mark.parametrize(
    ("headers", "path", "metadata", "session", "origin"),
    [
        ({HEADER: "h-1", CUSTOM: "c-1"}, "/s/p-1/v1/messages", META, "h-1", "header"),
        ({CUSTOM: "c-1"}, "/s/p-1/v1/messages", META, "m-1", "metadata"),
        ({CUSTOM: "c-1"}, "/s/p-1/v1/messages", LEGACY, UUID, "legacy"),
        ({CUSTOM: "c-1"}, "/s/p-1/v1/messages", None, "c-1", "custom"),
        ({}, "/s/p-1/v1/messages", {"user_id": "somebody@example.com"}, "p-1", "prefix"),
        ({}, "/v1/messages", {"user_id": 7}, "client-", "connection"),
        ({HEADER: "///"}, "/v1/messages", META, "m-1", "metadata"),
    ],
)  # fmt: skip
def test_the_surest_sign_of_a_session_counts(
    headers: dict[str, str], path: str, metadata: Any, session: str, origin: str
) -> None:
    identity = identity_of(headers, path, metadata)
    assert identity.session.startswith(session)
    assert identity.origin == origin
    assert (identity.agent, identity.is_subagent, identity.prompt_id) == ("main", False, None)


@pytest.mark.parametrize("metadata", [META, LEGACY, {"user_id": f"user_{DEVICE}_x"}])
def test_device_and_account_are_nowhere_in_an_identity(metadata: Any) -> None:
    shown = repr(identity_of({"authorization": "Bearer a40-secret"}, "/v1/messages", metadata))
    assert DEVICE not in shown
    assert ACCOUNT not in shown
    assert "secret" not in shown


def test_a_connections_name_is_the_same_for_the_same_key_and_program() -> None:
    def session(key: str, agent: str) -> str:
        headers = {"authorization": f"Bearer {key}", "user-agent": agent}
        return identity_of(headers, "/v1/chat/completions").session

    assert session("k1", "openai") == session("k1", "openai")
    assert len({session("k1", "openai"), session("k2", "openai"), session("k1", "curl")}) == 3


@pytest.mark.parametrize(
    ("headers", "billed", "agent"),
    [
        ({}, False, "main"),
        ({"x-claude-code-request-class": "main"}, False, "main"),
        ({"x-claude-code-request-class": "main"}, True, "main"),
        ({"x-claude-code-request-class": "subagent"}, False, "subagent"),
        ({}, True, "subagent"),
        ({"x-claude-code-agent-id": "a0123456789abcdef"}, False, "subagent a012345"),
        (
            {"x-claude-code-agent-id": "a0123456789abcdef", "x-claude-code-agent-type": "Explore"},
            True,
            "Explore a012345",
        ),
    ],
)
def test_sub_agents_are_told_apart_by_hints(
    headers: dict[str, str], billed: bool, agent: str
) -> None:
    identity = identity_of(headers, "/v1/messages", billed_as_subagent=billed)
    assert (identity.agent, identity.is_subagent) == (agent, agent != "main")


def test_durations_of_tools_are_read_in_seconds() -> None:
    def read(said: str) -> tuple[tuple[str, float], ...]:
        return tool_durations({"x-claude-code-prev-tool-durations": said})

    assert read("Bash=567;Bash=1174") == (("Bash", 0.567), ("Bash", 1.174))
    assert read("Bash=567; mcp__x__y=2.5") == (("Bash", 0.567), ("mcp__x__y", 0.0025))
    assert read("") == read("Bash") == read("Bash=-5") == read("=5") == read("Bash=9e9") == ()
    assert tool_durations({}) == ()


@given(st.text(max_size=300))
def test_a_name_is_safe_in_files_addresses_and_on_screens(said: str) -> None:
    name = safe_name(said)
    assert len(name) <= 64
    assert all(sign.isascii() and (sign.isalnum() or sign in "._-") for sign in name)
    assert not name.startswith((".", "-"))
    assert safe_name(name) == name


@given(
    st.dictionaries(
        st.sampled_from([HEADER, CUSTOM, "user-agent", "authorization", "x-claude-code-agent-id"]),
        st.text(alphabet=st.characters(max_codepoint=255), max_size=40),
    ),
    st.text(max_size=40),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=30),
        lambda inner: st.lists(inner) | st.dictionaries(st.just("user_id"), inner),
        max_leaves=5,
    ),
)
def test_any_signs_give_an_identity(headers: dict[str, str], path: str, metadata: Any) -> None:
    identity = identity_of(headers, path, metadata)
    assert identity.session
    assert identity == identity_of(headers, path, metadata)
