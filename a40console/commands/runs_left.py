"""Telling which runs are on this machine alone, wherever its end may be near."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from a40console.errors import ConsoleError
from a40console.model.run_copies import told
from a40console.service.client import ServiceClient

WAIT_S = 3.0
"""A service that stands still keeps nobody from ending it."""


async def runs_left(client: ServiceClient) -> Sequence[str]:
    """In sentences, where the machine is one that will be gone; none else, or where nobody knows.

    It stands beside a command that must work without it.
    """
    try:
        async with asyncio.timeout(WAIT_S):
            return told(await client.runs_left())
    except (ConsoleError, TimeoutError):
        return ()
