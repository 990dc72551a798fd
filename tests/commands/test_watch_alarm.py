"""`a40console watch --alarm` calls for what is grave and new, beside the output and not in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from a40console.commands import watch
from a40console.commands.invocation import Invocation
from a40console.model.engine import EngineState
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service

CALM = replace(make.snapshot(), findings=())
HUNG = replace(CALM, engine=replace(CALM.engine, state=EngineState.HUNG))


async def snapshots() -> AsyncGenerator[Snapshot]:
    for snapshot in (CALM, HUNG, HUNG, HUNG):
        yield snapshot


async def rung(paths: Paths) -> list[Snapshot]:
    return [seen async for seen in watch._ringing(Invocation(paths=paths), snapshots())]


async def test_in_a_log_it_is_a_line(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert await rung(paths) == [CALM, HUNG, HUNG, HUNG], "nothing is left out"
    told = capsys.readouterr()
    assert told.err == f"ALARM {HUNG.at}   the engine hangs\n"
    assert not told.out


async def test_on_a_terminal_it_is_the_bell_even_where_the_console_is_silent(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.config.mkdir()
    paths.config_file.write_text('[console]\nalarms = "off"\n')
    monkeypatch.setattr(watch, "stderr_is_terminal", lambda: True)
    await rung(paths)
    assert capsys.readouterr().err == "\a"


def test_the_option_is_there(console: Run, service: Service) -> None:
    service(state="serving")
    run = console("watch", "--alarm", "--count", "2")
    assert run.returncode == 0
    assert run.stdout.count("SERVING") == 2
    assert "ALARM" not in run.stderr
