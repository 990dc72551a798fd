"""Who stands in the way of a listener: the holder of a TCP port, a socket file left behind."""

from __future__ import annotations

import errno
import math
import os
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# States of /proc/net/tcp: include/net/tcp_states.h.
LISTEN_STATE = 0x0A
CLOSING_STATES = frozenset({0x04, 0x05, 0x06, 0x09, 0x0B})  # FIN_WAIT 1 and 2, TIME_WAIT, …
TIME_WAIT_TIMER = 0x03


class PortUse(StrEnum):
    """In what way a port is held."""

    LISTEN = "listen"
    CONNECTED = "connected"
    """A process has an open connection on it: a child that outlived the listener, or a client."""

    TIME_WAIT = "time_wait"
    """Only closed connections linger; the kernel forgets them within a minute."""


@dataclass(frozen=True, slots=True)
class PortHolder:
    """What holds a TCP port: a listener before a connection, a connection before leftovers."""

    port: int
    use: PortUse
    address: str
    """The local address held, `0.0.0.0` or `::` for all."""

    pid: int | None
    """None when the holder cannot be seen from here, or when nobody holds it any more."""

    name: str | None
    count: int
    """How many sockets hold the port in this way."""

    remaining_s: float | None
    """When the last connection in TIME_WAIT will be forgotten; None where unknown."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One row of `/proc/net/tcp` or `tcp6`."""

    address: str
    port: int
    state: int
    inode: int
    """0 when no process holds it any more."""

    timewait_s: float | None

    @property
    def use(self) -> PortUse:
        """In what way the row holds its local port."""
        if self.state == LISTEN_STATE:
            return PortUse.LISTEN
        if self.state in CLOSING_STATES or not self.inode:
            return PortUse.TIME_WAIT
        return PortUse.CONNECTED


def parse_row(line: str) -> TcpSocket | None:
    """Reads one row; None for the heading and for what is no row."""
    fields = line.split()
    if len(fields) < 10 or not fields[0].endswith(":"):
        return None
    address, _, port = fields[1].partition(":")
    timer, _, ticks = fields[5].partition(":")
    waits = int(timer, 16) == TIME_WAIT_TIMER
    return TcpSocket(
        address=decode_address(address),
        port=int(port, 16),
        state=int(fields[3], 16),
        inode=int(fields[9]),
        timewait_s=int(ticks, 16) / CLOCK_TICKS_PER_S if waits else None,
    )


def decode_address(text: str) -> str:
    """Reads the kernel's hexadecimal address: words of 32 bits in the machine's byte order."""
    words = [int(text[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(text), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, b"".join(words))


def read_sockets(proc: Path) -> list[TcpSocket]:
    """All TCP sockets of our network namespace."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text().splitlines()
        except OSError:
            continue  # no IPv6 here
        found += [row for line in lines if (row := parse_row(line)) is not None]
    return found


def open_files(process: Path) -> set[str]:
    """What the descriptors of a process point to; empty for one that is gone or not ours."""
    found = set()
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found.add(str(descriptor.readlink()))
    return found


def find_owner(proc: Path, inodes: Iterable[int]) -> tuple[int, str] | None:
    """The first visible process with one of these sockets open: pid and name."""
    wanted = {f"socket:[{inode}]" for inode in inodes if inode}
    for entry in proc.iterdir() if wanted else ():
        if entry.name.isdigit() and not wanted.isdisjoint(open_files(entry)):
            with suppress(OSError):
                return int(entry.name), (entry / "comm").read_text().strip()
    return None


def who_holds(port: int, proc: Path = Path("/proc")) -> PortHolder | None:
    """What keeps a listener from this TCP port on any address; None when it is free."""
    sockets = [row for row in read_sockets(proc) if row.port == port]
    for use in PortUse:
        rows = [row for row in sockets if row.use == use]
        if rows:
            owner = find_owner(proc, (row.inode for row in rows))
            waits = [row.timewait_s for row in rows if row.timewait_s is not None]
            return PortHolder(
                port=port,
                use=use,
                address=rows[0].address,
                pid=owner[0] if owner else None,
                name=owner[1] if owner else None,
                count=len(rows),
                remaining_s=max(waits) if waits and use is PortUse.TIME_WAIT else None,
            )
    return None


def describe(port: int, holder: PortHolder | None) -> str:
    """What the operator reads about a port: who has it and what to do."""
    if holder is None:
        return f"Port {port} is free."
    if holder.use is PortUse.TIME_WAIT:
        wait = "up to 60 s" if holder.remaining_s is None else f"{math.ceil(holder.remaining_s)} s"
        return (
            f"Nobody listens on port {port}, but {holder.count} closed "
            f"{'connection lingers' if holder.count == 1 else 'connections linger'} on it "
            f"(TIME_WAIT). Some servers cannot bind before the kernel forgets them: "
            f"wait {wait} or take another port."
        )
    if holder.pid is None:
        who = "a process not visible from here"
        remedy = "Take another port."
    else:
        who = f"{holder.name} (pid {holder.pid})"
        remedy = "Stop that process or take another port."
    if holder.use is PortUse.LISTEN:
        return f"Port {port} is taken: {who} listens on {holder.address}. {remedy}"
    return f"Nobody listens on port {port}, but {who} has a connection open on it. {remedy}"


def socket_is_stale(path: Path) -> bool:
    """Whether a Unix socket file is left over: nobody listens behind it, so it may be removed."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full queue belongs to a living listener; do not wait in it
        try:
            return probe.connect_ex(str(path)) == errno.ECONNREFUSED
        except OSError:
            return False  # longer than an address may be: nobody could have bound it so
