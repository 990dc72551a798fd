"""`kill -9` in the midst of a switch: whom, when, and what must hold whoever it was."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
import psutil

from tests.faults.console import FAKE, ROOT
from tests.faults.load import Load
from tests.faults.switching import PROFILE, Switching
from tests.faults.terminals import Terminal

PHASES = ("drain", "stop", "start", "canary", "gate")
BACK_S = 40.0
SETTINGS = """
[gateway]
port = 0
[service]
interval_s = 0.1
drain_s = 20
"""
STAND_IN = """
kind = "vllm"
model = "fake"
served_name = "coder"
executable = "{executable}"
plugin = false
max_model_len = 4096
tool_call_parser = "hermes"
start_timeout_s = 20
stall_after_s = 5
[environment]
VLLM_CPU_KVCACHE_SPACE = "1"
FAKE_VLLM_CONTROL = "{control}"
"""
LOSS_WORDS = (
    *("cut short", "broke off", "ended before it answered"),
    *("EngineCore encountered an issue", "validation errors for ChatCompletionStreamResponse"),
)
"""What a client reads of an answer that had begun in an engine that was killed, or in vLLM's own
words in one that was told to end."""


class KillConsole(Switching):
    """A console whose processes are killed."""

    def engine(self, name: str, *faults: str, start_s: float, speed: int) -> None:
        """A profile of the simulated engine, which is one process."""
        words = ["--start-s", str(start_s * speed), "--speed", str(speed)]
        words += [word for fault in faults for word in ("--fault", fault)]
        arguments = ", ".join(json.dumps(word) for word in words)
        model = "qwen3-coder-30b"
        self.profile(
            name, PROFILE.format(model=model, arguments=arguments, ladder="", served="coder")
        )

    @cached_property
    def door(self) -> str:
        """The gateway, asked for once: its port is the service's as long as that lives."""
        return self.gateway

    @cached_property
    def _http(self) -> httpx.Client:
        """Kept, as one that is made anew takes longer than some phases."""
        there = httpx.HTTPTransport(uds=str(self.paths.control_socket), verify=False)
        return httpx.Client(transport=there, timeout=10)

    def now(self) -> dict[str, Any]:
        """The snapshot of this moment."""
        snapshot: dict[str, Any] = self._http.get("http://service/v1/snapshot").json()
        return snapshot

    def ask(self, command: str) -> None:
        """Give a command at this moment: one by the command line is a second later."""
        who = {"x-a40console-caller": "bob@pod, pid 8"}
        answer = self._http.post(f"http://service/v1/commands/{command}", json={}, headers=who)
        assert answer.status_code == 202, answer.text

    def close(self) -> None:
        self._http.close()
        super().close()

    def stand_in(self, name: str, **wishes: Any) -> None:
        """A profile of the stand-in, of which server, core and workers are processes each."""
        executable = self.home / "vllm"
        executable.write_text(FAKE.format(python=sys.executable, root=str(ROOT)))
        executable.chmod(0o755)
        control = self.home / f"{name}-wishes.json"
        control.write_text(json.dumps({"dies_with_core": True, **wishes}))
        self.profile(name, STAND_IN.format(executable=executable, control=control))

    def seen(self, holds: Any, timeout_s: float = BACK_S) -> dict[str, Any]:
        """The first snapshot of which something holds; a service that is away is waited for."""
        deadline_s, last = time.monotonic() + timeout_s, "no answer"
        while time.monotonic() < deadline_s:
            try:
                snapshot = self.now()
            except httpx.HTTPError as error:
                last = repr(error)
            else:
                if holds(snapshot):
                    return snapshot
                last = json.dumps([snapshot["engine"], snapshot["requests"]["gate"]])
            time.sleep(0.01)
        raise AssertionError(last)

    def in_phase(self, phase: str) -> dict[str, Any]:
        """The snapshot of a switch that has come to a phase."""
        if phase == "gate":
            self.wait_for_event("engine.switched")
            return self.now()
        return self.seen(lambda now: _in_phase(now["engine"], phase), 20)

    def wait_for_event(self, kind: str, timeout_s: float = 20) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not self.events(kind):
            assert time.monotonic() < deadline_s, self.events()
            time.sleep(0.01)

    def settled(self, killed: int = 0) -> dict[str, Any]:
        """The first snapshot in which an engine serves clients, or none is expected to.

        Args:
            killed: A process that the snapshot may not tell of any more.
        """

        def holds(now: dict[str, Any]) -> bool:
            told = (now["engine"]["pid"], now["service"]["pid"])
            return killed not in told and _is_settled(now)

        return self.seen(holds)

    def living(self) -> dict[int, str]:
        """Keepers and engines of this home, by pid: `keeper` or `engine`."""
        runs = str(self.paths.engine_runs)
        found = {}
        for process in psutil.process_iter():
            try:
                line = " ".join(process.cmdline())
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if "keeper.py" in line and runs in line:
                    found[process.pid] = "keeper"
                elif process.cwd().startswith(runs):
                    found[process.pid] = "engine"
            except (psutil.Error, OSError):
                continue
        return found

    def assert_true(self, snapshot: dict[str, Any], keeper_killed: bool = False) -> None:
        """What the snapshot tells is what the process table and the sockets tell."""
        engine, living = snapshot["engine"], self.living()
        engines = {pid for pid, what in living.items() if what == "engine"}
        keepers = {pid for pid, what in living.items() if what == "keeper"}
        if engine["state"] != "serving":
            assert living == {}, (living, engine)
            assert self.sockets() == []
            return
        leader = int(engine["pid"])
        family = {leader, *(each.pid for each in psutil.Process(leader).children(recursive=True))}
        assert leader in engines, (living, engine)
        assert engines <= family, (living, engine)
        parent = psutil.Process(leader).ppid()
        assert keepers == ({parent} & keepers if keeper_killed else {parent}), (living, parent)
        assert self.sockets() == [self.engine_socket()], living

    def sockets(self) -> list[str]:
        """The sockets of engines."""
        found = {path for path in self.paths.runtime.rglob("*") if path.is_socket()}
        return sorted(str(path) for path in found - {self.paths.control_socket})


