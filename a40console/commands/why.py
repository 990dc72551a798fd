"""`a40console why`: why it is as fast as it is, what was ruled out and how."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_lines, terminal_width
from a40console.commands.running import connect
from a40console.model.explanation import Explanation
from a40console.paths import Paths
from a40console.tui.ink import Line
from a40console.tui.panels import why

WIDEST = 120
"""Longer lines are harder to read."""

_ENGINE_COMMANDS = {
    "engine.start": "a40console engine start",
    "engine.restart": "a40console engine restart",
    "engine.clean": "a40console engine clean",
    "engine.speculation": "a40console engine speculation off",
}
"""What applies a remedy on this command line."""


@click.command()
@json_option
@click.pass_obj
def command(invocation: Invocation, *, as_json: bool) -> None:
    """Why it is as fast as it is: causes by rank, what is ruled out and how. Starts nothing."""
    explanation = asyncio.run(_explanation(invocation.paths))
    if as_json:
        print_json(explanation)
        return
    width = min(terminal_width(), WIDEST)
    print_lines(invocation, lines(explanation, width))


async def _explanation(paths: Paths) -> Explanation:
    async with await connect(paths) as client:
        return await client.why()


def lines(explanation: Explanation, width: int) -> list[Line]:
    """The explanation as the console draws it, with commands in the place of keys."""
    shown = why.causes(explanation, width, lambda command_id: _ENGINE_COMMANDS.get(command_id, ""))
    return [*shown, (), *why.verdicts(explanation, width)]
