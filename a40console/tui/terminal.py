"""When the terminal goes away, stalls or is told to end: always out, always restored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition
from textual.message import Message

WRITES_A_FRAME = 3
"""A frame is queued as the start of a synchronised update, its text, and the end."""

BACKLOG_LIMIT = 2 * WRITES_A_FRAME
"""Beyond two waiting frames a tick paints nothing: the terminal does not keep up."""

_FULL = 24
"""Below the 30 writes at which the driver's queue would block the event loop."""

HEARTBEAT_LIMIT_S = 30.0
LEAVE_LIMIT_S = 5.0
_LOOK_EVERY_S = 0.5
GONE = 128 + signal.SIGHUP


_ASK = "\x1b[6n"
"""Where is the cursor? (ECMA-48 DSR.) Every terminal answers it, in the order of what it reads."""

_ANSWER_LIMIT_S = 0.5


class TerminalAnswered(Message):
    """The terminal has taken in all that was written before the question."""


class PatientDriver(LinuxDriver):
    """A driver that drops frames where Textual's would block: a stalled reader stops nothing.

    Dropped output leaves the screen torn, so `torn` asks for a full repaint once there is room.
    """

    torn = False

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._answers = False
        self._answered = threading.Event()
        self._answered.set()

    def ask(self) -> bool:
        """Have the terminal say when it has come to here; answers whether it was asked."""
        if queued_writes(self) >= _FULL:
            return False
        self._answered.clear()
        self.write(_ASK)
        return True

    def process_message(self, message: Message) -> None:
        """Take the terminal's answer out of what was typed; runs in the input thread."""
        if isinstance(message, CursorPosition):
            self._answers = True
            self._answered.set()
            message = TerminalAnswered()
        super().process_message(message)

    def stop_application_mode(self) -> None:
        """Restore the terminal, after an answer that is still under way: a shell would type it."""
        if self._answers:
            self._answered.wait(_ANSWER_LIMIT_S)
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Queue output, or drop it while the terminal does not take any."""
        if queued_writes(self) >= _FULL:
            self.torn = True
            return
        super().write(data)


def driver_of(app: App[Any]) -> Driver | None:
    """The application's driver; Textual gives no public way to it."""
    return app._driver  # noqa: SLF001


def queued_writes(driver: object) -> int:
    """Writes that wait for the terminal; 0 where the driver has no queue."""
    queue = getattr(getattr(driver, "_writer_thread", None), "_queue", None)
    return queue.qsize() if queue is not None else 0


def output_backlog(app: App[Any]) -> int:
    """Writes that wait for the application's terminal."""
    return queued_writes(driver_of(app))


def repaint_if_torn(app: App[Any]) -> None:
    """Paint everything again after output was dropped."""
    driver = driver_of(app)
    if isinstance(driver, PatientDriver) and driver.torn and not queued_writes(driver):
        driver.torn = False
        app.refresh(layout=True)


def leave_on_signals(leave: Callable[[int], None]) -> None:
    """Call `leave(128 + n)` from the running loop for every signal that asks a program to end.

    Textual installs no handler: any of them would end the process with the terminal in
    alternate-screen and mouse mode. Keys send none of them while the console has the terminal.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        loop.add_signal_handler(number, leave, 128 + number)


class Watchdog:
    """Ends the process when its terminal is gone and the event loop cannot.

    Runs in a thread of its own. A terminal that hangs up leaves Textual's input thread spinning
    on end-of-file and may leave the loop blocked on output; nothing inside the loop can help then.
    """

    def __init__(
        self,
        *,
        terminal_fd: int = 0,
        clock: Callable[[], float] = time.monotonic,
        end: Callable[[int], None] = os._exit,
    ) -> None:
        self._leave: Callable[[int], None] = lambda code: None
        self._fd = terminal_fd
        self._clock = clock
        self._end = end
        self._beat_s = clock()
        self._leaving_s: float | None = None
        self._code = GONE
        self._stop = threading.Event()

    def start(self, leave: Callable[[int], None]) -> None:
        """Begin to watch from inside the running loop, in which `leave` will be called."""
        loop = asyncio.get_running_loop()

        def ask(code: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(leave, code)

        self._leave = ask
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """The application has ended in order."""
        self._stop.set()

    def beat(self) -> None:
        """The event loop is alive."""
        self._beat_s = self._clock()

    def leaving(self, code: int) -> None:
        """The application was told to end; it has a few seconds for it."""
        if self._leaving_s is None:
            self._leaving_s, self._code = self._clock(), code

    def look(self) -> None:
        """One look at the terminal, the heartbeat and the time since the end was asked for."""
        now_s = self._clock()
        if self._leaving_s is not None and now_s - self._leaving_s > LEAVE_LIMIT_S:
            self._end(self._code)
        if not terminal_gone(self._fd):
            return
        if now_s - self._beat_s > HEARTBEAT_LIMIT_S:
            self._end(GONE)
        if self._leaving_s is None:
            self.leaving(GONE)
            self._leave(GONE)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            self.look()


def terminal_gone(fd: int) -> bool:
    """Whether the terminal on this descriptor has hung up or is closed."""
    poll = select.poll()
    poll.register(fd, 0)
    try:
        return any(
            state & (select.POLLHUP | select.POLLNVAL | select.POLLERR) for _, state in poll.poll(0)
        )
    except OSError:
        return True
