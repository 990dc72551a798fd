"""The service's side towards the clients: what of their requests is held, and what only arrives."""

from __future__ import annotations

import socket
from pathlib import Path

from a40console.config import Settings
from a40console.operations.status import EngineStatus
from a40console.paths import locate
from a40console.service.gateway_side import GatewaySide
from a40console.service.journal import Journal


async def test_a_body_that_is_still_on_its_way_is_not_held(tmp_path: Path) -> None:
    paths = locate({"A40CONSOLE_HOME": str(tmp_path)})
    paths.state.mkdir(parents=True)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        side = GatewaySide(
            paths,
            Settings(),
            gateway_socket=listening,
            journal=Journal(paths.events),
            read_status=EngineStatus,
        )
        for number in range(3):
            side.meter.accept("chat", f"half-{number}")
        whole = side.meter.accept("chat", "whole")
        assert side.look(None, 1.0).waiting == ()
        whole.held_at_s = 1.0
        traffic = side.look(None, 1.0)
        assert [slot.request_id for slot in traffic.waiting] == ["whole"]
        assert traffic.view is None
