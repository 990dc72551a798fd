"""A console whose engine is the stand-in, with the means to make things go wrong around it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.live.console import SCHEMA, Console

ROOT = Path(__file__).parents[2]
FAKE = """\
#!{python}
import sys

sys.path.insert(0, {root!r})
from tests.faults.fake_vllm.life import main

main()
"""
INTERVAL_S = 0.3
Snapshot = dict[str, Any]

PROFILE = """
kind = "vllm"
model = "fake"
executable = "{executable}"
plugin = false
max_model_len = 4096
start_timeout_s = 30
stall_after_s = 2
{settings}
[environment]
VLLM_CPU_KVCACHE_SPACE = "1"
FAKE_VLLM_CONTROL = "{control}"
"""


class FaultConsole(Console):
    """Runs commands, of which none may ever show a traceback.

    Args:
        home: The private home.
        prefix: What stands before every command: a way into a namespace or a control group.
        variables: Added to the environment.
    """

    def __init__(self, home: Path, *, prefix: Sequence[str] = (), **variables: str) -> None:
        super().__init__(home, **variables)
        self.prefix = tuple(prefix)
        self.wishes = home.with_name(f"{home.name}-control.json")
        self.executable = home.with_name(f"{home.name}-vllm")
        self.output = home.with_name(f"{home.name}-serve.out")

    def prepare(self) -> None:
        """The stand-in as a program, its profile, and settings that make the service quick."""
        self.executable.write_text(FAKE.format(python=sys.executable, root=str(ROOT)))
        self.executable.chmod(0o755)
        self.control()
        self.settings()
        self.fake_profile("fake")

    def settings(self, **service: str) -> None:
        lines = {"interval_s": str(INTERVAL_S), **service}
        table = "".join(f"{key} = {value}\n" for key, value in lines.items())
        self.configure(f"[gateway]\nport = 0\n[service]\n{table}")

    def fake_profile(self, name: str, settings: str = "") -> None:
        self.profile(
            name,
            PROFILE.format(executable=self.executable, control=self.wishes, settings=settings),
        )

    def control(self, **wishes: Any) -> None:
        """What the stand-in does from now on; what is not named goes back to its default."""
        fresh = self.wishes.with_suffix(".new")
        fresh.write_text(json.dumps(wishes))
        fresh.replace(self.wishes)

    def command(self, *words: str) -> list[str]:
        return [*self.prefix, sys.executable, "-m", "a40console", *words]

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stdout + done.stderr, (words, done.stdout, done.stderr)
        return done

    def refused(self, code: int, *words: str, timeout_s: float = 60) -> str:
        """What a command says that must end with this exit code."""
        done = self.run(*words, timeout_s=timeout_s)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def serve(self, *words: str) -> None:
        if self.service is not None:
            self.service.wait(30)
        with self.output.open("ab") as output:
            self.service = subprocess.Popen(
                self.command("serve", *words),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.wait_for(lambda: self.run("status", "--json").returncode == 0, 30)

    def end_service(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the service that `serve` started, as by a signal from outside."""
        assert self.service is not None
        self.service.send_signal(number)
        self.service.wait(30)
        self.service = None

    def until(
        self, holds: Callable[[Snapshot], Any], timeout_s: float = 20, what: str = ""
    ) -> Snapshot:
        """The first snapshot of which something holds, as `watch --json` prints them."""
        deadline_s = time.monotonic() + timeout_s
        last: Snapshot | None = None
        while True:
            for snapshot in self._watched(deadline_s):
                if holds(last := snapshot):
                    return snapshot
            assert time.monotonic() < deadline_s, (what, last and shown(last))
            time.sleep(0.1)

    def _watched(self, deadline_s: float) -> Iterator[Snapshot]:
        """Snapshots until the deadline, or until the service ends the stream."""
        process = subprocess.Popen(
            self.command("watch", "--json"),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        try:
            for line in lines_until(process.stdout.fileno(), deadline_s):
                assert "Traceback" not in line
                if line.startswith('{"schema"'):
                    snapshot = json.loads(line)
                    SCHEMA.validate(snapshot)
                    yield snapshot
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def until_state(self, state: str, timeout_s: float = 20) -> Snapshot:
        return self.until(lambda snapshot: snapshot["engine"]["state"] == state, timeout_s, state)

    def events(self) -> list[dict[str, Any]]:
        """The journal on the disk."""
        lines = self.paths.events.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def event_kinds(self) -> list[str]:
        return [event["kind"] for event in self.events()]

    def ask(self, *, max_tokens: int = 3) -> str:
        """A short request through the gateway; what the model said."""
        variables = self.client_environment()
        answer = httpx.post(
            f"{variables['OPENAI_BASE_URL']}/chat/completions",
            json={
                "model": "fake",
                "messages": [{"role": "user", "content": "hello"}],
                "max_tokens": max_tokens,
            },
            headers={"authorization": f"Bearer {variables['OPENAI_API_KEY']}"},
            timeout=30,
        )
        answer.raise_for_status()
        text: str = answer.json()["choices"][0]["message"]["content"]
        return text

    def close(self) -> None:
        try:
            super().close()
            self._check_logs()
        finally:
            for path in (self.wishes, self.executable, self.output):
                path.unlink(missing_ok=True)

    def _check_logs(self) -> None:
        for path in (self.output, self.paths.service_log, self.paths.state / "service.out"):
            with suppress(FileNotFoundError):
                text = path.read_text()
                assert "Traceback" not in text, f"{path.name}: {text}"


class Watch:
    """Every snapshot of a while, as `watch --json` prints them."""

    def __init__(self, console: FaultConsole) -> None:
        self._console = console
        self.snapshots: list[Snapshot] = []

    def __enter__(self) -> Watch:
        self._output = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            self._console.command("watch", "--json"),
            env=self._console.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        while not os.fstat(self._output.fileno()).st_size:
            assert self._process.poll() is None
            time.sleep(0.05)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(20)
        with self._output as output:
            output.seek(0)
            text = output.read()
        assert "Traceback" not in text
        self.snapshots = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        assert self.snapshots, text
        for snapshot in self.snapshots:
            SCHEMA.validate(snapshot)


@contextmanager
def fault_console(prefix: Sequence[str] = (), **variables: str) -> Iterator[FaultConsole]:
    """A console in a short private home, closed at the end, with nothing left of it."""
    home = Path(tempfile.mkdtemp(prefix="a40f-", dir="/tmp"))
    made = FaultConsole(home, prefix=prefix, **variables)
    made.prepare()
    try:
        yield made
    finally:
        try:
            made.close()
        finally:
            shutil.rmtree(home, ignore_errors=True)


def lines_until(fd: int, deadline_s: float) -> Iterator[str]:
    """Complete lines from a pipe, until it ends or the deadline has come."""
    pending = b""
    while (left_s := deadline_s - time.monotonic()) > 0:
        ready, _, _ = select.select([fd], [], [], left_s)
        data = os.read(fd, 1 << 20) if ready else b""
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        yield from (line.decode() for line in lines)


def missing(figure: object) -> str:
    """The reason of a figure that must be missing."""
    assert isinstance(figure, dict), f"{figure!r} is claimed"
    assert "missing" in figure, f"{figure!r} is claimed"
    reason: str = figure["missing"]
    return reason


def number(figure: Any) -> float | None:
    """The number of a figure, estimated or not; None where it is missing."""
    if isinstance(figure, dict):
        return figure.get("value")
    return float(figure)


def source(snapshot: Snapshot, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in snapshot["sources"] if s["name"] == name)
    return found


def finding(snapshot: Snapshot, code: str) -> dict[str, Any] | None:
    return next((found for found in snapshot["findings"] if found["code"] == code), None)


def shown(snapshot: Snapshot) -> Snapshot:
    """What matters of a snapshot in a failure."""
    return {name: snapshot[name] for name in ("engine", "throughput", "findings", "sources")}


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def process_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)
