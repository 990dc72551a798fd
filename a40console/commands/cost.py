"""`a40console cost`: dollars and tokens by the hour, and the three prices of a million tokens."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_lines, terminal_width
from a40console.commands.running import connect
from a40console.commands.since import since_seconds
from a40console.model.control import SpendingReport
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths
from a40console.tui.ink import Line
from a40console.tui.panels import cost as panel

WIDEST = 120
"""Longer lines are harder to read."""


@click.command()
@click.option("--since", default="24h", show_default=True, metavar="24h", help="As far back.")
@json_option
@click.pass_obj
def command(invocation: Invocation, *, since: str, as_json: bool) -> None:
    """What it costs now, and what each hour cost and bought. Starts nothing."""
    report, snapshot = asyncio.run(_read(invocation.paths, since_seconds(since)))
    if as_json:
        print_json(report)
        return
    print_lines(invocation, lines(report, snapshot, min(terminal_width(), WIDEST)))


async def _read(paths: Paths, since_s: float) -> tuple[SpendingReport, Snapshot]:
    async with await connect(paths) as client:
        return await client.spending(since_s), await client.snapshot()


def lines(report: SpendingReport, snapshot: Snapshot, width: int) -> list[Line]:
    """The costs as the console draws them."""
    return [
        *panel.cost_facts(snapshot, report, width),
        (),
        *panel.hours_heading(report, width),
        *panel.hours(report, "", width, snapshot.at),
    ]
