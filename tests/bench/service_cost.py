"""What the service costs at 1 Hz on a real 64 KB exposition, with `vllmstat` on the same one.

    python -m tests.bench.service_cost [--seconds 60] [--windows 1] [--interval 1] [--json]

Starts a real service with an engine that plays the exposition, an idle gateway and one reader of
its snapshots, and measures processor time, memory and the reader's bytes. `vllmstat` comes from
the package index into an environment of its own and watches the same engine on a terminal in the
same window. It draws while it reads; what our console draws is `tui_cost`'s to measure. With
`--interval 0.05` an hour's snapshots are made in three minutes, for the growth of memory. Exit code
1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tests.bench.on_terminal import OnTerminal, on_terminal
from tests.live.console import Console, console, processes_of

WARM_UP_S = 20.0
CPU_BUDGET_PERCENT = 2.5
MEMORY_BUDGET_MB = 90.0
PEER = "vllmstat"
SETTINGS = "[gateway]\nport = 0\n[service]\ninterval_s = {interval_s}\n"
ROLES = {"parent": "service.supervisor", "worker": "service.worker", "keeper": "keeper.py"}
"""What tells the service's processes apart, by their command lines."""

PROFILE = """
kind = "vllm"
executable = "{executable}"
model = "smollm2"
max_model_len = 4096
plugin = false
arguments = ["--scrape-port", "{port}"]
[environment]
VLLM_CPU_KVCACHE_SPACE = "1"
"""


@dataclass(frozen=True, slots=True)
class Use:
    """One process over one window."""

    cpu_percent: float
    """Of one core."""

    rss_mb: float
    pss_mb: float
    """Pages shared with other processes counted by share."""

    uss_mb: float
    """Pages that would be free if it ended."""

    growth_mb: float
    """Growth of its own pages within the window."""


@dataclass(frozen=True, slots=True)
class Window:
    """All processes over one window."""

    processes: dict[str, Use]
    reader_bytes_per_s: float


class Bystander:
    """A process as it was at the beginning of a window."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._began_s = time.monotonic()
        self._cpu_s = self._used_s()
        self._uss = process.memory_full_info().uss

    def use(self) -> Use:
        """What it used since."""
        spent_s = time.monotonic() - self._began_s
        cpu_s = self._used_s() - self._cpu_s
        memory = self._process.memory_full_info()
        return Use(
            cpu_percent=100 * cpu_s / spent_s,
            rss_mb=memory.rss / 2**20,
            pss_mb=memory.pss / 2**20,
            uss_mb=memory.uss / 2**20,
            growth_mb=(memory.uss - self._uss) / 2**20,
        )

    def _used_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)


class SnapshotReader:
    """Reads the service's snapshots as one console does, and counts what arrives."""

    def __init__(self, path: Path) -> None:
        self.received_bytes = 0
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(path))
        self._connection.sendall(b"GET /v1/snapshots HTTP/1.1\r\nHost: service\r\n\r\n")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while piece := self._connection.recv(65536):
                self.received_bytes += len(piece)

    def close(self) -> None:
        """Hang up."""
        self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


@contextmanager
def peer(port: int, interval_s: float) -> Iterator[OnTerminal | None]:
    """`vllmstat` on a terminal of 120×40, watching the engine's port; None where it is not had."""
    folder = Path(tempfile.mkdtemp(prefix="a40peer-"))
    try:
        program = _install(folder)
        if program is None:
            yield None
            return
        command = [program, "--url", f"http://127.0.0.1:{port}", "--interval", str(interval_s)]
        with on_terminal(command) as shown:
            yield shown
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _install(folder: Path) -> str | None:
    python = folder / "bin/python"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", PEER],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            last = (done.stderr.strip() or "no reason given").splitlines()[-1]
            print(f"{PEER} could not be installed, so nothing is compared: {last}")
            return None
    return str(folder / "bin" / PEER)


@contextmanager
def service(port: int, interval_s: float) -> Iterator[Console]:
    """A service that serves the playing engine, with nothing else to do."""
    with console() as made:
        made.configure(SETTINGS.format(interval_s=interval_s))
        engine = Path(__file__).with_name("exposition_engine.py")
        made.profile("bench", PROFILE.format(executable=engine, port=port))
        made.serve("--profile", "bench")
        made.succeed("wait", "ready", "--timeout", "60")
        yield made


