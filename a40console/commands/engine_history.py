"""`a40console engine history`: every start that is still known, how long it took, how it ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_rich, printable
from a40console.commands.running import connect
from a40console.model.control import EngineStart
from a40console.model.engine import EngineEnd
from a40console.model.figures import Missing
from a40console.paths import Paths
from a40console.tui.format import DASH, duration, latency, shown
from a40console.tui.panels.moments import second_of

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_STARTS = 100


@click.command()
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MOST_STARTS),
    default=20,
    show_default=True,
    help="How many, the newest.",
)
@json_option
@click.pass_obj
def history(invocation: Invocation, *, limit: int, as_json: bool) -> None:
    """Every engine start that is known, newest first: phases, readiness, end."""
    starts = asyncio.run(_read(invocation.paths, limit))
    if as_json:
        print_json({"starts": starts})
    elif not starts:
        click.echo("No engine was started here yet.")
    else:
        for start in starts:
            print_rich(invocation, *_lines(start))


async def _read(paths: Paths, limit: int) -> tuple[EngineStart, ...]:
    async with await connect(paths) as client:
        return await client.starts(limit)


def _lines(start: EngineStart) -> list[RenderableType]:
    from rich.text import Text

    ready = shown(start.ready_after_s, latency)
    name = f"SIMULATED {start.profile}" if start.simulated else start.profile
    first = f"{second_of(start.started_at)}  {name}  ready after {ready}"
    served = f"served {shown(start.served_s, duration)}"
    end = "runs" if isinstance(start.end, Missing) else _end(start)
    phases = DASH
    if not isinstance(start.phases, Missing):
        phases = "  ".join(f"{phase.name} {latency(phase.seconds)}" for phase in start.phases)
    second = f"  {phases}   argv {start.argv_digest}   {start.id}"
    return [Text(printable(f"{first}   {served}   {end}")), Text(printable(second), style="dim")]


def _end(start: EngineStart) -> str:
    end = start.end
    if isinstance(end, Missing):
        return ""
    at = start.ended_at if isinstance(start.ended_at, Missing) else second_of(start.ended_at)
    when = at.reason if isinstance(at, Missing) else f"ended {at}"
    how = _how(end)
    return f"{when}: {end.cause}" if how in end.cause else f"{when}: {end.cause} ({how})"


def _how(end: EngineEnd) -> str:
    if not isinstance(end.signal, Missing):
        return end.signal
    return end.code.reason if isinstance(end.code, Missing) else f"code {end.code}"
