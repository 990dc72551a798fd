"""Opens a link for a console, or joins the one that is there."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from a40console import __version__
from a40console.errors import ConsoleError, NoServiceError, RefusedError
from a40console.link.connection import AnsweredError, Connection, Endpoint, free_port
from a40console.link.holder import forwards, lead_to, lives, port_of
from a40console.link.place import LinkPlace, LinkRecord
from a40console.link.ssh import Ssh, program_of, through_login_shell
from a40console.link.target import Target
from a40console.model.snapshot import PROTOCOL_VERSION
from a40console.paths import Paths

USUAL_GATEWAY_PORT = 8080
HOLDER_TIMEOUT_S = 10.0
RETURN_TIMEOUT_S = 3.0
END_TIMEOUT_S = 10.0
_POLL_S = 0.05

_LOGINS = itertools.count()
"""One process may open a link twice at once."""

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
    end_abandoned_logins(place, ssh)
    _await_return(place, connection)
    login = None if connection.master_pid() is not None else _Login(place, ssh, console)
    # What the operator is asked, a password or whether to start a service, may take him long: only
    # then is the turn taken, for which the holder and other consoles wait.
    try:
        there = _endpoint(login.connect() if login else connection, target, may_start)
        with place.being_made():
            if _stands(place, connection):  # by now, where another console has just opened it
                _renew(place, connection, there)
            else:
                _make(link, connection, login, there, _environment(paths, environment))
    finally:
        if login is not None:
            login.end()
    return link


class _Login:
    """A connection of this opening alone, until the link takes it over."""

    def __init__(self, place: LinkPlace, ssh: Ssh, console: tuple[str, ...]) -> None:
        self._place = place
        own = f"{os.getpid():x}-{next(_LOGINS)}"  # so that others know whose it is
        master, log = f"{place.master.name}-{own}", f"{place.log.name}-{own}"
        self._ssh = replace(
            ssh, master=place.master.with_name(master), log=place.log.with_name(log)
        )
        self._connection = Connection(self._ssh, place, console)

    def connect(self) -> Connection:
        """Log in, with the operator at the terminal."""
        self._connection.log_in()
        return self._connection

    def hand_over(self) -> None:
        """Let the link have it: a socket that is moved leads where it led."""
        with suppress(FileNotFoundError):  # an ssh of the operator's own may write none
            self._ssh.log.replace(self._place.log)
        self._ssh.master.replace(self._place.master)

    def end(self) -> None:
        """Close it, unless the link has it."""
        if self._ssh.master.exists():
            self._connection.end()
        self._ssh.log.unlink(missing_ok=True)


def end_abandoned_logins(place: LinkPlace, ssh: Ssh) -> bool:
    """End the logins of consoles that were killed before a link had them; whether there were any.

    Their ssh lives on by itself.
    """
    found = False
    for master in place.folder.glob(f"{place.master.name}-*"):
        opener = master.name.removeprefix(f"{place.master.name}-")
        pid = int(opener.partition("-")[0], 16)  # as _Login names it
        if not lives(pid):
            Connection(replace(ssh, master=master), place, ()).end()
            master.unlink(missing_ok=True)
            place.log.with_name(f"{place.log.name}-{opener}").unlink(missing_ok=True)
            found = True
    return found


def _make(
    link: Link,
    connection: Connection,
    login: _Login | None,
    there: Endpoint,
    environment: Mapping[str, str],
) -> None:
    """Leave the link to a new holder: on the login, or on what an earlier holder left."""
    place = link.place
    if login is not None:
        end_holder(place)
        login.hand_over()
    elif connection.master_pid() is None:
        raise NoServiceError(
            f"The link to {place.target} ended while it was opened", remedy="Try again."
        )
    elif (before := place.record()) is not None:
        connection.cancel(*forwards(place, before))
    try:
        record = _record(place, connection, there)
        connection.forward(*forwards(place, record))
        place.write(record)
        _hold(link, environment)
    except BaseException:
        connection.end()  # nobody would hold it
        raise


def _record(place: LinkPlace, connection: Connection, there: Endpoint) -> LinkRecord:
    before = place.record()
    wanted = before.gateway_port if before and before.gateway_port else port_of(there.gateway)
    return LinkRecord(
        target=str(place.target),
        console=shlex.join(connection.console),
        state="up",
        since=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        control_there=there.control_socket,
        gateway_there=there.gateway,
        gateway_port=free_port(wanted or USUAL_GATEWAY_PORT) if there.gateway else 0,
    )


def _stands(place: LinkPlace, connection: Connection) -> bool:
    return connection.master_pid() is not None and place.is_held()


def _await_return(place: LinkPlace, connection: Connection) -> None:
    """Let a holder that has lost its link find it again: it does so by itself.

    Raises:
        NoServiceError: If it cannot now. To end it here would end the link of every console.
    """
    deadline_s = time.monotonic() + RETURN_TIMEOUT_S
    while place.is_held() and connection.master_pid() is None:
        record = place.record()
        if record is not None and time.monotonic() > deadline_s:
            raise NoServiceError(
                f"The link to {place.target} is down",
                evidence=f"since {record.since}: {record.reason or 'it is being made again'}",
                remedy="It is tried again by itself; the service and the engine go on. To log in "
                f"anew: a40console links close {place.target}, then this command again.",
            )
        time.sleep(_POLL_S)


def _renew(place: LinkPlace, connection: Connection, there: Endpoint) -> None:
    """A service that came back over there may listen elsewhere by now."""
    record = place.record()
    if record is None:
        return
    control = forwards(place, record)[:1]
    if not place.control.exists():  # temporary folders are cleaned
        connection.cancel(*control)
        connection.forward(*control)
    lead_to(place, connection, record, gateway=there.gateway, control=there.control_socket)


def _endpoint(connection: Connection, target: Target, may_start: MayStart | None) -> Endpoint:
    """Where the service is; asked whether to start it where a console needs one.

    Raises:
        ConsoleError: If it is needed and not there, or speaks another protocol. A command that runs
            over there is told by itself what is wrong there.
    """
    try:
        there = connection.endpoint()
    except AnsweredError:
        if may_start is not None:
            raise
        return Endpoint(version="", protocol=0, running=False, control_socket="", gateway="")
    if may_start is None:
        return there
    if there.protocol != PROTOCOL_VERSION:
        raise RefusedError(
            f"a40console on {target} is version {there.version} and speaks another protocol",
            evidence=f"its protocol {there.protocol}, ours {PROTOCOL_VERSION} ({__version__})",
            remedy="Bring both machines to the same version. Commands run there all the same: "
            f"a40console --ssh {target} status",
        )
    if there.running:
        return there
    if not may_start(f"No service runs on {target}. Start it there?"):
        raise NoServiceError(
            f"No service runs on {target}",
            remedy=f"Start it there: a40console --ssh {target} endpoint --start",
        )
    return connection.endpoint(start=True)


def _hold(link: Link, environment: Mapping[str, str]) -> None:
    """Leave the link to a process of its own."""
    place = link.place
    words = [sys.executable, "-P", "-m", "a40console.link.holder", str(link.target), *link.console]
    with place.output.open("wb") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            env=dict(environment),
        )
    deadline_s = time.monotonic() + HOLDER_TIMEOUT_S
    while not place.is_held():
        if process.poll() is not None or time.monotonic() > deadline_s:
            said = place.output.read_text(errors="replace")
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
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
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


def close_link(place: LinkPlace, environment: Mapping[str, str]) -> bool:
    """End a link and all that is left of one; whether there was any.

    Raises:
        RefusedError: If its holder does not end.
    """
    ssh = Ssh(place.target, place.master, place.log, program_of(environment))
    connection = Connection(ssh, place, ())
    closed = end_abandoned_logins(place, ssh)
    closed = end_holder(place) or closed
    if place.master.exists() and connection.master_pid() is not None:  # its holder was killed
        connection.end()
        closed = True
    place.forget()
    return closed


def _environment(paths: Paths, environment: Mapping[str, str]) -> dict[str, str]:
    """Ours, with a home that holds in another working folder."""
    home = {"A40CONSOLE_HOME": str(paths.home)} if environment.get("A40CONSOLE_HOME") else {}
    return {**environment, **home}
