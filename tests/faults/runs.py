"""A console on which experiments are run and things go wrong around them."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from a40console.model.codec import encode
from a40console.model.run import RunSpec
from tests.faults.console import FaultConsole

SIMULATED = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 32768
prefix_caching = true
arguments = ["--start-s", "0.2", "--speed", "{speed}"{faults}]
"""
SETTINGS = """
[gateway]
port = 0
[service]
interval_s = 0.2
restart_engine = false
drain_s = 2
[runs]
passing = "yes"
"""
ENDED = ("done", "partial", "failed", "invalid")
Run = dict[str, Any]

LONG = {"streams": "1,2", "output_tokens": "32", "requests": "50", "prompt_tokens": "2000"}
"""A sweep that outlasts whatever is done to it. The engine reads long enough that a busy machine's
client is not taken for the limit."""

SHORT = {"streams": "1", "output_tokens": "16", "prompt_tokens": "32", "requests": "1"}
"""A sweep of a moment."""


class RunConsole(FaultConsole):
    """Starts runs and reads what became of them."""

    def prepare(self) -> None:
        self.control()
        self.configure(SETTINGS)
        self.simulated("sim", speed=1)

    def simulated(self, name: str, *, speed: float, faults: Sequence[str] = ()) -> None:
        """A profile of the simulated engine."""
        words = "".join(f', "--fault", "{fault}"' for fault in faults)
        self.profile(name, SIMULATED.format(speed=speed, faults=words))

    def begin_run(self, experiment: str, **changes: Any) -> str:
        """Ask the service for a run; its id."""
        result = self.asked_for(experiment, **changes)
        assert result["state"] == "done", result
        run_id: str = result["result"]["id"]
        return run_id

    def asked_for(self, experiment: str, **changes: Any) -> dict[str, Any]:
        """What became of asking the service for a run."""
        asked = {"preset": "quick", "accept_intrusion": True, **changes}
        body = {"spec": json.dumps(encode(RunSpec(experiment=experiment, **asked)))}
        with self._http() as client:
            result: dict[str, Any] = client.post("/v1/commands/run.start", json=body).json()
            deadline_s = time.monotonic() + 30
            while result.get("state") == "running":
                assert time.monotonic() < deadline_s, result
                time.sleep(0.05)
                result = client.get(f"/v1/commands/{result['id']}").json()
        return result

    def run_of(self, run_id: str) -> Run:
        return self._asked(f"/v1/runs/{run_id}")  # type: ignore[no-any-return]

    def listed(self) -> dict[str, Run]:
        return {run["id"]: run for run in self._asked("/v1/runs")}

    def _asked(self, path: str) -> Any:
        """What the service tells; one that is away is started, as a command would."""
        if not self._answers():
            self.run("runs", "list")
        with self._http() as client:
            return client.get(path).raise_for_status().json()

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as door:
            return door.connect_ex(str(self.paths.control_socket)) == 0

    def until_run(self, run_id: str, holds: Callable[[Run], bool], timeout_s: float = 60) -> Run:
        """The run as soon as something holds of it."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            run = self.listed().get(run_id, {"state": "not there"})
            if holds(run):
                return run
            assert time.monotonic() < deadline_s, (run, self.output_of(run_id))
            time.sleep(0.1)

    def until_measuring(self, run_id: str, samples: int) -> None:
        """Wait until it has recorded so many requests, the warm-up's first."""
        self.wait_for(lambda: self.records(run_id).count("sample") >= samples, 60)

    def until_ended(self, run_id: str, timeout_s: float = 90) -> Run:
        """The run once it has ended and the ledger has it."""
        self.until_run(run_id, lambda run: run["state"] in ENDED, timeout_s)
        self.wait_for(lambda: self.has_document(run_id), 30)
        return self.run_of(run_id)

    def folder(self, run_id: str) -> Path:
        return self.paths.runs / run_id

    def records(self, run_id: str) -> list[str]:
        """The kinds of what it has recorded on the disk."""
        file = self.folder(run_id) / "run.jsonl"
        if not file.exists():
            return []
        return [json.loads(line)["kind"] for line in file.read_text().splitlines() if _whole(line)]

    def samples(self, run_id: str) -> list[dict[str, Any]]:
        """The requests that the ledger has of it."""
        return self._document(run_id)["samples"]  # type: ignore[no-any-return]

    def arm_ends(self, run_id: str) -> list[dict[str, Any]]:
        return self._document(run_id)["arm_ends"]  # type: ignore[no-any-return]

    def has_document(self, run_id: str) -> bool:
        """Whether the ledger has it."""
        with self._http() as client:
            return client.get(f"/v1/runs/{run_id}/document").status_code == httpx.codes.OK

    def _document(self, run_id: str) -> dict[str, Any]:
        with self._http() as client:
            answer = client.get(f"/v1/runs/{run_id}/document").raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    def _http(self) -> httpx.Client:
        there = httpx.HTTPTransport(uds=str(self.paths.control_socket), verify=False)
        return httpx.Client(transport=there, base_url="http://service", timeout=30)

    def child(self, run_id: str) -> psutil.Process:
        return psutil.Process(json.loads((self.folder(run_id) / "child.json").read_text())["pid"])

    def output_of(self, run_id: str) -> str:
        file = self.folder(run_id) / "output.log"
        return file.read_text() if file.exists() else ""


def _whole(line: str) -> bool:
    return line.startswith("{") and line.endswith("}")


def figures(run: Run) -> list[float]:
    """Every number that the run's tables show."""
    result = run["result"]
    if "missing" in result:
        return []
    cells = [cell for table in result["tables"] for row in table["rows"] for cell in row]
    return [cell for cell in cells if isinstance(cell, int | float)]


@contextmanager
def run_console(prefix: Sequence[str] = (), **variables: str) -> Iterator[RunConsole]:
    """One with nothing running, closed at the end, with nothing left of it."""
    home = Path(tempfile.mkdtemp(prefix="a40r-", dir="/tmp"))
    made = RunConsole(home, prefix=prefix, **variables)
    made.prepare()
    try:
        yield made
    finally:
        try:
            made.close()
        finally:
            shutil.rmtree(home, ignore_errors=True)


def assert_whole(run: Run) -> None:
    """It was measured to its end; on a busy machine its client may have been the limit."""
    assert run["state"] == "done" or _was_saturated(run), run


def assert_broken_off(run: Run, why: str) -> None:
    """It keeps what it measured till then, says why, and concludes nothing."""
    assert (run["state"] == "partial" and why in run["reason"]) or _was_saturated(run), run
    assert_no_verdict(run)


def assert_no_verdict(run: Run) -> None:
    """Of a run that did not end well nothing is concluded."""
    result = run["result"]
    assert "missing" in result or result["verdict"]["kind"] == "none", result


def _was_saturated(run: Run) -> bool:
    return run["state"] == "invalid" and "the client was the limit" in run["reason"]
