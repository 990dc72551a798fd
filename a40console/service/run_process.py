"""The process of a run as the service sees it: started, found again, asked to end, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from a40console.engines.signalling import send_signal
from a40console.engines.tree import ProcFs
from a40console.ledger.ingest import OUTPUT
from a40console.paths import Paths
from a40console.service.run_folder import RunFolder
from a40console.service.run_place import TOKEN_VARIABLE

MODULE = "a40console.service.run_child"
GRACE_S = 30.0
"""How long a run that was asked to end may take to write down what it has."""


class RunProcess:
    """The process that carries one run out; known by pid and start, never by pid alone."""

    def __init__(
        self,
        folder: RunFolder,
        started: subprocess.Popen[bytes] | None = None,
        proc: ProcFs | None = None,
    ) -> None:
        """With the process, where this service started it."""
        self.folder = folder
        self._started = started
        self._proc = proc or ProcFs()
        self._asked_s: float | None = None

    @classmethod
    def start(
        cls, folder: RunFolder, paths: Paths, token: str, environment: Mapping[str, str]
    ) -> RunProcess:
        """Start one in a session of its own; raises OSError.

        Args:
            folder: The run's, with its order.
            paths: Our home, which is its too.
            token: What the target asks for; it reaches the process by its environment alone.
            environment: Ours.
        """
        given = dict(environment)
        for name in (TOKEN_VARIABLE, "SSH_CONNECTION"):  # it is called by the run, not by a person
            given.pop(name, None)
        if given.get("A40CONSOLE_HOME"):
            given["A40CONSOLE_HOME"] = str(paths.home)
        if token:
            given[TOKEN_VARIABLE] = token
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        output = os.open(folder.path / OUTPUT, flags, 0o600)
        try:
            started = subprocess.Popen(
                (sys.executable, "-P", "-m", MODULE, str(folder.path)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env=given,
            )
        finally:
            os.close(output)
        return cls(folder, started)

    def lives(self) -> bool:
        """Whether it is there, be it started by us or by a service before us."""
        if self._started is not None and self._started.poll() is None:
            return True
        return self._leader() is not None

    def ask_to_end(self, why: str) -> None:
        """Ask it to end; what it measured till then it still writes down."""
        if self._asked_s is not None:
            return
        self._asked_s = time.monotonic()
        with suppress(OSError):  # a full disk: the signal alone will do
            self.folder.ask_to_end(why)
        self._signal(signal.SIGTERM)

    def end_if_late(self) -> bool:
        """End it for good where it was asked to end and has not within the grace; whether so."""
        if self._asked_s is None or time.monotonic() - self._asked_s < GRACE_S:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """End it and everything in its session."""
        if (pid := self._leader() or self._running_pid()) is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self._leader() or self._running_pid()) is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _leader(self) -> int | None:
        """The recorded process, where it is proven that it still is that one."""
        child = self.folder.child()
        if child is None or child.boot_id != self._proc.boot_id():
            return None
        return child.id.pid if self._proc.is_alive(child.id) else None

    def _running_pid(self) -> int | None:
        started = self._started
        return started.pid if started is not None and started.poll() is None else None


def end_runs(runs: Path) -> None:
    """End at once whatever carries a run out whose folder is, or was, one of these.

    By the words of the processes: a demo's folder may be gone before its runs are.

    Args:
        runs: The folder of the runs' folders.
    """
    proc = ProcFs()
    for pid, process in proc.read_table().items():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_one = any(word.startswith(os.fsencode(runs) + b"/") for word in words)
        if is_one and MODULE.encode() in words:
            send_signal(proc, process.id, signal.SIGKILL)
