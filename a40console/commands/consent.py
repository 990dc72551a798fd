"""Saying what a command costs before it begins, and asking where somebody loses by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import click

from a40console.commands.asking import confirm
from a40console.commands.output import printable
from a40console.model.command import BY_ID
from a40console.model.engine import DOWN
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.service.client import ServiceClient
from a40console.tui.losses import at_stake, losses

LOOK_AGAIN_S = 2.0
"""How long the next snapshot is waited for: who began or ended a moment ago is in it."""

POLL_S = 0.1

Before = Callable[[ServiceClient], Awaitable[None]]
Costs = Callable[[ServiceClient], Awaitable[Sequence[str]]]


def consent(
    command_id: str, *, yes: bool, as_json: bool = False, costs: Costs | None = None
) -> Before:
    """What comes before a command that stops the engine.

    Args:
        command_id: The command.
        yes: Whether the question is answered already.
        as_json: Whether costs stay unsaid, for a script.
        costs: What it costs, in sentences, said whether or not anything is asked.
    """

    async def before(client: ServiceClient) -> None:
        for sentence in () if costs is None else await costs(client):
            if not as_json:
                click.echo(printable(sentence), err=True)
        if not yes:
            await ask_those_who_lose(client, command_id)

    return before


def asked(command_id: str, *, yes: bool, known: Sequence[str] = ()) -> Before:
    """The question that always comes before a command, with what is lost.

    Args:
        command_id: The command.
        yes: Whether the question is answered already.
        known: What else is known against it, in sentences.
    """

    async def before(client: ServiceClient) -> None:
        if not yes:
            question = BY_ID[command_id].confirm
            confirm(question, yes=False, lost=[*await lost_by(client, command_id), *known])

    return before


async def ask_those_who_lose(client: ServiceClient, command_id: str) -> None:
    """Ask where a running request would be cut or a held one kept waiting.

    Also while another change is under way: it may have ended by the time the service is told.

    Raises:
        RefusedError: If the operator does not agree.
        UsageError: If nobody is here to be asked.
    """
    snapshot = await _settled(client)
    stake = at_stake(snapshot)
    if stake:
        lost = [*_under_way(command_id, snapshot), *stake, *losses(command_id, snapshot)]
        confirm(BY_ID[command_id].confirm, yes=False, lost=lost)


def _under_way(command_id: str, snapshot: Snapshot) -> list[str]:
    """The other change that the service refuses this one for, unless it ends first."""
    other = snapshot.engine.switch
    if command_id == "engine.stop" or isinstance(other, Missing):
        return []
    return [f"A {other.what} is under way: until it has ended this is refused."]


async def lost_by(client: ServiceClient, command_id: str) -> list[str]:
    """Who loses what by a command, in sentences."""
    snapshot = await client.snapshot()
    return [*at_stake(snapshot), *losses(command_id, snapshot)]


async def _settled(client: ServiceClient) -> Snapshot:
    """The next snapshot: in the last one somebody who began since is not counted."""
    snapshot = first = await client.snapshot()
    if first.engine.state in DOWN and not at_stake(first):
        return first
    deadline = time.monotonic() + LOOK_AGAIN_S
    while snapshot.seq == first.seq and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)
        snapshot = await client.snapshot()
    return snapshot
