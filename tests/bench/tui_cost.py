"""What the console costs: CPU, memory, bytes to the terminal, first paint and key latency.

    python -m tests.bench.tui_cost [--seconds 30] [--json]

Runs the console on a real pseudo-terminal at 120×40 against a service that sends one snapshot a
second, and compares with the budgets. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass, replace

from tests.tui.sequences import text
from tests.tui.terminal_session import CONSOLE, TerminalSession

WARM_UP_S = 6.0
KEYS = 16
ESCAPE = "\x1b"
HELP = b"Commands"
"""What is written in the help and not behind it."""

BUDGET = {
    "moving:32": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 25.0},
    "dialog:32": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 25.0},
    "moving:3": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 10.0},
    "idle": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 0.5},
}
"""`dialog:32` is `moving:32` with the help open over it."""

FIRST_PAINT_S = 0.7
KEY_MS = 50.0

BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [("1", "say('First token')"), ("2", "say('Identity')")]
    def compose(self):
        yield Static("Overview")
    def action_say(self, text):
        self.query_one(Static).update(text)
Bare().run()
"""
"""An empty Textual application: what the machine and the library cost without us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One scenario's figures."""

    scenario: str
    cpu_percent: float
    rss_mb: float
    kib_per_s: float
    first_paint_s: float
    key_ms: float
    """Median wall time from a key that changes the whole screen to its output."""

    key_ms_worst: float
    key_cpu_ms: float
    """CPU of the process for each such key, which other load does not touch."""


def measure(scenario: str, seconds: float, program: str = CONSOLE) -> Cost:
    """Run one scenario and measure it."""
    served = scenario.replace("dialog:", "moving:")
    with TerminalSession(served, program=program) as session:
        session.read(10.0, until=b"Overview")
        first_paint_s = time.perf_counter() - session.started_s
        session.read(WARM_UP_S)
        if served != scenario:
            _open_help(session)
        cpu_s, sent, started = _cpu_s(session), len(session.output), time.perf_counter()
        session.read(seconds)
        spent = time.perf_counter() - started
        used = _cpu_s(session) - cpu_s
        sent = len(session.output) - sent
        rss = session.process.memory_info().rss / 2**20
        if served != scenario:
            session.press(ESCAPE)
            session.read(1.0)
        _key(session, 0), _key(session, 1)  # the second view is loaded at its first use
        delays, key_cpu_s = [], []
        for number in range(KEYS):
            delay, cpu = _key(session, number)
            delays.append(delay)
            key_cpu_s.append(cpu)
    return Cost(
        scenario=scenario,
        cpu_percent=100 * used / spent,
        rss_mb=rss,
        kib_per_s=sent / spent / 1024,
        first_paint_s=first_paint_s,
        key_ms=1000 * statistics.median(delays),
        key_ms_worst=1000 * max(delays),
        key_cpu_ms=1000 * statistics.fmean(key_cpu_s),
    )


def _open_help(session: TerminalSession) -> None:
    begun = len(session.output)
    session.press("?")
    session.read(3.0)
    if HELP not in text(bytes(session.output[begun:])):
        raise RuntimeError("the help did not open, so there is no dialog to measure")


def _cpu_s(session: TerminalSession) -> float:
    times = session.process.cpu_times()
    return times.user + times.system


def _key(session: TerminalSession, number: int) -> tuple[float, float]:
    """Seconds from a key to the output of the view it opens, and the CPU it took."""
    session.read(0.23)
    cpu_s = _cpu_s(session)
    session.press("2" if number % 2 == 0 else "1")
    delay = session.read(1.0, until=b"Identity" if number % 2 == 0 else b"First token")
    return delay, _cpu_s(session) - cpu_s


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    options = parser.parse_args()
    bare = replace(measure("still", 2.0, BARE), scenario="bare")
    costs = [measure(name, options.seconds) for name in BUDGET if options.only in name]
    if options.json:
        print(json.dumps([asdict(cost) for cost in (bare, *costs)], indent=1))
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} cores; an empty Textual application here:")
    print(f"  first paint {bare.first_paint_s:.2f} s, key {bare.key_ms:.0f} ms")
    return 1 if sum(report(cost) for cost in costs) else 0


def report(cost: Cost) -> int:
    """Print one scenario beside its budget; answers how many were missed."""
    budget = BUDGET[cost.scenario] | {"first_paint_s": FIRST_PAINT_S, "key_ms": KEY_MS}
    missed = 0
    for name, limit in budget.items():
        value = getattr(cost, name)
        missed += value > limit
        mark = "✓" if value <= limit else "✖"
        print(f"{cost.scenario:<10} {name:<14} {value:9.2f}  budget {limit:6.2f}  {mark}")
    for name in ("key_ms_worst", "key_cpu_ms"):
        print(f"{cost.scenario:<10} {name:<14} {getattr(cost, name):9.2f}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
