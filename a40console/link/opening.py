"""Opens a link for a console, or joins the one that is there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from a40console.errors import ConsoleError, NoServiceError, RefusedError
from a40console.link.connection import Connection, Endpoint, free_port
from a40console.link.holder import forwards
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.ssh import Ssh, program_of, through_login_shell
from a40console.link.target import Target
from a40console.paths import Paths

USUAL_GATEWAY_PORT = 8080
HOLDER_TIMEOUT_S = 10.0
END_TIMEOUT_S = 10.0
_POLL_S = 0.05

MayStart = Callable[[str], bool]
"""Asks the operator whether the service of the other machine may be started."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link that stands, as the console and the commands use it."""

    target: Target
    place: LinkPlace
    ssh: Ssh
    console: tuple[str, ...]

    def paths(self, paths: Paths) -> Paths:
        """This machine's paths, with the other machine's control socket."""
        return replace(paths, runtime=self.place.folder, remote=str(self.target))

    def there(self, words: list[str], *, terminal: bool) -> list[str]:
        """What to call for a command of the console on the other machine."""
        return self.ssh.run(through_login_shell([*self.console, *words]), terminal=terminal)


def open_link(
    paths: Paths,
    target: Target,
    *,
    console: tuple[str, ...],
    environment: Mapping[str, str],
    may_start: MayStart | None,
) -> Link:
    """A link that carries: the one that is there, or a new one, with the operator's login.

    Args:
        paths: This machine's.
        target: The other machine.
        console: The console's command there.
        environment: Names the ssh to call.
        may_start: Asked before a service is started there; None where none is needed.

    Raises:
        ConsoleError: If it cannot be had, with ssh's own words.
    """
    place = LinkPlace(paths, target)
    place.make()
    ssh = Ssh(target, place.master, place.log, program_of(environment))
    connection = Connection(ssh, place, console)
    link = Link(target, place, ssh, console)
    pid = connection.master_pid()
    if pid is None or not place.is_held():
        end_holder(place)
        if pid is None:
            connection.log_in()
        try:
            record = _record(place, connection, may_start)
            connection.forward(*forwards(place, record))
            place.write(record)
            _hold(place, target, console)
        except BaseException:
            connection.end()  # nobody would hold it
            raise
    else:
        _renew(place, connection, may_start)
    return link


def _record(place: LinkPlace, connection: Connection, may_start: MayStart | None) -> LinkRecord:
    there = _endpoint(connection, place.target, may_start)
    before = place.record()
    wanted = before.gateway_port if before and before.gateway_port else _port_of(there.gateway)
    return LinkRecord(
        target=str(place.target),
        state="up",
        since=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        control_there=there.control_socket,
        gateway_there=there.gateway,
        gateway_port=free_port(wanted or USUAL_GATEWAY_PORT) if there.gateway else 0,
    )


def _renew(place: LinkPlace, connection: Connection, may_start: MayStart | None) -> None:
    """A service that came back over there may listen elsewhere by now."""
    record = place.record()
    there = _endpoint(connection, place.target, may_start)
    if record is None or (record.control_there, record.gateway_there) == (
        there.control_socket,
        there.gateway,
    ):
        return
    connection.cancel(*forwards(place, record))
    port = record.gateway_port or (free_port(_port_of(there.gateway)) if there.gateway else 0)
    record = replace(
        record,
        control_there=there.control_socket,
        gateway_there=there.gateway,
        gateway_port=port,
    )
    connection.forward(*forwards(place, record))
    place.write(record)


def _endpoint(connection: Connection, target: Target, may_start: MayStart | None) -> Endpoint:
    there = connection.endpoint()
    if there.running or may_start is None:
        return there
    if not may_start(f"No service runs on {target}. Start it there?"):
        raise NoServiceError(
            f"No service runs on {target}",
            remedy=f"Start it there: a40console --ssh {target} endpoint --start",
        )
    return connection.endpoint(start=True)


def _hold(place: LinkPlace, target: Target, console: tuple[str, ...]) -> None:
    """Leave the link to a process of its own."""
    words = [sys.executable, "-P", "-m", "a40console.link.holder", str(target), *console]
    with (place.record_file.with_suffix(".out")).open("wb") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
        )
    deadline_s = time.monotonic() + HOLDER_TIMEOUT_S
    while not place.is_held():
        if process.poll() is not None or time.monotonic() > deadline_s:
            said = place.record_file.with_suffix(".out").read_text(errors="replace")
            raise ConsoleError(
                "The link does not outlive this console",
                evidence=said.strip().splitlines()[-1] if said.strip() else "its holder ended",
            )
        time.sleep(_POLL_S)


def end_holder(place: LinkPlace) -> bool:
    """End whoever holds the link, and the link with it; whether anybody did.

    Raises:
        RefusedError: If it does not end.
    """
    pid = place.holder_pid()
    if pid is None:
        return False
    os.kill(pid, 15)
    deadline_s = time.monotonic() + END_TIMEOUT_S
    while place.is_held():
        if time.monotonic() > deadline_s:
            raise RefusedError(
                f"The holder of the link to {place.target} does not end",
                evidence=f"process {pid}",
                remedy=f"End it yourself: kill -9 {pid}",
            )
        time.sleep(_POLL_S)
    return True


def _port_of(address: str) -> int:
    _, _, port = address.rpartition(":")
    return int(port) if port.isdecimal() else 0
