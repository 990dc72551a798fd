"""Who asks: a session's name and its agent, out of headers, metadata or the address.

Device, account and key never leave this module: what is personal is dropped or hashed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from a40console.model.session import MAIN_AGENT, Identity, Origin

SESSION_HEADER = "x-claude-code-session-id"
CUSTOM_SESSION_HEADER = "x-a40console-session"
_CLASS_HEADER = "x-claude-code-request-class"
_AGENT_HEADER = "x-claude-code-agent-id"
_AGENT_TYPE_HEADER = "x-claude-code-agent-type"
_PROMPT_HEADER = "x-claude-code-prompt-id"
_DURATIONS_HEADER = "x-claude-code-prev-tool-durations"

_SAFE_LIMIT = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LEGACY = re.compile(r"_session_([0-9A-Fa-f-]{8,64})\Z")
_PREFIX = re.compile(r"/s/([^/]+)(?=/|\Z)")
_DURATION = re.compile(r"([^=;]{1,128})=([0-9]{1,9}(?:\.[0-9]{1,6})?)")
_METADATA_LIMIT = 4096
_AGENT_ID_SHOWN = 7
_DURATIONS_LIMIT = 64


def identity_of(
    headers: Mapping[str, str],
    path: str,
    metadata: object = None,
    *,
    billed_as_subagent: bool = False,
) -> Identity:
    """Whose request this is; of several signs the surest counts.

    `path` is the address as the client wrote it; `metadata` is the body's field of that name, and
    `billed_as_subagent` what Claude Code's billing line says. Routes whose bodies carry neither
    leave both out.
    """
    signs: tuple[tuple[Origin, str | None], ...] = (
        ("header", headers.get(SESSION_HEADER)),
        *_from_metadata(metadata),
        ("custom", headers.get(CUSTOM_SESSION_HEADER)),
        ("prefix", prefix_session(path)),
    )
    named = ((safe_name(found), origin) for origin, found in signs)
    session, origin = next((one for one in named if one[0]), (_connection(headers), "connection"))
    agent = _agent(headers, billed_as_subagent)
    return Identity(
        session=session,
        origin=origin,
        agent=agent,
        is_subagent=agent != MAIN_AGENT,
        prompt_id=safe_name(headers.get(_PROMPT_HEADER)) or None,
    )


def safe_name(text: object) -> str:
    """A client's own name for something, short and safe in files, addresses and on screens."""
    if not isinstance(text, str):
        return ""
    return _UNSAFE.sub("-", text.strip()[: _SAFE_LIMIT * 2]).strip("-.")[:_SAFE_LIMIT]


def prefix_session(path: str) -> str | None:
    """The session that an address such as `/s/NAME/v1/messages` names."""
    match = _PREFIX.match(path)
    return match[1] if match else None


def tool_durations(headers: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """How long the client's tools ran before this request, in seconds; it says milliseconds."""
    said = headers.get(_DURATIONS_HEADER, "")
    found = [_DURATION.fullmatch(part.strip()) for part in said.split(";")[:_DURATIONS_LIMIT]]
    return tuple((safe_name(one[1]) or "tool", float(one[2]) / 1000) for one in found if one)


def _from_metadata(metadata: object) -> tuple[tuple[Origin, str], ...]:
    """The session in `metadata.user_id`: a JSON text, or the older joined form."""
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str) or len(user) > _METADATA_LIMIT:
        return ()
    legacy = _LEGACY.search(user)
    if legacy:
        return (("legacy", legacy[1]),)
    try:
        read: Any = json.loads(user)
    except (ValueError, RecursionError):
        return ()
    session = read.get("session_id") if isinstance(read, dict) else None
    return (("metadata", session),) if isinstance(session, str) else ()


def _connection(headers: Mapping[str, str]) -> str:
    """A short hash of key and user agent: the same client, the same name; nothing leads back."""
    told = "\0".join(headers.get(name, "") for name in ("authorization", "x-api-key", "user-agent"))
    digest = blake2b(told.encode("utf-8", "surrogateescape"), digest_size=4, person=b"a40-session")
    return f"client-{digest.hexdigest()}"


def _agent(headers: Mapping[str, str], billed_as_subagent: bool) -> str:
    """`main`, or the sub-agent's type and the start of its id, as far as the client says."""
    agent_id = safe_name(headers.get(_AGENT_HEADER))
    declared = headers.get(_CLASS_HEADER)
    if declared == "main" or not (declared == "subagent" or agent_id or billed_as_subagent):
        return MAIN_AGENT
    kind = safe_name(headers.get(_AGENT_TYPE_HEADER)) or "subagent"
    return f"{kind} {agent_id[:_AGENT_ID_SHOWN]}".rstrip()
