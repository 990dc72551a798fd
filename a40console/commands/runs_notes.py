"""`a40console runs note` and `runs invalidate`: what the operator says of a run."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.acting import act, print_result
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.progress import Progress
from a40console.commands.running import ensure_service
from a40console.commands.runs_named import run_id
from a40console.model.control import CommandResult


@click.command("note")
@click.argument("run", metavar="RUN")
@click.argument("text", nargs=-1, required=True)
@json_option
@click.pass_obj
def note_run(invocation: Invocation, *, run: str, text: tuple[str, ...], as_json: bool) -> None:
    """Write a line about a run; it is in every report and export."""
    result = asyncio.run(_tell(invocation, "runs.note", run, text=" ".join(text)))
    print_result(result, f"Noted on {run}.", as_json=as_json)


@click.command("invalidate")
@click.argument("run", metavar="RUN")
@click.argument("reason", nargs=-1, required=True)
@json_option
@click.pass_obj
def invalidate_run(
    invocation: Invocation, *, run: str, reason: tuple[str, ...], as_json: bool
) -> None:
    """Say why nothing of a run may be believed; it stays, marked, and is compared no more."""
    result = asyncio.run(_tell(invocation, "runs.invalidate", run, reason=" ".join(reason)))
    print_result(result, f"{run} is invalid.", as_json=as_json)


async def _tell(invocation: Invocation, command: str, name: str, **said: str) -> CommandResult:
    async with await ensure_service(invocation.paths, engine=False) as client:
        return await act(
            client,
            command,
            timeout_s=None,
            progress=Progress(quiet=True),
            id=await run_id(client, name),
            **said,
        )
