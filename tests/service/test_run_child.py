"""The process of a run, whole: on the simulated engine, and on servers that fail it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a40console.model.figures import number
from a40console.model.run import RunSpec
from a40console.model.run_order import RunOrder
from a40console.model.run_record import ArmEnd, Ended, Found, Record, Sample, Started
from a40console.service.run_folder import RunFolder, read_records
from a40console.service.run_place import TOKEN_VARIABLE
from tests.service import orders

TOKEN = "sk-not-for-any-disk"
LONG = {
    "streams": "1,2",
    "output_tokens": "16",
    "prompt_tokens": "32",
    "requests": "50",
    "repeats": "20",
}
"""A sweep that outlasts whatever is done to it."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a simulated engine."""
    output = tmp_path_factory.mktemp("sim") / "output.log"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # So slow that a busy machine's client is not taken for the limit.
    words = ("--port", str(port), "--start-s", "0.1", "--speed", "0.5")
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "a40console.sim", "serve", "x/qwen3-coder-30b", *words],
            stdout=file,
            stderr=file,
        )
    try:
        _wait_ready(output)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_ready(output: Path) -> None:
    deadline_s = time.monotonic() + 20
    while "startup complete" not in (told := output.read_text()):
        assert time.monotonic() < deadline_s, told
        time.sleep(0.05)


class Child:
    """A run's process and what it writes."""

    def __init__(self, home: Path, spec: RunSpec) -> None:
        self.folder = RunFolder(home / "state" / "runs" / "20261130-174501-sweep-1f3a")
        self.order: RunOrder = orders.order(self.folder.id, spec=spec)
        self.folder.write_order(self.order)
        self.environment = {
            **os.environ,
            "A40CONSOLE_HOME": str(home),
            TOKEN_VARIABLE: TOKEN,
        }
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder.path / "output.log").open("ab") as output:
            words = ("-P", "-m", "a40console.service.run_child", str(self.folder.path))
            return subprocess.Popen(
                [sys.executable, *words],
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
            )

    def records(self) -> tuple[Record, ...]:
        return read_records(self.folder.records_file, 0)[1]

    def output(self) -> str:
        """What it said outside its records."""
        return (self.folder.path / "output.log").read_text()

    def ended(self, timeout_s: float = 60) -> Ended:
        try:
            self.process.wait(timeout_s)
        finally:
            self.process.kill()
        records = self.records()
        assert records, self.output()
        last = records[-1]
        assert isinstance(last, Ended), (last, self.output())
        return last

    def until(self, seen: Callable[[Record], bool], timeout_s: float = 60) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not any(map(seen, self.records())):
            assert time.monotonic() < deadline_s, self.output()
            assert self.process.poll() is None, self.output()
            time.sleep(0.05)


def test_a_whole_run_is_recorded_with_both_sides_counters(tmp_path: Path, engine: str) -> None:
    child = Child(tmp_path, orders.url_spec(engine))
    ended = child.ended()
    assert (ended.state, ended.reason) == ("done", "")
    records = child.records()
    assert isinstance(records[0], Started)
    assert records[0].environment == child.order.environment
    ends = [record for record in records if isinstance(record, ArmEnd)]
    samples = [record for record in records if isinstance(record, Sample)]
    assert len([end for end in ends if end.arm == "1 stream"]) == 1
    end = next(end for end in ends if end.arm == "1 stream")
    of_arm = [sample for sample in samples if sample.arm == "1 stream"]
    mine = [sample for sample in of_arm if not sample.warm_up]
    generated = sum(number(sample.generated_tokens) or 0 for sample in mine)
    assert generated > 0
    assert end.client["generated_tokens"] == end.server["generated_tokens"] == generated
    assert end.client["requests"] == end.server["requests"] == len(mine)
    assert {"loop_lag_p99_s", "cpu_cores"} <= end.client.keys()
    assert end.usd == pytest.approx(0.44 * end.wall_s / 3600, abs=1e-6)
    found = [record for record in records if isinstance(record, Found)]
    assert len(found) == 1
    assert found[0].result.headline


def test_its_secret_is_in_no_file_of_it(tmp_path: Path, engine: str) -> None:
    child = Child(tmp_path, orders.url_spec(engine))
    child.until(lambda record: isinstance(record, Started))
    assert TOKEN not in Path(f"/proc/{child.process.pid}/cmdline").read_text()
    child.ended()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("by", ["file", "signal"])
def test_a_run_that_is_told_to_end_keeps_what_it_measured(
    tmp_path: Path, engine: str, by: str
) -> None:
    child = Child(tmp_path, orders.url_spec(engine, parameters=LONG))
    child.until(lambda record: isinstance(record, Sample) and not record.warm_up)
    child.folder.ask_to_end("cancelled by alice@pod")
    if by == "signal":
        child.process.send_signal(signal.SIGTERM)
    ended = child.ended()
    assert (ended.state, ended.reason) == ("partial", "cancelled by alice@pod")
    assert any(isinstance(record, Found) for record in child.records())


def test_a_second_process_for_the_same_run_leaves_it_alone(tmp_path: Path, engine: str) -> None:
    child = Child(tmp_path, orders.url_spec(engine, parameters=LONG))
    child.until(lambda record: isinstance(record, Sample))
    first = child.folder.child()
    second = child.start()
    assert second.wait(20) != 0
    assert child.folder.child() == first
    child.folder.ask_to_end("enough")
    assert child.ended().reason.startswith("enough")


async def test_a_request_that_hangs_ends_with_the_limit(tmp_path: Path) -> None:
    """A server that takes the request and never answers it."""

    left: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left.append(asyncio.Event())
        over = left[-1]
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/v1/models" in head:
            await _send(writer, {"data": [{"id": "m", "max_model_len": 4096}]})
        while await reader.read(4096):
            pass
        writer.close()
        over.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    child = Child(tmp_path, orders.url_spec(url, max_minutes=0.03))
    began_s = time.monotonic()
    ended = await asyncio.to_thread(child.ended, 30)
    for each in left:
        await each.wait()
    server.close()
    assert ended.state == "failed"
    assert "its limit of 0.03 min is met" in ended.reason
    assert time.monotonic() - began_s < 20


async def _send(writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()
    writer.write_eof()


def test_a_server_that_is_not_there_fails_the_run_without_a_figure(tmp_path: Path) -> None:
    child = Child(tmp_path, orders.url_spec("http://127.0.0.1:9"))
    ended = child.ended()
    assert ended.state == "failed"
    assert ended.reason
    assert not any(isinstance(record, Found | ArmEnd) for record in child.records())


def test_an_order_that_names_no_experiment_says_so(tmp_path: Path, engine: str) -> None:
    child = Child(tmp_path, orders.url_spec(engine, experiment="unheard-of", parameters={}))
    ended = child.ended()
    assert ended.state == "failed"
    assert "unheard-of" in ended.reason
