"""The console's end, or its terminal's, is its own: nothing behind it notices."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import httpx
import psutil
import pytest

from tests.live.console import Console
from tests.live.open_consoles import gone, in_tmux, is_whole, serve_tiny, two_profiles
from tests.live.streams import WORDS, chat
from tests.live.terminal import Tmux

pytestmark = [
    pytest.mark.engine,
    pytest.mark.pty,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.fixture(scope="module")
def live(model_file: Path) -> Iterator[Console]:
    """A console of its own for these tests."""
    with two_profiles(model_file) as made:
        yield made


def drawn_steps(screen: str) -> int:
    """How many columns of the speed chart have a bar; each is about 25 s at 120×40."""
    lines = screen.splitlines()
    top = next(y for y, line in enumerate(lines) if "─ Speed" in line)
    axis = next(y for y, line in enumerate(lines) if y > top and "┼" in line)
    right = lines[top].find("─ Engine")
    cells = [cell for line in lines[top + 1 : axis] for cell in enumerate(line[:right])]
    return len({x for x, char in cells if "▁" <= char <= "█"})


def shows_four(screen: str) -> bool:
    """Whether it is whole, counts four requests and has a row for each."""
    rows = sum(" decode " in line for line in screen.splitlines())
    return is_whole(screen) and "4 decoding" in screen and rows == 4


@contextmanager
def four_clients(live: Console) -> Iterator[list[str]]:
    """Four clients that stream through the gateway meanwhile; what went wrong with any of them."""
    gateway, enough, troubles = live.gateway, Event(), list[str]()

    async def stream(number: int) -> None:
        while not troubles:
            try:
                answer = await chat(gateway, WORDS.format(number), max_tokens=1900)
            except httpx.HTTPError as error:
                troubles.append(repr(error))
            else:
                troubles.extend(filter(None, [answer.error]))

    async def run() -> None:
        tasks = [asyncio.create_task(stream(number)) for number in range(4)]
        await asyncio.to_thread(enough.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        live.wait_for(lambda: decoding(live) == 4, 60)
        yield troubles
    finally:
        enough.set()
        thread.join()
        live.wait_for(lambda: decoding(live) == 0, 20)


def decoding(live: Console) -> int:
    """Requests that get tokens now."""
    slots = live.status()["slots"]
    return sum(slot["phase"] == "decode" for slot in slots) if isinstance(slots, list) else 0


def generated(live: Console) -> int:
    """Tokens that the running requests have got so far."""
    return sum(slot["generated_tokens"] for slot in live.status()["slots"])


def kill(terminal: Tmux) -> None:
    os.kill(terminal.pane_pid, signal.SIGKILL)


def hang_up(terminal: Tmux) -> None:
    terminal.close()


@pytest.mark.parametrize("end", [kill, hang_up])
def test_the_consoles_end_is_its_own(live: Console, end: Callable[[Tmux], None]) -> None:
    """Killed, or its terminal closed by a dropped SSH: the clients' streams never notice."""
    with in_tmux(live) as first:
        first.wait_for("SERVING", 60)
        serve_tiny(live)
        with four_clients(live) as troubles:
            screen = first.wait_for(
                lambda screen: shows_four(screen) and drawn_steps(screen) > 1, 60
            )
            seen = drawn_steps(screen)
            before, so_far = live.status(), generated(live)
            tui = psutil.Process(first.pane_pid)
            end(first)
            live.wait_for(lambda: gone(tui), 3)
            live.wait_for(lambda: generated(live) != so_far, 10)
            with in_tmux(live) as second:
                second.wait_for(shows_four, 30)
                second.wait_for(lambda screen: drawn_steps(screen) >= seen - 1, 5)
            after = live.status()
            assert not troubles
    assert after["service"]["pid"] == before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]


def test_a_stalled_terminal_stops_nothing_and_catches_up(live: Console) -> None:
    """As with Ctrl-S or a laptop asleep: nobody reads what the console writes."""
    with in_tmux(live) as terminal:
        terminal.wait_for("SERVING", 60)
        serve_tiny(live)
        with four_clients(live) as troubles:
            terminal.wait_for(shows_four)
            tui = psutil.Process(terminal.pane_pid)
            with terminal.stalled():
                live.wait_for(lambda: writes_nothing(tui), 40)
                time.sleep(10)  # 40 frames: more than Textual's driver can queue
                turns, so_far = tui.num_ctx_switches().voluntary, generated(live)
                time.sleep(4)
                # The main thread went on to wait for something: the event loop is not blocked.
                assert tui.num_ctx_switches().voluntary - turns >= 4
                assert generated(live) != so_far
            resumed = datetime.now().astimezone().replace(microsecond=0)
            terminal.wait_for(lambda screen: shown_at(screen) >= resumed and shows_four(screen), 3)
            assert not troubles


def writes_nothing(process: psutil.Process) -> bool:
    """Whether a process got no byte written for two seconds."""
    before = process.io_counters().write_chars
    time.sleep(2)
    return bool(process.io_counters().write_chars == before)


def shown_at(screen: str) -> datetime:
    """When the figures on the screen were taken, to the second, at most half a day ago."""
    found = re.search(r"live (\d\d):(\d\d):(\d\d)", screen)
    now = datetime.now().astimezone()
    if found is None:
        return now - timedelta(days=1)
    hour, minute, second = map(int, found.groups())
    at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return at - timedelta(days=1) if at > now + timedelta(hours=12) else at
