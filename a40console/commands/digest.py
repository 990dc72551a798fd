"""`a40console digest`: what happened while the operator was away."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, print_lines, terminal_width
from a40console.commands.running import connect
from a40console.commands.since import event_id, since_seconds
from a40console.model.control import Digest
from a40console.model.figures import Missing
from a40console.model.instants import unix_s
from a40console.paths import Paths
from a40console.tui.panels.digest import digest_text

WIDEST = 120
"""Longer lines are harder to read."""


@click.command()
@click.option(
    "--since",
    metavar="8h|ID",
    help="As far back, or after the event with this id; by default since you last read the events.",
)
@json_option
@click.pass_obj
def command(invocation: Invocation, *, since: str | None, as_json: bool) -> None:
    """What happened meanwhile: engines, findings, requests, tokens, dollars. Starts nothing."""
    digest = asyncio.run(_read(invocation.paths, since))
    if as_json:
        print_json(digest)
        return
    print_lines(invocation, digest_text(digest, min(terminal_width(), WIDEST)))


async def _read(paths: Paths, since: str | None) -> Digest:
    async with await connect(paths) as client:
        if since is None:
            mark = await client.read_mark()
            if not mark.event:
                note("Nobody has read the events yet: this tells of all of them.")
            read_s = None if isinstance(mark.at, Missing) else unix_s(mark.at)
            return await client.digest(since_event=mark.event, since_s=read_s)
        found = event_id(since)
        if found is not None:
            return await client.digest(since_event=found)
        return await client.digest(since_s=since_seconds(since))
