"""What the console says of a user's session."""

from __future__ import annotations

import asyncio
from typing import Any

from a40console.model.codec import encode
from a40console.model.session import SessionDetail
from a40console.service.client import ServiceClient
from tests.client.claude_code import ClaudeCode
from tests.faults.console import FaultConsole


def ended(console: FaultConsole, user: ClaudeCode, *, requests: int) -> dict[str, Any] | None:
    """The user's session once it has had so many requests, and none is under way."""
    session = session_of(console, user)
    done = session is not None and session["requests"] >= requests
    return session if session and done and session["phase"] in ("client", "idle") else None


def session_of(console: FaultConsole, user: ClaudeCode) -> dict[str, Any] | None:
    """The user's session in the newest snapshot."""
    sessions = console.status()["sessions"]
    if not isinstance(sessions, list):
        return None
    return next((one for one in sessions if one["session"] == user.session), None)


def detail_of(console: FaultConsole, user: ClaudeCode) -> dict[str, Any]:
    """Everything that the service knows of the user's session."""

    async def read() -> SessionDetail:
        async with ServiceClient(console.paths.control_socket) as client:
            return await client.session(user.session)

    found: dict[str, Any] = encode(asyncio.run(read()))
    return found
