"""The embedded server, for real: a socket of its own, one stream, and a quick end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from a40console.engines import embedded
from a40console.engines.command import Site, engine_environment, plan
from a40console.engines.diagnosis import Ending, diagnose
from a40console.engines.effective import differences
from a40console.engines.logs import last_lines
from a40console.engines.readiness import HealthProbe, PhaseTracker, wait_ready
from a40console.engines.run_record import EngineExit
from a40console.model.engine import Endpoint
from a40console.model.profile import Profile
from a40console.profiles.loader import load_profiles

SCRIPT = Path(embedded.__file__)
PROFILE = load_profiles(Path("/nonexistent")).profiles["smollm2-135m"]


@dataclass
class Running:
    """The server's process, and where it answers."""

    process: subprocess.Popen[bytes]
    endpoint: Endpoint
    log: Path

    def client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=self.endpoint.socket_path)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60)


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir="/tmp", prefix="emb"))
    yield path
    shutil.rmtree(path)


def start(argv: Sequence[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(argv, env=environment, stdout=output, stderr=output)


@asynccontextmanager
async def running(profile: Profile, model: Path, folder: Path) -> AsyncIterator[Running]:
    site = Site(
        python=sys.executable,
        embedded_script=SCRIPT,
        model_path=model,
        socket_path=folder / "e.sock",
        threads=1,
    )
    launch, log = plan(profile, site), folder / "output.log"
    environment = engine_environment(os.environ, launch)
    process = start(launch.argv, environment, log)
    probe = HealthProbe(launch.endpoint)
    try:
        await wait_ready(probe, lambda: process.poll() is None, timeout_s=60)
        yield Running(process, launch.endpoint, log)
    finally:
        await probe.close()
        process.kill()
        process.wait()


def end(process: subprocess.Popen[bytes]) -> float:
    """Seconds from SIGTERM to the end."""
    began_s = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    return time.monotonic() - began_s


@pytest.mark.engine
async def test_it_serves_a_stream_on_its_socket_and_ends_at_once(
    model_file: Path, folder: Path
) -> None:
    async with running(PROFILE, model_file, folder) as server, server.client() as client:
        assert stat.S_IMODE((folder / "e.sock").stat().st_mode) & 0o077 == 0
        models = (await client.get("/v1/models")).json()
        assert models["data"][0]["id"] == PROFILE.public_name
        slots = (await client.get("/slots")).json()
        assert [slot["n_ctx"] for slot in slots] == [2048] * 4
        assert "llamacpp:prompt_tokens_total" in (await client.get("/metrics")).text
        body = {
            "messages": [{"role": "user", "content": "Count to five."}],
            "max_tokens": 16,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            events = [line[6:] async for line in answer.aiter_lines() if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        chunks = [json.loads(event) for event in events[:-1]]
        assert 0 < chunks[-1]["usage"]["completion_tokens"] <= 16
        assert end(server.process) < 1
        assert server.process.returncode == -signal.SIGTERM


@pytest.mark.engine
async def test_it_ends_at_once_with_a_stream_in_flight(model_file: Path, folder: Path) -> None:
    async with running(PROFILE, model_file, folder) as server, server.client() as client:
        body = {"prompt": "Once upon a time", "n_predict": 1000, "stream": True, "ignore_eos": True}
        async with client.stream("POST", "/completion", json=body) as answer:
            async for _ in answer.aiter_lines():
                break
            assert await asyncio.to_thread(end, server.process) < 1


@pytest.mark.engine
async def test_its_output_tells_the_start_and_the_settings(model_file: Path, folder: Path) -> None:
    async with running(PROFILE, model_file, folder) as server:
        lines = last_lines(server.log)
        tracker = PhaseTracker("llamacpp", started_s=0, stall_after_s=20)
        for line in lines:
            tracker.feed(line, 1)
        assert tracker.phase == "ready"
        asked_one = replace(PROFILE, threads=1)
        assert differences(asked_one, lines) == ()
        assert any(line.startswith("embedded: ready on unix:") for line in lines)


@pytest.mark.engine
async def test_speculation_drafts_what_the_prompt_repeats(model_file: Path, folder: Path) -> None:
    assert PROFILE.speculation is not None
    on = replace(PROFILE, speculation=replace(PROFILE.speculation, enabled=True))
    async with running(on, model_file, folder) as server, server.client() as client:
        text = "the quick brown fox jumps over the lazy dog. " * 4
        body = {"prompt": text, "n_predict": 24, "temperature": 0}
        answer = (await client.post("/completion", json=body)).json()
        assert answer["timings"]["draft_n_accepted"] > 0


@pytest.mark.engine
async def test_polls_are_answered_while_many_requests_wait(model_file: Path, folder: Path) -> None:
    async with running(PROFILE, model_file, folder) as server, server.client() as client:
        body = {"prompt": "Once upon a time", "n_predict": 400, "ignore_eos": True}
        waiting = [asyncio.create_task(client.post("/completion", json=body)) for _ in range(20)]
        await asyncio.sleep(0.5)
        began_s = time.monotonic()
        assert (await client.get("/health")).status_code == 200
        assert time.monotonic() - began_s < 5
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", str(SCRIPT), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def explained(ended: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    exit_ = EngineExit(code=ended.returncode)
    lines = ended.stderr.splitlines()
    diagnosis = diagnose(Ending(profile=PROFILE, exit=exit_, lines=lines, phase="starting"))
    return diagnosis.kind, diagnosis.remedy


def test_without_the_wheel_it_says_what_to_install(folder: Path) -> None:
    (folder / "xllamacpp.py").write_text("raise ImportError('not here')")
    ended = run("--model", "m", "--alias", "m", "--port", "1", PYTHONPATH=str(folder))
    assert ended.returncode == embedded.EXIT_NOT_INSTALLED
    assert ended.stderr.count("\n") == 1
    assert explained(ended) == ("missing", "pip install 'a40console[embedded]'")


def test_a_missing_model_and_a_stale_socket_are_said_in_one_line(folder: Path) -> None:
    socket = folder / "e.sock"
    gone = run("--model", str(folder / "gone.gguf"), "--alias", "m", "--socket", str(socket))
    assert (gone.returncode, explained(gone)[0]) == (embedded.EXIT_NO_SERVER, "model")
    (folder / "m.gguf").write_bytes(b"GGUF")
    socket.touch()
    stale = run("--model", str(folder / "m.gguf"), "--alias", "m", "--socket", str(socket))
    assert (stale.returncode, explained(stale)[0]) == (embedded.EXIT_NO_SERVER, "address")


@pytest.mark.engine
def test_a_damaged_model_is_explained(folder: Path) -> None:
    (folder / "m.gguf").write_bytes(b"not a model at all")
    words = ("--model", str(folder / "m.gguf"), "--alias", "m", "--socket", str(folder / "e.sock"))
    ended = run(*words)
    assert ended.returncode == embedded.EXIT_NO_SERVER
    assert "Traceback" not in ended.stderr
    assert explained(ended)[0] == "model"


@pytest.mark.parametrize("words", [(), ("--model", "m", "--alias", "m"), ("--nope",)])
def test_settings_that_make_no_sense_end_with_2(words: tuple[str, ...]) -> None:
    assert run(*words).returncode == 2