def roles(made: Console) -> dict[str, psutil.Process]:
    """The service's processes by what they do."""
    assert made.service is not None
    parent = psutil.Process(made.service.pid)
    found: dict[str, psutil.Process] = {}
    for process in [parent, *parent.children(), *processes_of(made.home)]:
        words = f"{' '.join(process.cmdline())} "
        for role, mark in ROLES.items():
            if mark in words:
                found.setdefault(role, process)
    assert found.keys() == ROLES.keys(), found
    return found


def measure(made: Console, rival: psutil.Process | None, seconds: float) -> Window:
    """One window."""
    reader = SnapshotReader(made.paths.control_socket)
    try:
        watched = {role: Bystander(process) for role, process in roles(made).items()}
        if rival is not None:
            watched[PEER] = Bystander(rival)
        began_s, before = time.monotonic(), reader.received_bytes
        time.sleep(seconds)
        received = reader.received_bytes - before
        spent_s = time.monotonic() - began_s
        used = {name: process.use() for name, process in watched.items()}
    finally:
        reader.close()
    return Window(used, received / spent_s)


def median_of(windows: list[Window]) -> Window:
    """The middle of several windows, figure by figure."""
    names = Use.__dataclass_fields__
    return Window(
        {
            name: Use(
                **{
                    figure: statistics.median(getattr(w.processes[name], figure) for w in windows)
                    for figure in names
                }
            )
            for name in windows[0].processes
        },
        statistics.median(window.reader_bytes_per_s for window in windows),
    )


def total(window: Window) -> Use:
    """The service's processes together."""
    ours = [window.processes[role] for role in ROLES]
    return Use(**{name: sum(getattr(use, name) for use in ours) for name in asdict(ours[0])})


def report(window: Window) -> int:
    """Print the figures, the ratios and the budgets; how many budgets were missed."""
    ours = total(window)
    print(f"{'':<10}{'CPU %':>8}{'RSS MB':>9}{'PSS MB':>9}{'USS MB':>9}{'growth MB':>11}")
    rows = {**{role: window.processes[role] for role in ROLES}, "service": ours}
    if (rival := window.processes.get(PEER)) is not None:
        rows[PEER] = rival
    for name, use in rows.items():
        print(
            f"{name:<10}{use.cpu_percent:8.2f}{use.rss_mb:9.1f}{use.pss_mb:9.1f}"
            f"{use.uss_mb:9.1f}{use.growth_mb:11.2f}"
        )
    if rival is not None:
        print(
            f"service ÷ {PEER}: CPU {ours.cpu_percent / rival.cpu_percent:.2f}, "
            f"RSS {ours.rss_mb / rival.rss_mb:.2f}, PSS {ours.pss_mb / rival.pss_mb:.2f}"
        )
    print(f"one reader of snapshots receives {window.reader_bytes_per_s:,.0f} bytes/s")
    budgets = (
        ("CPU %", ours.cpu_percent, CPU_BUDGET_PERCENT),
        ("RSS MB", ours.rss_mb, MEMORY_BUDGET_MB),
    )
    for name, value, budget in budgets:
        print(f"{name:<8}{value:8.2f}  budget {budget:6.2f}  {'✓' if value <= budget else '✖'}")
    return sum(value > budget for _, value, budget in budgets)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of a window")
    parser.add_argument("--windows", type=int, default=1, help="how many; medians are told")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between snapshots")
    parser.add_argument("--alone", action="store_true", help=f"without {PEER}")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    port = free_port()
    with service(port, chosen.interval) as made:
        if chosen.alone:
            windows = _windows(made, None, chosen.seconds, chosen.windows)
        else:
            with peer(port, chosen.interval) as rival:
                other = None if rival is None else rival.process
                windows = _windows(made, other, chosen.seconds, chosen.windows)
    if chosen.json:
        print(json.dumps([asdict(window) for window in windows], indent=1))
    return 1 if report(median_of(windows)) else 0


def _windows(
    made: Console, rival: psutil.Process | None, seconds: float, count: int
) -> list[Window]:
    time.sleep(WARM_UP_S)
    return [measure(made, rival, seconds) for _ in range(count)]


if __name__ == "__main__":
    sys.exit(main())
