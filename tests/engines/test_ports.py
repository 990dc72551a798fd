"""Who holds a port, and whether a socket file is left over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.engines.ports import PortUse, describe, socket_is_stale, who_holds

HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid ...\n"


def row(local: str, state: str, timer: str = "00:00000000", inode: int = 0) -> str:
    zero = "0" * len(local.partition(":")[0]) + ":0000"
    return f"   0: {local} {zero} {state} 00000000:00000000 {timer} 00000000  0  0 {inode} 1 0\n"


def fake_proc(root: Path, tcp: str = "", tcp6: str | None = None) -> Path:
    (root / "net").mkdir()
    (root / "net" / "tcp").write_text(HEADING + tcp)
    if tcp6 is not None:
        (root / "net" / "tcp6").write_text(HEADING + tcp6)
    return root


def listen() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def test_a_free_port_is_held_by_nobody() -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
    assert who_holds(port) is None
    assert describe(port, None) == f"Port {port} is free."


def test_a_listener_is_named_with_its_pid() -> None:
    program = (
        "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        holder = who_holds(port)
        assert holder is not None
        assert (holder.use, holder.pid, holder.address) == (
            PortUse.LISTEN,
            server.pid,
            "127.0.0.1",
        )
        text = describe(port, holder)
    assert f"{holder.name} (pid {server.pid}) listens on 127.0.0.1" in text
    assert "Stop that process or take another port." in text


def test_closed_connections_are_told_from_a_listener_and_counted_down() -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            served, _ = listener.accept()
            served.close()  # the side that closes first keeps TIME_WAIT
            assert client.recv(1) == b""
    holder = who_holds(port)
    assert holder is not None
    assert (holder.use, holder.pid, holder.count) == (PortUse.TIME_WAIT, None, 1)
    assert holder.remaining_s is not None
    assert 30 < holder.remaining_s <= 61
    assert "1 closed connection lingers on it (TIME_WAIT)" in describe(port, holder)
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("127.0.0.1", port))  # the situation is the one that the text speaks of


def test_an_open_connection_without_a_listener_is_told_with_its_owner() -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = listener.accept()
    with client, served:
        holder = who_holds(port)
        assert holder is not None
        assert (holder.use, holder.pid) == (PortUse.CONNECTED, os.getpid())
        assert "has a connection open on it" in describe(port, holder)
        client.close()


def test_a_listener_on_ipv6_that_nobody_here_owns(tmp_path: Path) -> None:
    proc = fake_proc(
        tmp_path,
        row("0100007F:1F90", "06", "03:00000BB8"),
        row("0" * 32 + ":1F90", "0A", inode=77),
    )
    holder = who_holds(8080, proc)
    assert holder is not None
    assert (holder.use, holder.address, holder.pid) == (PortUse.LISTEN, "::", None)
    assert "a process not visible from here listens on ::" in describe(8080, holder)
    assert who_holds(8081, proc) is None


def test_the_longest_wait_counts_and_one_without_a_timer_is_a_minute_at_most(
    tmp_path: Path,
) -> None:
    waits = row("0100007F:1F90", "06", "03:00000BB8") + row("0100007F:1F90", "06", "03:000003E8")
    proc = fake_proc(tmp_path, waits + row("0100007F:1F91", "05"))
    two, unknown = who_holds(8080, proc), who_holds(8081, proc)
    assert two is not None
    assert unknown is not None
    assert two.count == 2
    assert two.remaining_s == 0xBB8 / os.sysconf("SC_CLK_TCK")
    assert "2 closed connections linger" in describe(8080, two)
    assert "wait up to 60 s" in describe(8081, unknown)


def test_a_mapped_address_is_written_as_such(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, tcp6=row("0000000000000000FFFF00000100007F:1F90", "0A"))
    holder = who_holds(8080, proc)
    assert holder is not None
    assert holder.address == "::ffff:127.0.0.1"


@pytest.fixture
def short_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_a_socket_file_is_stale_once_nobody_listens(short_dir: Path) -> None:
    path = short_dir / "engine.sock"
    assert not socket_is_stale(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    assert not socket_is_stale(path)
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for client in crowd:
        client.setblocking(False)
        client.connect_ex(str(path))
    assert not socket_is_stale(path)  # a full queue belongs to somebody
    for client in crowd:
        client.close()
    listener.close()
    assert socket_is_stale(path)


def test_what_is_no_socket_is_never_stale(short_dir: Path) -> None:
    path = short_dir / "engine.sock"
    path.write_text("")
    assert not socket_is_stale(path)
    (short_dir / "link").symlink_to(path)
    assert not socket_is_stale(short_dir / "link")
