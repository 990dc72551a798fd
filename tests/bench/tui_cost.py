"""What the console costs: CPU, memory, bytes to the terminal, first paint and key latency.

    python -m tests.bench.tui_cost [--seconds 30] [--json]

Runs the console on a real pseudo-terminal at 120×40 against a service that sends one snapshot a
second, and compares with the budgets. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass

from tests.tui.terminal_session import TerminalSession

WARM_UP_S = 6.0
KEYS = 12
BUDGET = {
    "moving:32": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 25.0},
    "moving:3": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 10.0},
    "idle": {"cpu_percent": 3.0, "rss_mb": 60.0, "kib_per_s": 0.5},
}
FIRST_PAINT_S = 0.7
KEY_S = 0.05


@dataclass(frozen=True, slots=True)
class Cost:
    """One scenario's figures."""

    scenario: str
    cpu_percent: float
    rss_mb: float
    kib_per_s: float
    first_paint_s: float
    key_ms_median: float
    key_ms_worst: float


def measure(scenario: str, seconds: float) -> Cost:
    """Run one scenario and measure it."""
    with TerminalSession(scenario) as session:
        session.read(10.0, until=b"Overview")
        first_paint_s = time.perf_counter() - session.started_s
        session.read(WARM_UP_S)
        cpu = session.process.cpu_times()
        bytes_before, started = len(session.output), time.perf_counter()
        session.read(seconds)
        spent = time.perf_counter() - started
        after = session.process.cpu_times()
        used = after.user + after.system - cpu.user - cpu.system
        sent = len(session.output) - bytes_before
        rss = session.process.memory_info().rss / 2**20
        delays = [_key(session, n) for n in range(KEYS)]
    return Cost(
        scenario=scenario,
        cpu_percent=100 * used / spent,
        rss_mb=rss,
        kib_per_s=sent / spent / 1024,
        first_paint_s=first_paint_s,
        key_ms_median=1000 * statistics.median(delays),
        key_ms_worst=1000 * max(delays),
    )


def _key(session: TerminalSession, number: int) -> float:
    """Seconds from a key to the first output of what it opens or closes."""
    session.read(0.37)
    session.press("2" if number % 2 == 0 else "1")
    return session.read(1.0, until=b"Identity" if number % 2 == 0 else b"Prefill")


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    costs = [measure(name, options.seconds) for name in BUDGET if options.only in name]
    if options.json:
        print(json.dumps([asdict(cost) for cost in costs], indent=1))
    missed = 0
    for cost in costs:
        missed += report(cost)
    return 1 if missed else 0


def report(cost: Cost) -> int:
    """Print one scenario beside its budget; answers how many were missed."""
    rows = [(name, getattr(cost, name), limit) for name, limit in BUDGET[cost.scenario].items()]
    rows.append(("first_paint_s", cost.first_paint_s, FIRST_PAINT_S))
    rows.append(("key_ms_median", cost.key_ms_median, 1000 * KEY_S))
    missed = 0
    for name, value, limit in rows:
        ok = value <= limit
        missed += not ok
        mark = "✓" if ok else "✖"
        print(f"{cost.scenario:<10} {name:<14} {value:9.2f}  budget {limit:6.2f}  {mark}")
    print(f"{cost.scenario:<10} {'key_ms_worst':<14} {cost.key_ms_worst:9.2f}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
