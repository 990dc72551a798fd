"""`a40console watch`: the status again with each snapshot, until interrupted."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import aclosing

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import (
    echo_text,
    note,
    print_json,
    rendered,
    stderr_is_terminal,
    stdout_is_terminal,
)
from a40console.commands.running import connect
from a40console.commands.status import status_text
from a40console.commands.verdict import one_line
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths
from a40console.tui.abilities import cannot_draw, multiplexer
from a40console.tui.alarms import Alarms, sequence


@click.command()
@click.option("--count", type=click.IntRange(min=1), help="End after this many snapshots.")
@click.option(
    "--alarm", is_flag=True, help="Ring for errors, and for an engine that ends or hangs."
)
@json_option
@click.pass_obj
def command(invocation: Invocation, *, count: int | None, alarm: bool, as_json: bool) -> None:
    """Status as it changes: refreshed on a terminal, else a line a second. Starts nothing."""
    asyncio.run(_watch(invocation, count, alarm, as_json))


async def _watch(invocation: Invocation, count: int | None, alarm: bool, as_json: bool) -> None:
    snapshots = _snapshots(invocation.paths)
    if alarm:
        snapshots = _ringing(invocation, snapshots)
    await show_all(invocation, snapshots, count=count, as_json=as_json)


async def _ringing(
    invocation: Invocation, snapshots: AsyncGenerator[Snapshot]
) -> AsyncGenerator[Snapshot]:
    """The snapshots, with an alarm on standard error for what is grave and new in one.

    On a terminal as the settings say (a bell where they have it off: it was asked for), elsewhere
    as a line.
    """
    alarms = Alarms()
    way = invocation.noted_settings().console.alarms
    async with aclosing(snapshots):
        async for snapshot in snapshots:
            if text := alarms.observe(snapshot):
                if stderr_is_terminal():
                    rung = sequence(text, "bell" if way == "off" else way, multiplexer(os.environ))
                    click.echo(rung, err=True, nl=False, color=True)
                else:
                    note(f"ALARM {snapshot.at}   {text}")
            yield snapshot


async def _snapshots(paths: Paths) -> AsyncGenerator[Snapshot]:
    async with await connect(paths) as client:
        async for snapshot in client.snapshots():
            yield snapshot


async def show_all(
    invocation: Invocation,
    snapshots: AsyncGenerator[Snapshot],
    *,
    count: int | None,
    as_json: bool,
) -> None:
    """Show snapshots as they come, `count` of them or until they end."""
    view = _View(invocation)
    numbers = itertools.count(1)
    async with aclosing(snapshots):
        async for snapshot in snapshots:
            if as_json:
                print_json(snapshot, one_line=True)
            else:
                view.show(snapshot)
            if next(numbers) == count:
                return


class _View:
    """Draws over its last frame on a terminal; elsewhere one line a snapshot."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._drawn_lines = 0

    def show(self, snapshot: Snapshot) -> None:
        if not stdout_is_terminal() or cannot_draw(os.environ):
            echo_text(self._invocation, f"{snapshot.at}   {one_line(snapshot)}")
            return
        lines = rendered(self._invocation, *status_text(snapshot)).splitlines(keepends=True)
        # A frame taller than the screen would scroll, and its first line could not be reached.
        frame = "".join(lines[: shutil.get_terminal_size().lines - 1])
        # Up to the first line of the last frame, then clear to the end (ECMA-48: CPL, ED).
        back = f"\x1b[{self._drawn_lines}F\x1b[J" if self._drawn_lines else ""
        click.echo(back + frame, nl=False, color=True)
        self._drawn_lines = frame.count("\n")
