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
from pathlib import Path

from a40console.errors import ConsoleError
from a40console.link.connection import Connection, free_port, gateway_forward
from a40console.link.greeting import gateway_of
from a40console.link.place import LinkPlace, LinkRecord, State
from a40console.link.runs_follow import RunsFollower, follower_of
from a40console.link.ssh import CONNECT_TIMEOUT_S, Forward, Ssh, program_of
from a40console.link.target import parse_target
from a40console.paths import locate

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 15.0
GIVE_UP_S = 24 * 3600.0
"""A machine that was not reached for a day is gone: pods are thrown away."""

FOLLOW_PERIOD_S = 5.0
"""How often is looked whether the gateway moved: some 300 bytes."""

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
        follower: Copies the runs of the other machine; None where nobody wants them.
        sleep: Waits; a test replaces it.
    """

    def __init__(
        self,
        place: LinkPlace,
        connection: Connection,
        record: LinkRecord,
        *,
        follower: RunsFollower | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._follower = follower
        self._place = place
        self._connection = connection
        self._record = record
        self._sleep = sleep
        self._master: subprocess.Popen[bytes] | None = None
        self._moved = ""
        """Why the gateway has another port here than before; empty while it has not."""

    def run(self) -> None:
        """Hold the link until it is closed, or cannot be had without the operator."""
        pid: int | None = None
        try:
            pid = self._connection.master_pid()  # the operator logged in just now
            while pid is not None or (pid := self._find_again()):
                self._say("up", self._moved)
                self._watch(pid)
                self._record = replace(self._record, drops=self._record.drops + 1)
                pid = None
        except EndedError:
            self._connection.end()
            if pid is not None and lives(pid):
                os.kill(pid, signal.SIGTERM)  # its socket is gone: temporary folders are cleaned
            self._say("ended", "it was closed")
        finally:
            if self._master is not None and self._master.poll() is None:
                self._master.kill()
            self._place.control.unlink(missing_ok=True)

    def _watch(self, pid: int) -> None:
        """Return once the connection has ended; the gateway may move over there meanwhile."""
        if self._follower is not None:
            self._follower.look_now()
        next_s = time.monotonic() + FOLLOW_PERIOD_S
        while lives(pid) if self._master is None else self._master.poll() is None:
            if time.monotonic() > next_s:
                self._follow()
                next_s = time.monotonic() + FOLLOW_PERIOD_S
            self._copy_runs()
            self._sleep(LOOK_S)

    def _copy_runs(self) -> None:
        """Copy what was measured over there, a run a look, and write down how far that is."""
        if (follower := self._follower) is None:
            return
        before = follower.copies
        follower.step()
        if (now := follower.copies) != before:
            self._keep(
                replace(
                    self._known(),
                    drops=self._record.drops,
                    runs_copied=now.copied,
                    runs_left=now.left,
                    runs_trouble=now.trouble,
                )
            )

    def _follow(self) -> None:
        """Lead to where the gateway is by now: a service that came back may listen elsewhere."""
        gateway = gateway_of(self._place.control)
        if not gateway or gateway == self._known().gateway_there:
            return
        # A console that has the turn for long, or a port that is taken: the next look tries again.
        with contextlib.suppress(ConsoleError, OSError), self._place.being_made():
            record = self._known()
            if gateway == record.gateway_there:
                return  # a console found out first
            self._record = lead_to(self._place, self._connection, record, gateway=gateway)
            self._say("up", self._moved)

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
            self._keep_port()
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
                self._known(),
                drops=self._record.drops,
                control_there=there.control_socket,
                gateway_there=there.gateway or self._record.gateway_there,
            )

    def _keep_port(self) -> None:
        """Take another port only where somebody took ours while the link was down."""
        wanted = self._record.gateway_port
        port = free_port(wanted) if wanted else 0
        if port != wanted:
            self._moved = (
                f"port {wanted} of this machine was taken while the link was down: "
                f"the gateway is at {port} now"
            )
            self._keep(replace(self._record, gateway_port=port))

    def _known(self) -> LinkRecord:
        """The newest word: a console may have written it."""
        return self._place.record() or self._record

    def _say(self, state: State, reason: str = "") -> None:
        record = replace(self._known(), drops=self._record.drops)
        if state != record.state:
            since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            record = replace(record, state=state, since=since)
        self._keep(replace(record, reason=reason))

    def _keep(self, record: LinkRecord) -> None:
        self._record = record
        with contextlib.suppress(OSError):  # a full disk does not end a link
            self._place.write(record)


def forwards(place: LinkPlace, record: LinkRecord) -> tuple[Forward, ...]:
    """What the link leads over: the control socket, and the gateway once it is known where."""
    if not record.control_there:
        return ()
    control = Forward(str(place.control), record.control_there)
    if not (record.gateway_there and record.gateway_port):
        return (control,)
    return (control, gateway_forward(record.gateway_port, record.gateway_there))


def lead_to(
    place: LinkPlace,
    connection: Connection,
    record: LinkRecord,
    *,
    gateway: str,
    control: str | None = None,
) -> LinkRecord:
    """Lead a link that stands to where the service is by now; what is so then.

    Args:
        place: Where the link is.
        connection: What carries it.
        record: What was known of it.
        gateway: `host:port` over there; empty where nobody knows.
        control: The control socket over there; None where it stays.

    Raises:
        RefusedError: If it cannot be forwarded.
    """
    control = control or record.control_there
    if (record.control_there, record.gateway_there) == (control, gateway):
        return record
    old = forwards(place, record)
    port = record.gateway_port or (free_port(port_of(gateway)) if gateway else 0)
    record = replace(
        record,
        control_there=control,
        gateway_there=gateway or record.gateway_there,
        gateway_port=port,
    )
    new = forwards(place, record)
    connection.cancel(*(forward for forward in old if forward not in new))
    connection.forward(*(forward for forward in new if forward not in old))
    place.write(record)
    return record


def port_of(address: str) -> int:
    """The port of `host:port`; 0 where it names none."""
    _, _, port = address.rpartition(":")
    return int(port) if port.isdecimal() else 0


def lives(pid: int) -> bool:
    """Whether a process of this user lives. In a pod nobody may reap it: a zombie has ended."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return False
    except OSError:  # a system without /proc
        return True
    return status.rpartition(")")[2].split()[0] != "Z"


def main(arguments: list[str]) -> int:
    """Hold the link to the target; 0 at its end."""
    os.umask(0o077)
    target = parse_target(arguments[0])
    paths = locate()
    place = LinkPlace(paths, target)
    record = place.record()
    if record is None:
        return 1
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    ssh = Ssh(target, place.master, place.log, program_of(os.environ))
    with place.held():
        connection = Connection(ssh, place, tuple(arguments[1:]))
        follower = follower_of(place.control, paths.pulled, origin=str(target))
        Holder(place, connection, record, follower=follower).run()
    return 0


def _end(number: int, frame: object) -> None:
    raise EndedError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
