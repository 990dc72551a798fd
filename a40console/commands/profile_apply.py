"""`profiles diff` and `engine apply`: an edited profile against what runs, shown, asked, done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from a40console.commands.acting import act, print_result, timeout_option
from a40console.commands.asking import confirm, yes_option
from a40console.commands.consent import lost_by
from a40console.commands.engine_verb import drain_argument, drain_option_that
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, printable
from a40console.commands.progress import Progress
from a40console.commands.running import reach_engine
from a40console.errors import CheckFailedError
from a40console.model.figures import Missing
from a40console.model.profile_change import ProfileDiff
from a40console.operations.asked import in_words
from a40console.tui.losses import APPLY_BY_RESTART

_EFFECTS = {"restart": "restart", "live": "as it runs"}


@click.command()
@click.argument("name", metavar="[PROFILE]", required=False)
@click.option("--check", is_flag=True, help="Exit with 6 where anything differs.")
@json_option
@click.pass_obj
def diff(invocation: Invocation, *, name: str | None, check: bool, as_json: bool) -> None:
    """What a profile's file says otherwise than what runs, and what of it takes a restart.

    Without PROFILE of the one that runs. Settings that were turned while the engine ran
    (`engine speculation`) are no edit.
    """

    async def asked() -> ProfileDiff:
        async with await reach_engine(invocation.paths, quiet=as_json) as client:
            return await client.changes(name or "")

    found = asyncio.run(asked())
    if as_json:
        print_json({"diff": found, "needs_restart": found.needs_restart})
    else:
        for line in described(found):
            click.echo(printable(line))
    if check and found.changes:
        raise CheckFailedError(f"{found.profile} differs from what runs")


@click.command()
@yes_option
@drain_option_that(
    "Seconds that running requests may take to end before a restart; then they are cut."
)
@timeout_option("Seconds to wait for it, which goes on after them")
@json_option
@click.pass_obj
def apply(
    invocation: Invocation,
    *,
    yes: bool,
    drain_s: float | None,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Let the running profile's edited file be in force.

    Price, titles, routes, limits of time and what else the engine is not told of change while it
    runs. What it reads when it starts takes a restart, which is asked for; clients wait meanwhile,
    and a start that fails puts back what served. Without a terminal a restart needs --yes;
    `profiles diff` only tells.
    """
    asyncio.run(_apply(invocation, yes=yes, drain_s=drain_s, timeout_s=timeout_s, as_json=as_json))


async def _apply(
    invocation: Invocation,
    *,
    yes: bool,
    drain_s: float | None,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    async with await reach_engine(invocation.paths, quiet=as_json) as client:
        found = await client.changes()
        if not as_json:
            for line in described(found):
                click.echo(printable(line))
        if not found.changes and not as_json:
            return
        if found.needs_restart:
            lost = [] if yes else await lost_by(client, "engine.apply")
            confirm(APPLY_BY_RESTART, yes=yes, lost=lost)
        arguments = ({"changes": found.id} if found.id else {}) | drain_argument(drain_s)
        progress = Progress(quiet=as_json)
        done = await act(
            client, "engine.apply", timeout_s=timeout_s, progress=progress, **arguments
        )
        print_result(done, "It is in force.", as_json=as_json)


def described(found: ProfileDiff) -> Iterator[str]:
    """Each setting with what it takes, then what was asked before and is not in force."""
    yield from _changed(found)
    if not isinstance(found.not_in_force, Missing):
        for entry in found.not_in_force:
            yield f"Not in force: {entry.setting}, {in_words(entry)} ({entry.evidence})"


def _changed(found: ProfileDiff) -> Iterator[str]:
    against = "" if found.running == found.profile else f", against {found.running}, which runs"
    if not found.changes:
        yield f"{found.profile} runs as its file says ({found.origin}){against}"
        return
    yield f"{found.profile} ({found.origin}){against}:"
    for effect in ("restart", "live"):
        for change in found.changes:
            if change.effect == effect:
                yield f"  {_EFFECTS[effect]:<12}{change.change}   ({change.why})"
    if found.running != found.profile:
        yield f"Let it serve: a40console engine switch {found.profile}"
