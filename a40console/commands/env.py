"""`a40console env`: what a client must be told, ready for `eval` or to paste."""

from __future__ import annotations

import asyncio
import shlex

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json
from a40console.commands.running import connect
from a40console.paths import Paths


@click.command()
@json_option
@click.pass_obj
def command(invocation: Invocation, *, as_json: bool) -> None:
    """The client's environment: eval "$(a40console env)". Holds the gateway's token."""
    variables = asyncio.run(_variables(invocation.paths))
    if as_json:
        print_json(variables)
        return
    for name, value in variables.items():
        click.echo(f"export {name}={quoted(value)}")


async def _variables(paths: Paths) -> dict[str, str]:
    async with await connect(paths) as client:
        return (await client.environment()).variables


def quoted(value: str) -> str:
    """The value in single quotes, whatever it holds."""
    quoted_value = shlex.quote(value)
    return quoted_value if quoted_value != value else f"'{value}'"
