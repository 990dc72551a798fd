"""`a40console engine logs`: the engine's output, its end or as it is written."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, printable
from a40console.commands.running import connect
from a40console.errors import NotServingError
from a40console.model.control import LogChunk
from a40console.paths import Paths
from a40console.service.client import ServiceClient

FIRST_READ_BYTES = 64 * 1024
LAST_READ_BYTES = 16 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
FOLLOW_PERIOD_S = 0.5


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many of the last lines.",
)
@json_option
@click.pass_obj
def logs(invocation: Invocation, *, follow: bool, lines: int, as_json: bool) -> None:
    """Show the engine's output."""
    asyncio.run(_show(invocation.paths, follow=follow, line_count=lines, as_json=as_json))


async def _show(paths: Paths, *, follow: bool, line_count: int, as_json: bool) -> None:
    async with await connect(paths) as client:
        chunk = await read_last_lines(client, line_count)
        if chunk.path is None:
            raise NotServingError(
                "No engine has written anything",
                evidence="None has been started here.",
                remedy="Start one with: a40console engine start",
            )
        _print(chunk, as_json=as_json)
        while follow:
            await asyncio.sleep(FOLLOW_PERIOD_S)
            chunk = await _next(client, chunk)
            if chunk.text:
                _print(chunk, as_json=as_json)


async def read_last_lines(client: ServiceClient, line_count: int) -> LogChunk:
    """The last lines, read in growing pieces from the end."""
    size = FIRST_READ_BYTES
    while True:
        chunk, is_all = await _read_end(client, size)
        lines = chunk.text.splitlines(keepends=True)
        if not is_all:
            lines = lines[1:]  # it was cut somewhere
        if is_all or len(lines) >= line_count or size >= LAST_READ_BYTES:
            kept = lines[len(lines) - min(line_count, len(lines)) :]
            return LogChunk(path=chunk.path, text="".join(kept), next_offset=chunk.next_offset)
        size *= 8


async def _read_end(client: ServiceClient, size: int) -> tuple[LogChunk, bool]:
    """The last `size` bytes, and whether that is everything."""
    chunk = await client.logs(offset=-size, limit_bytes=size)
    texts = [chunk.text]
    # The service caps one answer.
    while chunk.text:
        offset = chunk.next_offset
        chunk = await client.logs(offset=offset, limit_bytes=CHUNK_BYTES)
        if chunk.next_offset < offset:
            break
        texts.append(chunk.text)
    whole = LogChunk(path=chunk.path, text="".join(texts), next_offset=chunk.next_offset)
    return whole, chunk.next_offset <= size


async def _next(client: ServiceClient, last: LogChunk) -> LogChunk:
    """What was written after the last chunk; from the beginning where another engine began."""
    chunk = await client.logs(offset=last.next_offset, limit_bytes=CHUNK_BYTES)
    if chunk.path == last.path:
        return chunk
    return await client.logs(offset=0, limit_bytes=CHUNK_BYTES)


def _print(chunk: LogChunk, *, as_json: bool) -> None:
    if as_json:
        lines = chunk.text.splitlines()
        print_json({"path": chunk.path, "lines": lines}, one_line=True)
    else:
        # A progress bar returns to the start of its line again and again.
        text = chunk.text.replace("\r\n", "\n").replace("\r", "\n")
        click.echo(printable(text), nl=False)
