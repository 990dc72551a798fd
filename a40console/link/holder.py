"""Holds a link after the console that opened it is gone, and finds it again after a drop.

Started by `opening` as `python -m a40console.link.holder TARGET CONSOLE...`, in a session of its
own. It asks nobody anything: where a login needs the operator, it says so in its record and ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import psutil

from a40console.errors import ConsoleError
from a40console.link.connection import Connection, gateway_forward
from a40console.link.place import LinkPlace, LinkRecord, State
from a40console.link.ssh import CONNECT_TIMEOUT_S, Forward, Ssh, program_of
from a40console.link.target import parse_target
from a40console.paths import locate

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 15.0
GIVE_UP_S = 24 * 3600.0
"""A machine that was not reached for a day is gone: pods are thrown away."""

LOOK_S = 0.5
"""How often is looked whether the connection stands: on some systems nothing else tells its end."""

_POLL_S = 0.1
_NEEDS_OPERATOR = (
    "Permission denied",
    "Host key verification failed",
    "REMOTE HOST IDENTIFICATION HAS CHANGED",
    "Too many authentication failures",
)

Sleep = Callable[[float], None]


class EndedError(Exception):
    """Somebody asked the holder to end."""


class Holder:
    """One link, from the first connection to its end.

    Args:
        place: Where the link is.
        connection: What carries it.
        record: What the opener knows about it.
        sleep: Waits; a test replaces it.
    """

    def __init__(
        self,
        place: LinkPlace,
        connection: Connection,
        record: LinkRecord,
        *,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._place = place
        self._connection = connection
        self._record = record
        self._sleep = sleep
        self._master: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Hold the link until it is closed, or cannot be had without the operator."""
        try:
            pid = self._connection.master_pid()  # the operator logged in just now
            while pid is not None or (pid := self._find_again()):
                self._say("up")
                while self._stands(pid):
                    self._sleep(LOOK_S)
                self._record = replace(self._record, drops=self._record.drops + 1)
                pid = None
        except EndedError:
            self._connection.end()
            self._say("ended", "it was closed")
        finally:
            self._place.control.unlink(missing_ok=True)

    def _find_again(self) -> int | None:
        """Connect, however long it takes; None where it cannot be without the operator."""
        self._say("down", self._connection.said() or "the connection broke")
        wait_s, lost_s = FIRST_WAIT_S, time.monotonic()
        while time.monotonic() - lost_s < GIVE_UP_S:
            try:
                return self._connect()
            except ConsoleError as error:
                reason = f"{error.message}: {error.evidence}" if error.evidence else error.message
            if any(words in reason for words in _NEEDS_OPERATOR):
                self._say("refused", reason)
                return None
            self._say("down", reason)
            self._sleep(wait_s)
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)
        self._say("ended", "it was not reached for a day")
        return None

    def _connect(self) -> int:
        """One attempt, with its forwards; the process that carries it.

        Raises:
            ConsoleError: If it did not come about, with ssh's own words.
        """
        self._master = master = self._connection.connect()
        deadline_s = time.monotonic() + 2 * CONNECT_TIMEOUT_S
        while self._connection.master_pid() != master.pid:
            if master.poll() is not None or time.monotonic() > deadline_s:
                master.kill()
                master.wait()
                raise ConsoleError("ssh does not connect", evidence=self._connection.said())
            self._sleep(_POLL_S)
        try:
            self._ask_anew()
            self._connection.forward(*forwards(self._place, self._record))
        except ConsoleError:
            self._connection.end()
            master.kill()
            master.wait()
            raise
        return master.pid

    def _ask_anew(self) -> None:
        """Where the service is by now; while it cannot say so, what was known holds."""
        with contextlib.suppress(ConsoleError):
            there = self._connection.endpoint()
            self._record = replace(
                self._place.record() or self._record,
                drops=self._record.drops,
                control_there=there.control_socket,
                gateway_there=there.gateway or self._record.gateway_there,
            )

    def _stands(self, pid: int) -> bool:
        if self._master is not None and self._master.pid == pid:
            return self._master.poll() is None
        try:
            # In a pod nobody may reap it: a zombie has ended.
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def _say(self, state: State, reason: str = "") -> None:
        # A console may have found out meanwhile that the service moved.
        record = replace(self._place.record() or self._record, drops=self._record.drops)
        if state != record.state:
            since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            record = replace(record, state=state, since=since)
        self._record = replace(record, reason=reason)
        with contextlib.suppress(OSError):  # a full disk does not end a link
            self._place.write(self._record)


def forwards(place: LinkPlace, record: LinkRecord) -> tuple[Forward, ...]:
    """What the link leads over: the control socket, and the gateway once it is known where."""
    control = Forward(str(place.control), record.control_there)
    if not (record.gateway_there and record.gateway_port):
        return (control,)
    return (control, gateway_forward(record.gateway_port, record.gateway_there))


def main(arguments: list[str]) -> int:
    """Hold the link to the target; 0 at its end."""
    os.umask(0o077)
    target = parse_target(arguments[0])
    place = LinkPlace(locate(), target)
    record = place.record()
    if record is None:
        return 1
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    ssh = Ssh(target, place.master, place.log, program_of(os.environ))
    with place.held():
        Holder(place, Connection(ssh, place, tuple(arguments[1:])), record).run()
    return 0


def _end(number: int, frame: object) -> None:
    raise EndedError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
