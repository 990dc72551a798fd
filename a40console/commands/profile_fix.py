"""`a40console profiles fix`: what in a profile mends its failed start, shown, asked, then done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click

from a40console.commands.acting import act, print_result
from a40console.commands.asking import confirm, yes_option
from a40console.commands.consent import lost_by
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, printable
from a40console.commands.progress import Progress
from a40console.commands.running import connect
from a40console.model.control import CommandResult
from a40console.model.engine import DOWN
from a40console.model.fix import FixOffer
from a40console.service.client import ServiceClient


@click.command()
@yes_option
@click.option("--show", is_flag=True, help="Show the change, and do nothing.")
@click.option("--start", is_flag=True, help="Start the profile afterwards, without asking.")
@json_option
@click.pass_obj
def fix(invocation: Invocation, *, yes: bool, show: bool, start: bool, as_json: bool) -> None:
    """Show the one change of a profile that mends its last failed start, and make it.

    Your own file is changed in place, with its comments; of a shipped profile a copy of your own is
    made, which stands for it. Where the right value would be a guess nothing is offered. Without a
    terminal it needs --yes.
    """
    asyncio.run(_fix(invocation, yes=yes, show=show, start=start, as_json=as_json))


async def _fix(
    invocation: Invocation, *, yes: bool, show: bool, start: bool, as_json: bool
) -> None:
    async with await connect(invocation.paths) as client:
        offer = await client.fix()
        if as_json and show:
            print_json({"offer": offer})
        elif not as_json:
            for line in described(offer):
                click.echo(printable(line))
        if show:
            return
        confirm(f"Change {offer.profile} so? {offer.change}, in {offer.file}.", yes=yes)
        quiet = Progress(quiet=True)
        done = await act(client, "profile.fix", timeout_s=None, progress=quiet, fix=offer.id)
        print_result(done, "", as_json=as_json)
        if start or (not yes and await _wants_start(client, offer)):
            started = await _start(client, offer.profile, quiet=as_json)
            print_result(started, "The engine serves.", as_json=as_json)
        elif not as_json:
            verb = (await _verb(client)).removeprefix("engine.")
            click.echo(printable(f"Start it: a40console engine {verb} {offer.profile}"))


def described(offer: FixOffer) -> Iterator[str]:
    """What failed, what shows it, and what would be changed where."""
    yield f"{offer.profile}: {offer.cause}"
    yield f"  {offer.evidence}"
    yield f"{'New file' if offer.new_file else 'File'} {offer.file}"
    for line in offer.diff:
        yield f"  {line}"
    yield f"Why: {offer.why}"


async def _wants_start(client: ServiceClient, offer: FixOffer) -> bool:
    if not sys.stdin.isatty():
        return False
    for sentence in await lost_by(client, "engine.switch"):
        click.echo(printable(sentence), err=True)
    return click.confirm(printable(f"Start {offer.profile} now?"), err=True)


async def _start(client: ServiceClient, profile: str, *, quiet: bool) -> CommandResult:
    """Start it, in the place of whatever serves."""
    verb, progress = await _verb(client), Progress(quiet=quiet)
    return await act(client, verb, timeout_s=None, progress=progress, profile=profile)


async def _verb(client: ServiceClient) -> str:
    """The command that lets a profile serve as things are."""
    state = (await client.snapshot()).engine.state
    return "engine.start" if state in DOWN else "engine.switch"
