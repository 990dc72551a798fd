"""A client that asks early is told the window all the same: without it, it assumes a million."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing
from a40console.paths import locate
from a40console.service import answers
from a40console.service.answers import ServiceAnswers
from a40console.service.gateway_door import GatewayDoor
from a40console.service.journal import Journal
from tests.service.test_assemble import status_of

UNTOLD = Missing("not asked yet")


class Engine:
    """Tells its window when it is asked often enough."""

    def __init__(self, state: EngineState, *, after: int) -> None:
        self.status = status_of(state)
        self.looks = 0
        self._after = after

    def window(self) -> Figure:
        self.looks += 1
        return 48_000 if self.looks > self._after else UNTOLD


@pytest.fixture
def door() -> Iterator[GatewayDoor]:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        yield GatewayDoor(listener, Path(folder) / "token", token_required=False)


def asked_of(engine: Engine, door: GatewayDoor, home: Path) -> dict[str, str]:
    paths = locate({"A40CONSOLE_HOME": str(home)})
    told = ServiceAnswers(
        paths=paths,
        journal=Journal(paths.events),
        door=door,
        read_status=lambda: engine.status,
        explain=lambda: pytest.fail("nobody asked why"),
        read_window=engine.window,
    )
    return asyncio.run(told.environment()).variables


def test_an_engine_that_has_just_begun_to_serve_is_waited_for(
    door: GatewayDoor, tmp_path: Path
) -> None:
    told = asked_of(Engine(EngineState.SERVING, after=4), door, tmp_path)
    assert told["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "48000"


def test_one_that_does_not_serve_yet_is_not(door: GatewayDoor, tmp_path: Path) -> None:
    engine = Engine(EngineState.STARTING, after=1000)
    told = asked_of(engine, door, tmp_path)
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" not in told
    assert engine.looks == 1


def test_one_that_never_tells_holds_nobody_up_for_long(
    door: GatewayDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "WINDOW_WITHIN_S", 0.3)
    began = time.monotonic()
    told = asked_of(Engine(EngineState.SERVING, after=1000), door, tmp_path)
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" not in told
    assert time.monotonic() - began < 3
