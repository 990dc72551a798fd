"""The service's worker process: inherits the bound sockets, runs until told to stop.

Started by the supervisor as `python -m a40console.service.worker ORDERS`.
"""

from __future__ import annotations

from a40console import spared_imports

spared_imports.spare_unused()
spared_imports.import_aiohttp_without_tls()

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import uvicorn
import uvloop
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from a40console.config import Settings
from a40console.gateway.heads import LimitedHeads
from a40console.log import log_to_file
from a40console.model.codec import decode
from a40console.paths import Paths, locate
from a40console.service.daemon import Daemon
from a40console.service.demo_owner import Demo, end_unrecorded, goes_on
from a40console.service.run_process import end_runs
from a40console.service.supervisor import remove_socket

DATE_PERIOD_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Orders:
    """What the parent asks of a worker."""

    control: socket.socket
    gateway: socket.socket
    profile: str | None
    engine: bool
    settings: Settings
    demo: Demo | None
    """None where it is none."""

    failures: int
    """How many workers before us ended by themselves, in a row."""


class QuietServer(uvicorn.Server):
    """A uvicorn server that leaves signals alone, two of them share this process, and that sleeps.

    The original looks ten times a second whether it should end.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Close the door and let requests under way finish."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        """Keep the date that answers carry, until the end."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_PERIOD_S):
                    await self._ended.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the worker."""
        yield


def main(arguments: list[str]) -> int:
    """Run until told to stop; 0 then. What ends it otherwise is in the log."""
    os.umask(0o077)  # whatever is written here is this user's alone
    paths = locate()
    log_to_file(paths.service_log)
    try:
        return _work(paths, _read_orders(arguments))
    except Exception:
        log.critical("the worker ends by a bug of ours", exc_info=True)
        return 1


def _work(paths: Paths, orders: Orders) -> int:
    demo = orders.demo
    if orders.failures and demo is not None and not goes_on(paths.home, demo.owner):
        end_runs(paths.runs)
        end_unrecorded(paths.engine_runs)
        return 0
    daemon = Daemon(
        paths,
        orders.settings,
        gateway_socket=orders.gateway,
        demo=demo,
        failures=orders.failures,
    )
    # What is here now stays. Counted among what must be looked through, it would put off every full
    # collection until megabytes of garbage have gathered.
    gc.collect()
    gc.freeze()
    uvloop.run(_serve(daemon, orders))
    remove_socket(str(paths.control_socket))  # its supervisor may be gone
    return 0


def _read_orders(arguments: list[str]) -> Orders:
    data = json.loads(arguments[0])
    control_fd, gateway_fd, lock_fd = data["fds"]
    demo = data.get("demo")  # a parent from before an upgrade does not tell
    os.set_inheritable(lock_fd, False)  # engines must not hold the lock after us
    return Orders(
        control=socket.socket(fileno=control_fd),
        gateway=socket.socket(fileno=gateway_fd),
        profile=data["profile"],
        engine=data["engine"],
        settings=decode(Settings, data["settings"]),
        demo=None if demo is None else decode(Demo, demo),
        failures=_failures(arguments[1:]),
    )


def _failures(again: list[str]) -> int:
    """The number after `--again`; a supervisor from before an upgrade says no number."""
    return 0 if not again else int(again[1]) if len(again) > 1 else 1


async def _serve(daemon: Daemon, orders: Orders) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stopping.set)
    servers = [_server(daemon.control_app), _server(daemon.gateway_app, http=LimitedHeads)]
    async with daemon.running(profile=orders.profile, engine=orders.engine):
        serving = [
            asyncio.create_task(server.serve(sockets=[door]))
            for server, door in zip(servers, (orders.control, orders.gateway), strict=True)
        ]
        stop = asyncio.create_task(daemon.stopping.wait())
        await asyncio.wait([*serving, stop], return_when=asyncio.FIRST_COMPLETED)
        daemon.end_streams()
        for server in servers:
            server.end()
        await asyncio.gather(*serving)
        stop.cancel()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what a callback raised, apart from one false alarm.

    anyio waits for a Unix socket with a future that the loop itself fulfils: where the wait is
    cancelled as the socket becomes ready, the loop finds it ended, and nothing is lost.
    """
    ended = isinstance(context.get("exception"), asyncio.InvalidStateError)
    if not (ended and "Future.set_result" in str(context.get("handle"))):
        loop.default_exception_handler(context)


def _server(app: Starlette, *, http: type[HttpToolsProtocol] = HttpToolsProtocol) -> QuietServer:
    return QuietServer(
        uvicorn.Config(
            app,
            http=http,
            ws="none",
            loop="none",
            lifespan="auto",
            access_log=False,
            log_config=None,
            log_level="warning",  # that they start and end each of the two would say
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
