"""`a40console engine logs`: the engine's output, its end or as it is written, and its errors."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, printable
from a40console.commands.running import connect
from a40console.errors import NotServingError, UsageError
from a40console.model.control import LogChunk
from a40console.model.engine_log import LogMeaning, LogPassage
from a40console.model.log_line import Level, LevelReader, LogLine
from a40console.paths import Paths
from a40console.pattern import REMEDY, Allowance, Pattern, PatternError, SlowPatternError
from a40console.service.client import ServiceClient

FIRST_READ_BYTES = 64 * 1024
LAST_READ_BYTES = 16 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
FOLLOW_PERIOD_S = 0.5
ALLOWANCE = Allowance(line_s=0.25, pass_s=10.0)
"""What --grep may cost: nobody's keys wait, and the last 16 MiB are 200,000 lines."""

EXPLAINED_AT_ONCE = 64

_LINE_END = re.compile(r"\r\n|\n|\r")
"""A progress bar returns to the start of its line again and again: each time is a line."""

LEVELS = ("debug", "info", "warn", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be shown of an output."""

    lines: int
    follow: bool = False
    minimum: Level = Level.DEBUG
    pattern: Pattern | None = None
    first_error: bool = False
    explain: bool = False
    start: str = ""
    as_json: bool = False

    def takes(self, line: LogLine) -> bool:
        """Whether a line passes level and pattern."""
        return line.level >= self.minimum and (
            self.pattern is None or self.pattern.matches(line.text)
        )


@dataclass(slots=True)
class Block:
    """A line and those that go on from it."""

    lines: list[LogLine]
    before_ready: bool
    meaning: LogMeaning | None = field(default=None)

    @property
    def passage(self) -> LogPassage:
        """What the service is asked about."""
        text = "\n".join(line.text for line in self.lines)
        return LogPassage(text=text, before_ready=self.before_ready)


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many of the last lines, of those that pass --level and --grep.",
)
@click.option(
    "--level", type=click.Choice(LEVELS), default="debug", help="Only lines of it and above."
)
@click.option("--grep", default=None, metavar="RE", help="Only lines that match, in any case.")
@click.option("--first-error", is_flag=True, help="Only the first error, with its traceback.")
@click.option("--explain", is_flag=True, help="Below warnings and errors, what they mean.")
@click.option(
    "--start", default="", metavar="ID", help="Of another start: `engine history` has the ids."
)
@json_option
@click.pass_obj
def logs(invocation: Invocation, /, *, as_json: bool, **options: Any) -> None:
    """Show the engine's output."""
    wanted = Wanted(
        lines=options["lines"],
        follow=options["follow"],
        minimum=Level[options["level"].upper()],
        pattern=_pattern(options["grep"]),
        first_error=options["first_error"],
        explain=options["explain"],
        start=options["start"],
        as_json=as_json,
    )
    try:
        asyncio.run(_show(invocation.paths, wanted))
    except SlowPatternError as error:
        raise UsageError(
            f"--grep takes too long and was dropped: {options['grep']}",
            evidence=str(error),
            remedy=REMEDY,
        ) from error


def _pattern(text: str | None) -> Pattern | None:
    if text is None:
        return None
    try:
        return Pattern(text, ALLOWANCE)
    except PatternError as error:
        raise UsageError(f"--grep is no regular expression: {text}", evidence=str(error)) from error


async def _show(paths: Paths, wanted: Wanted) -> None:
    async with await connect(paths) as client:
        if wanted.first_error:
            await _show_first_error(client, wanted)
            return
        chunk, levels = await _show_last(client, wanted)
        while wanted.follow:
            following, chunk = chunk, await _next(client, chunk, wanted.start)
            if chunk.path != following.path or chunk.next_offset < following.next_offset:
                levels = Lines()
            if chunk.text:
                if wanted.pattern is not None:
                    wanted.pattern.begin_pass()
                await _print(client, wanted, chunk.path, levels.read(chunk.text))
            if len(chunk.text) < CHUNK_BYTES // 2:
                await asyncio.sleep(FOLLOW_PERIOD_S)


class Lines:
    """Makes lines of pieces of an output; one without its end waits for the next piece."""

    def __init__(self) -> None:
        self._levels = LevelReader()
        self._partial = ""

    @property
    def ready_seen(self) -> bool:
        """Whether a line has said that the engine serves."""
        return self._levels.ready_seen

    def read(self, text: str) -> list[tuple[LogLine, bool]]:
        """Lines, each with whether the engine had not yet said that it serves."""
        text = self._partial + text
        held = "\r" if text.endswith("\r") else ""  # its newline may be still to come
        *texts, rest = _LINE_END.split(text.removesuffix(held))
        self._partial = rest + held
        return [(self._levels.read(line), not self.ready_seen) for line in texts]

    def rest(self) -> list[tuple[LogLine, bool]]:
        """A last line without an end."""
        text, self._partial = self._partial, ""
        return [(self._levels.read(text), not self.ready_seen)] if text else []


async def _show_last(client: ServiceClient, wanted: Wanted) -> tuple[LogChunk, Lines]:
    """Print the last lines that are wanted; where the output was read to, and its lines' state."""
    size = FIRST_READ_BYTES
    while True:
        text, end, is_all = await _read_end(client, wanted.start, size)
        lines = Lines()
        read = lines.read(text)
        if not wanted.follow:
            read += lines.rest()
        found = deque((pair for pair in read if wanted.takes(pair[0])), maxlen=wanted.lines or None)
        if is_all or len(found) >= wanted.lines or size >= LAST_READ_BYTES:
            break
        size *= 8
    if end.path is None:
        raise NotServingError(
            "No engine has written anything",
            evidence="None has been started here.",
            remedy="Start one with: a40console engine start",
        )
    if not is_all:
        found = deque(((line, False) for line, _ in found), maxlen=found.maxlen)
        if len(found) < wanted.lines:
            note(f"Only the last {size // 2**20} MiB of the output were searched.")
    await _print(client, wanted, end.path, list(found) if wanted.lines else [])
    return end, lines


async def _read_end(client: ServiceClient, start: str, size: int) -> tuple[str, LogChunk, bool]:
    """The last `size` bytes in whole lines, the last chunk of them, and whether that is all."""
    chunk = await client.logs(offset=-size, limit_bytes=size, start=start)
    texts = [chunk.text]
    while chunk.text:  # the service caps one answer
        offset = chunk.next_offset
        chunk = await client.logs(offset=offset, limit_bytes=CHUNK_BYTES, start=start)
        if chunk.next_offset < offset:
            break
        texts.append(chunk.text)
    text, is_all = "".join(texts), chunk.next_offset <= size
    return text, chunk, is_all


async def _next(client: ServiceClient, last: LogChunk, start: str) -> LogChunk:
    """What was written after the last chunk; from the beginning where another engine began."""
    chunk = await client.logs(offset=last.next_offset, limit_bytes=CHUNK_BYTES, start=start)
    if chunk.path == last.path:
        return chunk
    return await client.logs(offset=0, limit_bytes=CHUNK_BYTES, start=start)


async def _show_first_error(client: ServiceClient, wanted: Wanted) -> None:
    """Print the first error of the whole output with all that belongs to it."""
    found: list[tuple[LogLine, bool]] = []
    async for line, before_ready in _all_lines(client, wanted.start):
        if found and not line.continues:
            break
        if found or (line.level is Level.ERROR and wanted.takes(line)):
            found.append((line, before_ready))
    if not found:
        note("The output holds no such error.")
    chunk = await client.logs(offset=-1, limit_bytes=1, start=wanted.start)
    await _print(client, replace(wanted, pattern=None), chunk.path, found)


async def _all_lines(client: ServiceClient, start: str) -> AsyncIterator[tuple[LogLine, bool]]:
    """Every line of an output, each with whether the engine had not yet said that it serves."""
    lines, offset = Lines(), 0
    while True:
        chunk = await client.logs(offset=offset, limit_bytes=CHUNK_BYTES, start=start)
        ended = not chunk.text or chunk.next_offset < offset
        for pair in lines.rest() if ended else lines.read(chunk.text):
            yield pair
        if ended:
            return
        offset = chunk.next_offset


async def _print(
    client: ServiceClient,
    wanted: Wanted,
    path: str | None,
    read: Sequence[tuple[LogLine, bool]],
) -> None:
    blocks = _blocks([pair for pair in read if wanted.takes(pair[0])])
    if wanted.explain:
        await _explain(client, blocks, wanted.start)
    if wanted.as_json:
        print_json(_document(path, blocks, wanted), one_line=True)
        return
    for block in blocks:
        for line in block.lines:
            click.echo(printable(line.text))
        if block.meaning is not None:
            click.echo(printable(f"    → {block.meaning.cause}\n      {block.meaning.remedy}"))


def _document(path: str | None, blocks: Sequence[Block], wanted: Wanted) -> dict[str, Any]:
    lines = [line for block in blocks for line in block.lines]
    document: dict[str, Any] = {
        "path": path,
        "lines": [line.text for line in lines],
        "levels": [line.level.name.lower() for line in lines],
    }
    if wanted.explain:
        document["explained"] = [
            {
                "lines": [line.text for line in block.lines],
                "cause": block.meaning.cause,
                "remedy": block.meaning.remedy,
                "harmless": block.meaning.harmless,
            }
            for block in blocks
            if block.meaning is not None
        ]
    return document


def _blocks(read: Sequence[tuple[LogLine, bool]]) -> list[Block]:
    blocks: list[Block] = []
    for line, before_ready in read:
        if line.continues and blocks:
            blocks[-1].lines.append(line)
        else:
            blocks.append(Block([line], before_ready))
    return blocks


async def _explain(client: ServiceClient, blocks: Sequence[Block], start: str) -> None:
    """Fill in what warnings and errors mean."""
    asked = [block for block in blocks if block.lines[0].level >= Level.WARN]
    for begin in range(0, len(asked), EXPLAINED_AT_ONCE):
        part = asked[begin : begin + EXPLAINED_AT_ONCE]
        meanings = await client.explain_output([block.passage for block in part], start=start)
        for block, meaning in zip(part, meanings, strict=True):
            block.meaning = meaning
