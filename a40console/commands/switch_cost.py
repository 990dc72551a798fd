"""`a40console engine switch PROFILE --cost`: what a switch would cost, and nothing done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import click

from a40console.commands.invocation import Invocation
from a40console.commands.output import print_json, printable
from a40console.commands.running import reach_engine
from a40console.model.switch_cost import SwitchCost, told
from a40console.service.client import ServiceClient


def tell_cost(
    invocation: Invocation, profile: str, drain: Mapping[str, str], *, as_json: bool
) -> None:
    """Print the cost in sentences, or as JSON."""

    async def ask() -> SwitchCost:
        async with await reach_engine(invocation.paths, quiet=as_json) as client:
            return await client.switch_cost(profile, **drain)

    cost = asyncio.run(ask())
    if as_json:
        print_json(cost)
        return
    for sentence in told(cost):
        click.echo(printable(sentence))


async def costs_of_switch(
    profile: str, drain: Mapping[str, str], client: ServiceClient
) -> Sequence[str]:
    """The cost in sentences, for the switch itself."""
    return told(await client.switch_cost(profile, **drain))
