"""Starts that cannot listen where they should, or do not come to an end."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time

import pytest

from a40console.engines.ports import who_holds
from tests.faults.console import FaultConsole, finding, kill

pytestmark = pytest.mark.slow


# --- 10: ports -------------------------------------------------------------------------------


def test_a_port_that_somebody_listens_on_is_refused_with_his_name(idle: FaultConsole) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        idle.fake_profile("onport", f"listen = 'loopback'\nport = {port}")
        told, began_s = len(idle.events()), time.monotonic()
        said = idle.refused(5, "engine", "start", "onport")
        assert time.monotonic() - began_s < 10, "refused before anything is loaded"
    assert f"(pid {os.getpid()}) listens on 127.0.0.1" in said
    assert "take another port" in said
    assert "engine.starting" not in idle.event_kinds()[told:], "no crash loop"
    idle.succeed("engine", "start", "onport")
    assert idle.status()["engine"]["state"] == "serving"


def test_closed_connections_on_the_port_are_waited_for(idle: FaultConsole) -> None:
    """The engine died with connections open, and binds without SO_REUSEADDR."""
    port, client = lingering_connection()
    holder = who_holds(port)
    assert holder is not None
    assert holder.use == "time_wait"
    idle.fake_profile("onport", f"listen = 'loopback'\nport = {port}")
    told = len(idle.events())
    idle.succeed("engine", "start", "onport", "--no-wait")
    snapshot = idle.until(lambda s: s["engine"]["phase"] == "port", 20)
    assert snapshot["engine"]["state"] == "starting"
    eta_s = snapshot["engine"]["eta_s"]
    assert 0 < eta_s <= 62
    later = idle.until(lambda s: s["engine"]["eta_s"] < eta_s - 1, 10)
    assert later["engine"]["phase"] == "port", "it counts down"
    assert finding(later, "start-stalled") is None
    event = idle.events()[-1]
    assert event["kind"] == "engine.waiting_for_port"
    assert f"Nobody listens on port {port}" in event["text"]
    assert "TIME_WAIT" in event["text"]
    # A stop does not wait for the kernel.
    idle.succeed("engine", "stop", timeout_s=20)
    assert idle.status()["engine"]["state"] == "stopped"

    idle.succeed("engine", "start", "onport", "--no-wait")
    idle.until(lambda s: s["engine"]["phase"] == "port", 20)
    worker = idle.status()["service"]["pid"]
    kill(worker, signal.SIGSTOP)  # so that it does not look while we listen there ourselves
    forget_connection(port, client)
    kill(worker, signal.SIGCONT)
    idle.until_state("serving")
    assert idle.event_kinds()[told:].count("engine.starting") == 3, "no crash loop"


def lingering_connection() -> tuple[int, int]:
    """Server's and client's port of a closed connection that the kernel remembers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        ports = listener.getsockname()[1], client.getsockname()[1]
        server.close()  # who closes first is the one who waits
        client.close()
    return ports


def forget_connection(port: int, client_port: int) -> None:
    """Let the kernel forget a closed connection early: open it once more, and break it off."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        address = ("127.0.0.1", client_port)
        client = socket.create_connection(("127.0.0.1", port), source_address=address)
        server, _ = listener.accept()
        broken = struct.pack("ii", 1, 0)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, broken)
        server.close()
        client.close()
    assert who_holds(port) is None


# --- 11: a start that hangs ------------------------------------------------------------------


def test_a_start_that_waits_for_ever_is_called_stalled(idle: FaultConsole) -> None:
    idle.control(start="waits")
    idle.succeed("engine", "start", "fake", "--no-wait")
    first = idle.until_state("starting")
    snapshot = idle.until(lambda s: finding(s, "start-stalled"), 20)
    assert snapshot["engine"]["state"] == "starting"
    assert snapshot["engine"]["phase"] == "starting"
    assert snapshot["engine"]["phase_s"] > first["engine"]["phase_s"]
    found = finding(snapshot, "start-stalled")
    assert found is not None
    assert "The start is stuck for" in found["title"]
    assert "the engine core does not answer" in found["title"]
    assert "Waiting for 1 core engine proc(s)" in found["evidence"]
    assert found["command"] == "engine.restart"
    assert "Restart it" in found["remedy"]
    said = idle.refused(4, "status", "--check")
    assert "The start is stuck" in said
    assert "no process is left" in idle.succeed("engine", "stop")
    assert finding(idle.until_state("stopped"), "start-stalled") is None
