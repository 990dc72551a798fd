"""Engines and keepers that a test starts, and that are gone after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from a40console.engines.launching import Launch
from a40console.engines.process import EngineProcess
from a40console.engines.tree import ProcessId, ProcFs
from tests.engines.kept import SCRIPT, Keep, Kept
from tests.engines.trees import ENV, Start, until


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """Starts engines under keepers, and leaves nothing behind."""
    started: list[Kept] = []

    def start(*argv: str, script: str = "", prefix: tuple[str, ...] = (), **launch: object) -> Kept:
        run_dir = Path(str(launch.pop("run_dir", tmp_path)))
        document = {
            "argv": argv or ["sh", "-c", script],
            "env": {"PATH": os.environ["PATH"]},
            "cwd": "/",
            "output_limit_bytes": 1 << 20,
        } | launch
        command = [*prefix, sys.executable, "-I", "-S", str(SCRIPT), str(run_dir)]
        done = subprocess.run(
            command, input=json.dumps(document).encode(), capture_output=True, check=True
        )
        started.append(Kept(run_dir, int(done.stdout)))
        return started[-1]

    yield start
    for kept in started:
        kept.kill_all()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts shell scripts as engines, and leaves nothing behind."""
    started: list[EngineProcess] = []

    async def start_engine(script: str, *, ready: int = 0) -> EngineProcess:
        """Starts a script and waits until its tree has so many processes."""
        run_dir = tmp_path / f"run{len(started)}"
        engine = await EngineProcess.start(run_dir, Launch(("sh", "-c", script), ENV, Path("/")))
        started.append(engine)
        if ready:
            await until(lambda: len(engine.members()) >= ready, "the engine's tree")
        return engine

    yield start_engine
    for engine in started:
        await engine.stop(term_timeout_s=0)


@pytest.fixture
def bystander() -> Iterator[ProcessId]:
    """A neighbour's process, which nothing here may touch."""
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as neighbour:
        found = ProcFs().read_process(neighbour.pid)
        assert found is not None
        yield found.id
        assert neighbour.poll() is None, "a process that is not ours was ended"
        neighbour.kill()
