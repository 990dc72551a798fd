"""Whether the logs screen answers keys while its file grows by 10,000 lines a second.

    python -m tests.bench.log_flood [--seconds 20] [--rate 10000] [--json]

A real service reads a real file that a process of its own writes at that rate, and the console runs
on a real pseudo-terminal at 120×40. Measured are the time from a key to its output, CPU and memory
of the console, bytes to the terminal, and what it says that it skipped. Exit code 1 when a budget
is missed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kept_output import keep_output
from tests.tui.terminal_session import TerminalSession

KEY_MS = 50.0
CALM_KEY_MS = 25.0
"""So much more than before the flood is forgiven on a machine that is too busy for the budget."""

RSS_MB = 90.0
KEYS = 20

WRITER = """
import sys, time
path, rate, number, began = sys.argv[1], int(sys.argv[2]), 0, time.monotonic()
levels = ("INFO", "INFO", "INFO", "WARNING", "INFO", "DEBUG", "INFO", "ERROR")
with open(path, "a", buffering=1 << 16) as file:
    while True:
        due = int((time.monotonic() - began) * rate)
        for number in range(number, due):
            file.write(f"(APIServer pid=7) {levels[number % 8]} 11-29 14:00:00 [serving.py:929] "
                       f"request {number} of a flood that nobody can read\\n")
        number = max(number, due)
        file.flush()
        time.sleep(0.01)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """One run's figures."""

    rate_lines_per_s: int
    written_lines_per_s: float
    key_ms: float
    """Median wall time from a key to its output."""

    key_ms_worst: float
    calm_key_ms: float
    """The same before the flood: what the machine costs without it."""

    cpu_percent: float
    rss_mb: float
    kib_per_s: float
    skipped: str


class FloodSession(TerminalSession):
    """The console before the real service, with one kept output."""

    output_file: Path

    def _start_service(self, scenario: str) -> subprocess.Popen[bytes]:
        self.output_file = keep_output(self.paths, "2026-11-29T12-00-00-flood", "begun\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "a40console", "serve", "--no-engine", "--port", "0"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline_s = time.monotonic() + 20
        while not self.paths.control_socket.exists() and time.monotonic() < deadline_s:
            time.sleep(0.05)
        return process


def key_ms(session: FloodSession, number: int) -> float:
    """Milliseconds from `F` to the word that it changes."""
    session.read(0.11 + 0.037 * (number % 5))
    session.press("F")
    until = b"held" if number % 2 == 0 else b"following"
    return 1000 * session.read(2.0, until=until)


def measure(rate: int, seconds: float) -> Flood:
    """Run the flood and measure."""
    with FloodSession() as session:
        (session.paths.config_file.parent).mkdir(parents=True, exist_ok=True)
        session.read(15.0, until=b"Overview")
        session.press("3")
        session.read(10.0, until=b"following")
        session.read(2.0)
        calm = [key_ms(session, number) for number in range(KEYS)]
        command = [sys.executable, "-c", WRITER, str(session.output_file), str(rate)]
        with subprocess.Popen(command) as writer:
            session.read(3.0)
            size, cpu_s = session.output_file.stat().st_size, _cpu_s(session)
            sent, began_s = len(session.output), time.perf_counter()
            session.read(seconds)
            spent_s = time.perf_counter() - began_s
            grown, used_s = session.output_file.stat().st_size - size, _cpu_s(session) - cpu_s
            sent = len(session.output) - sent
            keys = [key_ms(session, number) for number in range(KEYS)]
            rss_mb = session.process.memory_info().rss / 2**20
            session.read(3.0)
            writer.kill()
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b" ", bytes(session.output[-400_000:]))
        told = re.findall(rb"([\d,. \xe2\x80\xaf]+) lines skipped", text)
    line_bytes = 105.0
    return Flood(
        rate_lines_per_s=rate,
        written_lines_per_s=grown / line_bytes / spent_s,
        key_ms=statistics.median(keys),
        key_ms_worst=max(keys),
        calm_key_ms=statistics.median(calm),
        cpu_percent=100 * used_s / spent_s,
        rss_mb=rss_mb,
        kib_per_s=sent / spent_s / 1024,
        skipped=told[-1].decode(errors="replace").strip() if told else "nothing",
    )


def _cpu_s(session: TerminalSession) -> float:
    times = session.process.cpu_times()
    return times.user + times.system


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    flood = measure(options.rate, options.seconds)
    if options.json:
        print(json.dumps(asdict(flood), indent=1))
    else:
        for name, value in asdict(flood).items():
            print(f"{name:<22} {value if isinstance(value, str) else f'{value:10.1f}'}")
    allowed_ms = max(KEY_MS, flood.calm_key_ms + CALM_KEY_MS)
    return int(flood.key_ms > allowed_ms or flood.rss_mb > RSS_MB)


if __name__ == "__main__":
    sys.exit(main())
