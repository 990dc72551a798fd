"""`a40console --plain`: the console in sentences, for screen readers, braille lines and pipes.

Lines are only ever added, one sentence each, and only what changed is told. The commands are those
of the table, typed as words.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

import click

from a40console.commands.invocation import Invocation
from a40console.commands.output import printable, stdout_is_terminal
from a40console.commands.plain_acts import Acts, Desk
from a40console.commands.plain_words import understand
from a40console.commands.running import ensure_service
from a40console.commands.sentences import DETAILS, changes, finding_sentence, report, sentence
from a40console.config import Settings
from a40console.errors import ConsoleError
from a40console.model.control import Trouble
from a40console.model.snapshot import Snapshot
from a40console.service.client import ServiceClient
from a40console.tui import keymap
from a40console.tui.alarms import Alarms
from a40console.tui.demo_home import is_demo
from a40console.tui.glyphs import to_ascii

Say = Callable[[str], None]

LIMIT_REST_S = 5.0
"""What limits the speed is told at most so often: it may waver between two causes."""

_LEFT = "Left. Service and engine keep running."
_DEMO_LEFT = "Left. The demo ends, and nothing was paid: its engine was SIMULATED."
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 5.0


def run_plain(invocation: Invocation) -> int:
    """Tell and obey until the input ends or `quit`; the exit code."""
    settings = invocation.noted_settings()
    in_ascii = invocation.draws_ascii(is_terminal=stdout_is_terminal())

    def say(text: str) -> None:
        text = printable(text)
        click.echo(to_ascii(text) if in_ascii else text)
        sys.stdout.flush()

    return asyncio.run(_run(invocation, settings, say))


async def _run(invocation: Invocation, settings: Settings, say: Say) -> int:
    async with await ensure_service(invocation.paths) as client:
        remote = invocation.paths.remote
        talk = Talk(client, settings, say, demo=is_demo(invocation.paths), remote=remote)
        talk.forbid(invocation.paths.forbidden)
        return await talk.run(_lines())


async def _lines() -> AsyncIterator[str]:
    """Lines of the input as they are typed; read in a thread, which a terminal may block."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with suppress(RuntimeError, ValueError, OSError):  # the loop or the input is closed
            for line in sys.stdin:
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="input", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


class Talk:
    """One conversation: follows the service, tells what changed, does what is typed."""

    def __init__(
        self,
        client: ServiceClient,
        settings: Settings,
        say: Say,
        *,
        demo: bool = False,
        remote: str = "",
    ) -> None:
        self._client = client
        self._where = f", of {remote}" if remote else ""
        """The machine at the other end of a link: nobody should stop the wrong engine."""

        self._farewell = _DEMO_LEFT if demo else _LEFT
        self._just_told: Snapshot | None = None
        """What the report at the beginning told, until the first line was obeyed."""

        self._keys = keymap.resolve(settings.keys)
        self._say = say
        self._alarms = Alarms()
        self._rings = settings.console.alarms != "off" and stdout_is_terminal()
        self._desk = Desk(self._keys)
        self._acts = Acts(client, self._desk, say, remote=remote)
        self._told: Snapshot | None = None
        self._last: list[str] = []
        self._known = asyncio.Event()
        self._limit_told_s = 0.0

    def forbid(self, who: str) -> None:
        """Do nothing that acts, because `who` forbade it; nobody where it is empty."""
        self._desk.forbidden = who

    async def run(self, lines: AsyncIterator[str]) -> int:
        """Until the lines end or one of them says so."""
        for problem in self._keys.problems:
            self._say(f"Settings: {problem}.")
        self._say(f"a40console in sentences{self._where}. Type help for the words, quit to leave.")
        following = asyncio.create_task(self._follow())
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._known.wait(), _LONGEST_WAIT_S)
            async for line in lines:
                if line.strip() and await self._obey(line):
                    return 0
            await self._acts.finished()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        return 0

    async def _follow(self) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                async with aclosing(self._client.snapshots()) as snapshots:
                    async for snapshot in snapshots:
                        wait_s = _FIRST_WAIT_S
                        self._take(snapshot)
            except ConsoleError as error:
                self._lose(error.trouble)
            await asyncio.sleep(wait_s)
            wait_s = min(_LONGEST_WAIT_S, wait_s * 2)

    def _lose(self, trouble: Trouble) -> None:
        if self._desk.lost is None:
            self._announce([sentence(f"Lost the service: {trouble.message}")])
        self._desk.lost = trouble
        self._known.set()

    def _take(self, snapshot: Snapshot) -> None:
        before, self._desk.snapshot = self._told, snapshot
        if before is None:
            self._announce(report(snapshot))
            self._just_told = snapshot
        elif self._desk.lost is not None:
            self._announce(["The service answers again.", *report(snapshot)])
        else:
            now_s = asyncio.get_running_loop().time()
            lines = changes(before, snapshot, self._desk.detail)
            if before.limit.cause != snapshot.limit.cause:
                lines = self._limit_in_time(lines, now_s)
            self._announce(lines)
        self._desk.lost = None
        self._told = snapshot
        self._known.set()
        self._alarms.muted = self._desk.muted
        if (text := self._alarms.observe(snapshot)) and self._rings:
            self._ring(text)

    def _ring(self, text: str) -> None:
        click.echo("\a", nl=False, color=True)
        self._say(f"Alarm: {sentence(text)}")

    def _limit_in_time(self, lines: list[str], now_s: float) -> list[str]:
        """Without the limit where it was told a moment ago."""
        if now_s - self._limit_told_s < LIMIT_REST_S:
            return [line for line in lines if not line.startswith("Limit: ")]
        self._limit_told_s = now_s
        return lines

    def _announce(self, lines: list[str]) -> None:
        if lines:
            self._last = lines
        for line in lines:
            self._say(line)

    async def _obey(self, line: str) -> bool:
        """Do what a line asks; answers whether it ends the conversation."""
        if self._acts.takes_answer:
            self._acts.answer(line.strip())
            return False
        told, self._just_told = self._just_told, None
        meaning = understand(line, self._keys)
        if meaning.own == "status" and told is not None and told is self._desk.snapshot:
            return False  # the very report that stands above
        if meaning.problem:
            self._say(meaning.problem)
        elif meaning.command is not None:
            await self._acts.perform(meaning.command, meaning.argument)
        else:
            return await self._own(meaning.own, meaning.argument)
        return False

    async def _own(self, word: str, argument: str) -> bool:
        words: dict[str, Callable[[str], Awaitable[None] | None]] = {
            "status": lambda rest: self._tell(report),
            "findings": lambda rest: self._tell(_findings),
            "say": self._set_detail,
            "again": lambda rest: self._announce(self._last),
            "help": lambda rest: self._acts.help(),
        }
        if word == "quit":
            self._say(self._farewell)
            return True
        words[word](argument)
        return False

    def _tell(self, about: Callable[[Snapshot], list[str]]) -> None:
        snapshot = self._desk.snapshot
        if snapshot is None or self._desk.lost is not None:
            self._say("No service answers.")
            return
        for line in about(snapshot):
            self._say(line)

    def _set_detail(self, argument: str) -> None:
        chosen = next((detail for detail in DETAILS if detail == argument.lower()), None)
        if chosen is None:
            self._say(f"Say {', '.join(DETAILS)}; now it is {self._desk.detail}.")
            return
        self._desk.detail = chosen
        self._say(f"Telling: {chosen}.")


def _findings(snapshot: Snapshot) -> list[str]:
    return [finding_sentence(found) for found in snapshot.findings] or ["Nothing wrong found."]