def _in_phase(engine: dict[str, Any], phase: str) -> bool:
    if phase == "drain":
        return bool(engine["state"] == "draining")
    if phase == "stop":
        return bool(engine["state"] == "stopping")
    if phase == "start":
        return bool(engine["state"] == "starting" and engine["phase"] in ("load", "compile"))
    return bool(engine["phase"] == phase)


def _is_settled(snapshot: dict[str, Any]) -> bool:
    if "switch" in snapshot or snapshot["requests"]["gate"] is not None:
        return False
    return snapshot["engine"]["state"] in ("serving", "failed", "stopped", "absent")


def victim(who: str, snapshot: dict[str, Any], asking: int) -> int:
    """The process to kill; `asking` is the command's or the console's."""
    service, engine = snapshot["service"]["pid"], snapshot["engine"]["pid"]
    match who:
        case "server":
            return int(engine)
        case "core":
            (core,) = psutil.Process(engine).children()
            return core.pid
        case "keeper":
            return psutil.Process(engine).ppid()
        case "worker":
            return int(service)
        case "supervisor":
            return psutil.Process(service).ppid()
    return asking


@dataclass
class Cell:
    """What became of one victim in one phase."""

    who: str
    phase: str
    serves: str
    back_s: float
    answered: int
    losses: dict[str, int] = field(default_factory=dict)

    def line(self) -> str:
        lost = ", ".join(f"{count} x {what}" for what, count in sorted(self.losses.items()))
        return (
            f"{self.who:11} {self.phase:7} {self.serves:16} {self.back_s:10.1f} s "
            f"{self.answered:10}   {lost or 'none'}"
        )


def loss_in_words(error: str) -> str:
    """Of which kind a failure was, as its client saw it."""
    if error[:3].isdigit() and not error.startswith("200"):
        return error[:3]
    if any(words in error for words in LOSS_WORDS):
        return "cut short, said so"
    return error.partition("(")[0] if "Error" in error else error[:60]


def losses(clients: Load) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in clients.errors:
        kind = loss_in_words(each.error)
        found[kind] = found.get(kind, 0) + 1
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


class Asking:
    """Whoever asks for a switch: a command, or a console on a terminal."""

    def __init__(self, console: KillConsole, profile: str, *, by_console: bool = False) -> None:
        self._link = self._command = None
        if not by_console:
            self._command = console.begin("engine", "switch", profile, "--yes")
            self.pid = self._command.pid
            return
        self._link = Terminal([sys.executable, "-m", "a40console"], console.environment)
        self.pid = self._link.process.pid
        number = "12"[profile == "beta"]
        for key, text in (("", "SERVING"), ("m", "beta"), (number, "Clients wait"), ("y", "")):
            if key:
                self._link.type(key)
            if text:
                self._link.until(text)

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said."""
        if self._command is not None:
            said, _ = self._command.communicate(timeout=60)
            return self._command.returncode, said
        if self._link is not None:
            self._link.process.send_signal(signal.SIGTERM)
            self._link.close()
        return 0, ""
