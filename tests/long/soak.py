"""Memory of console and service over a simulated day: `python -m tests.long.soak --hours 24`.

Row 46 of the faults.

An hour is 3,600 snapshots. `--service sim` runs the real service on a simulated engine with
clients, at the 20 snapshots a second that it makes at most (a day takes 72 minutes); `--service
fake` feeds the console alone, at 100 a second (a day takes 15 minutes). The console is on a
terminal, with a key pressed now and then. Exit code 1 where either grows by 1 MB an hour or more
after the first tenth.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from a40console.commands.demo import PROFILE, crowd, demo_home
from a40console.config import Settings
from a40console.paths import Paths, locate
from a40console.profiles import loader
from tests.tui.served import CONSOLE, served
from tests.tui.slow_link import SlowLink

LIMIT_MB_PER_HOUR = 1.0
SNAPSHOTS_AN_HOUR = 3600
RATES = {"sim": 20, "fake": 100}
KEYS = ("2", "3", "4", "5", "1", "w", "\x1b", "X", "\x1b", "?", "\x1b", "e", "\x1b", "[", "]", "0")
SERVICES = ("a40console.service.", "a40console serve", "socket_service")
MB = 1e6


@contextmanager
def simulated() -> Iterator[tuple[Paths, dict[str, str]]]:
    """The real service on a simulated engine that is 20 times as fast, with clients at work."""
    with demo_home(Settings(), locate()) as paths:
        settings = paths.config_file.read_text() + "[service]\ninterval_s = 0.05\n"
        paths.config_file.write_text(settings)
        shipped = Path(loader.__file__).with_name(f"{PROFILE}.toml").read_text()
        paths.profiles.mkdir()
        quick = shipped.replace("arguments = [", 'arguments = ["--speed", "20", ')
        (paths.profiles / f"{PROFILE}.toml").write_text(quick)
        with crowd(paths):
            yield paths, dict(os.environ)


@contextmanager
def fake() -> Iterator[tuple[Paths, dict[str, str]]]:
    """The fake service, a hundred snapshots a second."""
    with served("rushing:8") as made:
        yield made.paths, made.environment


def service_mb(paths: Paths) -> float:
    """Resident memory of the processes that serve this home."""
    found = 0.0
    for process in psutil.process_iter(["cmdline", "environ"]):
        with_home = (process.info["environ"] or {}).get("A40CONSOLE_HOME") == str(paths.home)
        words = " ".join(process.info["cmdline"] or [])
        if with_home and any(module in words for module in SERVICES):
            found += process.memory_info().rss / MB
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """MB an hour of (hour, MB) readings, by least squares."""
    if len(points) < 2:
        return 0.0
    hours, megabytes = zip(*points, strict=True)
    return statistics.linear_regression(hours, megabytes).slope


def soak(paths: Paths, environment: dict[str, str], *, hours: float, rate: int) -> int:
    """Run so many simulated hours; the exit code."""
    variables = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    readings: list[tuple[float, float, float]] = []
    keys = itertools.cycle(KEYS)
    began_s = time.monotonic()
    step_s = max(2.0, hours * SNAPSHOTS_AN_HOUR / rate / 200)
    print(f"{'hour':>6} {'console MB':>11} {'service MB':>11}")
    with SlowLink(CONSOLE, variables, bytes_per_s=10e6, delay_s=0.0) as link:
        console = psutil.Process(link.pid)
        while (hour := (time.monotonic() - began_s) * rate / SNAPSHOTS_AN_HOUR) < hours:
            link.run(step_s)
            link.output.clear()
            link.arrivals.clear()
            link.press(next(keys))
            readings.append((hour, console.memory_info().rss / MB, service_mb(paths)))
            print("{:6.2f} {:11.1f} {:11.1f}".format(*readings[-1]), flush=True)
    warm = readings[len(readings) // 10 :]
    code = 0
    for column, name in ((1, "console"), (2, "service")):
        grown = slope([(reading[0], reading[column]) for reading in warm])
        code |= grown >= LIMIT_MB_PER_HOUR
        print(f"{name}: {grown:+.3f} MB/h over {hours:g} simulated hours")
    return int(code)


def main() -> int:
    """Soak as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--service", choices=tuple(RATES), default="sim")
    options = parser.parse_args()
    surroundings = simulated if options.service == "sim" else fake
    with surroundings() as (paths, environment):
        return soak(paths, environment, hours=options.hours, rate=RATES[options.service])


if __name__ == "__main__":
    sys.exit(main())
