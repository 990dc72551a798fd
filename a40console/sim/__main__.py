"""Runs the simulated engine: `python -m a40console.sim serve MODEL [vLLM's flags] [--fault …]`."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from a40console.sim import refused, starting
from a40console.sim.app import Surface, read_token, wall_clock
from a40console.sim.core import Core
from a40console.sim.day import days
from a40console.sim.driver import Driver
from a40console.sim.output import Output
from a40console.sim.rehearsal import ManualClock
from a40console.sim.settings import Settings, parse

BACKLOG = 512
REHEARSED_DAYS = 24
ABORT_S = 0.6
"""VLLM takes 0.6 s to 2.4 s to abort what runs and to end."""

SHUTDOWN_BEGINS = ("launcher.py:254", "[shutdown] API server: shutdown triggered")
SHUTDOWN_ENDS = ("core_client.py:777", "[shutdown] MPClient: complete")
_ENDING = (signal.SIGTERM, signal.SIGINT)
ENGINE_DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."


def main(arguments: list[str]) -> int:
    """Start as vLLM does, serve until a signal, and go wrong where that was asked for."""
    settings = parse(arguments)
    out = Output(rehearsed=settings.manual)
    door = _bind(settings)
    _on_signals(settings, out)
    if settings.faults.has("orphan"):
        _leave_behind()
    _start(settings, out)
    door.listen(BACKLOG)
    asyncio.run(_serve(settings, out, door))
    return 0


def _bind(settings: Settings) -> socket.socket:
    """Bound before the weights are read, as vLLM does: clients are refused until it serves."""
    try:
        if settings.socket_path is not None:
            door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            settings.socket_path.unlink(missing_ok=True)
            os.umask(0o077)
            door.bind(str(settings.socket_path))
        else:
            door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((settings.host, settings.port))
    except OSError as error:
        sys.exit(f"OSError: [Errno {error.errno}] {error.strerror}")
    return door


def _start(settings: Settings, out: Output) -> None:
    """The phases of a start; a fault may end or hold any of them. A rehearsal waits for none."""
    faults, phase = settings.faults, ""
    wait_until = (lambda at_s: None) if settings.manual else _until
    began_s = time.monotonic()
    for line in starting.lines(settings):
        if line.phase != phase:
            if phase:
                wait_until(began_s + starting.phase_s(settings, phase))
            phase, began_s = line.phase, time.monotonic()
        wait_until(began_s + line.after_s)
        _refuse_long_context(settings, line, out)
        out.line(line)
        if (words := refused.refusal(settings, line, os.environ)) is not None:
            out.bare(f"Traceback (most recent call last):\n{words}")
            os._exit(1)
        if faults.has("crash", phase):
            out.crash(phase)
            os._exit(1)
        if phase == "starting" and faults.has("nccl") and not _without_peer_to_peer():
            out.say("Worker", "pynccl.py:111", "vLLM is using nccl==2.28.9")
            _hold(out)
        if faults.has("stall", phase):
            _hold(out)
    wait_until(began_s + starting.phase_s(settings, phase))


def _without_peer_to_peer() -> bool:
    return os.environ.get("NCCL_P2P_DISABLE") == "1"


def _refuse_long_context(settings: Settings, line: starting.Line, out: Output) -> None:
    """As vLLM does once it knows how much memory is left for the cache."""
    measured = line.place.startswith("kv_cache_utils")
    if measured and (words := refused.cache_too_small(settings)) is not None:
        out.fail(words)
        os._exit(1)


def _until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))


def _hold(out: Output) -> None:
    """Wait for ever, in the words of an API server whose core does not come."""
    while True:
        out.say("APIServer", "utils.py:600", "Waiting for 1 core engine proc(s) to start.")
        time.sleep(1.0)


def _on_signals(settings: Settings, out: Output) -> None:
    """How it ends while it starts."""

    def end(number: int, frame: FrameType | None) -> None:
        if settings.faults.has("ignore_term"):
            return
        out.say("APIServer", *SHUTDOWN_BEGINS)
        time.sleep(settings.faults.number("slow_stop", 0.0))
        _exit(out)

    for number in _ENDING:
        signal.signal(number, end)


def _exit(out: Output) -> None:
    out.say("APIServer", *SHUTDOWN_ENDS)
    os._exit(0)


class _Shutdown:
    """How it ends once it serves: as vLLM without a time to drain, which aborts what runs."""

    def __init__(self, settings: Settings, out: Output, driver: Driver, server: _Server) -> None:
        self._settings = settings
        self._out = out
        self._driver = driver
        self._server = server
        self._ending: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """What a signal does."""
        if self._ending is None and not self._settings.faults.has("ignore_term"):
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        self._out.say("APIServer", *SHUTDOWN_BEGINS)
        self._server.should_exit = True
        aborted_s = ABORT_S / self._settings.options.speed if self._driver.end() else 0.0
        await asyncio.sleep(aborted_s + self._settings.faults.number("slow_stop", 0.0))
        _exit(self._out)


def _leave_behind() -> None:
    """A process that outlives us and ignores SIGTERM, as a busy core does."""
    if os.fork():
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        time.sleep(60)


async def _serve(settings: Settings, out: Output, door: socket.socket) -> None:
    core = Core(settings.sheet, settings.options)
    clock, to_unix_s = wall_clock()
    manual: ManualClock | None = None
    if settings.manual:
        clock = manual = ManualClock(settings, core, days(REHEARSED_DAYS))
        to_unix_s = manual.unix_s
    driver = Driver(core, clock)
    surface = Surface(
        settings,
        driver,
        to_unix_s=to_unix_s,
        clock=manual,
        token=read_token(),
        boot="rehearsal" if manual else secrets.token_hex(8),
    )
    server = _Server(_config(surface))
    shutdown, loop = _Shutdown(settings, out, driver, server), asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, shutdown.begin)
    tasks = [asyncio.create_task(server.serve(sockets=[door]))]
    if manual is None:
        tasks += [
            asyncio.create_task(driver.run()),
            asyncio.create_task(out.statistics(core, driver.now_s)),
            asyncio.create_task(_crash_later(settings, out)),
        ]
    out.bare("INFO:     Application startup complete.")
    await asyncio.gather(*tasks)


async def _crash_later(settings: Settings, out: Output) -> None:
    """An engine core that dies while it serves; vLLM then ends with code 0."""
    with suppress(ValueError):
        await asyncio.sleep(float(settings.faults.asked.get("crash", "never")))
        out.say("APIServer", "async_llm.py:943", "AsyncLLM output_handler failed.", "ERROR")
        out.say("APIServer", "async_llm.py:943", ENGINE_DEAD, "ERROR")
        os._exit(0)


class _Server(uvicorn.Server):
    """A server that leaves the signals alone: by itself it would wait for what runs."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Ours are in place."""
        yield


def _config(surface: Surface) -> uvicorn.Config:
    from a40console.sim.app import SERVER

    return uvicorn.Config(
        surface.app(),
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        headers=[("server", SERVER)],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
