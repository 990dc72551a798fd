"""`a40console note TEXT`: the operator's words among the events, and on the time axis."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.acting import act, print_result
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.progress import Progress
from a40console.commands.running import connect
from a40console.model.control import CommandResult


@click.command()
@click.argument("text", nargs=-1, required=True)
@json_option
@click.pass_obj
def command(invocation: Invocation, *, text: tuple[str, ...], as_json: bool) -> None:
    """Record one line among the events: what you changed, what you saw. Starts nothing."""

    async def run() -> CommandResult:
        async with await connect(invocation.paths) as client:
            return await act(
                client,
                "note.add",
                timeout_s=None,
                progress=Progress(quiet=True),
                text=" ".join(text),
            )

    print_result(asyncio.run(run()), "Noted.", as_json=as_json)
