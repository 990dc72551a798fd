"""`a40console watch`: the status again with each snapshot, until interrupted."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncGenerator
from contextlib import aclosing

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import (
    print_json,
    printable,
    rendered,
    stdout_is_terminal,
)
from a40console.commands.running import connect
from a40console.commands.status import status_text
from a40console.commands.verdict import one_line
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths


@click.command()
@click.option("--count", type=click.IntRange(min=1), help="End after this many snapshots.")
@json_option
@click.pass_obj
def command(invocation: Invocation, *, count: int | None, as_json: bool) -> None:
    """Status as it changes: refreshed on a terminal, else a line a second. Starts nothing."""
    asyncio.run(_watch(invocation, count, as_json))


async def _watch(invocation: Invocation, count: int | None, as_json: bool) -> None:
    await show_all(invocation, _snapshots(invocation.paths), count=count, as_json=as_json)


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
        if not stdout_is_terminal():
            click.echo(printable(f"{snapshot.at}   {one_line(snapshot)}"))
            return
        lines = rendered(self._invocation, *status_text(snapshot)).splitlines(keepends=True)
        # A frame taller than the screen would scroll, and its first line could not be reached.
        frame = "".join(lines[: shutil.get_terminal_size().lines - 1])
        # Up to the first line of the last frame, then clear to the end (ECMA-48: CPL, ED).
        back = f"\x1b[{self._drawn_lines}F\x1b[J" if self._drawn_lines else ""
        click.echo(back + frame, nl=False, color=True)
        self._drawn_lines = frame.count("\n")
