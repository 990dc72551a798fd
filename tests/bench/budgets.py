"""The budgets of service and console in one run, with `vllmstat` and `htop` beside them.

    python -m tests.bench.budgets [--seconds 60] [--markdown]

One engine that plays a real 64 KB exposition; a real service and its console on a terminal of
120×40 watch it at 1 Hz, and so do `vllmstat` (from the package index, in an environment of its
own) and, for what a terminal program costs here at all, `htop`: all in the same window. Then the
console alone with 32 moving slots, the same behind a dialog, with 3 moving slots and at rest, as
`tui_cost` measures it. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass

from tests.bench import service_cost, tui_cost
from tests.bench.on_terminal import OnTerminal, on_terminal
from tests.bench.service_cost import Bystander, Use

WARM_UP_S = 25.0


@dataclass(frozen=True, slots=True)
class Watched:
    """One program over the window."""

    use: Use
    kib_per_s: float | None
    """To its terminal; None where it has none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    value: float
    unit: str
    budget: float | None

    @property
    def missed(self) -> bool:
        """Whether it is over its budget."""
        return self.budget is not None and self.value > self.budget


def side_by_side(seconds: float) -> dict[str, Watched]:
    """All programs in one window, by name; `service` is all its processes together."""
    port = service_cost.free_port()
    with ExitStack() as stack:
        made = stack.enter_context(service_cost.service(port, 1.0))
        console = [sys.executable, "-m", "a40console"]
        shown: dict[str, OnTerminal] = {
            "console": stack.enter_context(on_terminal(console, made.environment))
        }
        rival = stack.enter_context(service_cost.peer(port, 1.0))
        if rival is not None:
            shown[service_cost.PEER] = rival
        if (htop := shutil.which("htop")) is not None:
            shown["htop"] = stack.enter_context(on_terminal([htop, "--delay=10"]))
        else:
            print("htop is not installed, so it is not measured beside")
        time.sleep(WARM_UP_S)
        ours = {role: Bystander(process) for role, process in service_cost.roles(made).items()}
        others = {name: Bystander(program.process) for name, program in shown.items()}
        before = {name: program.written_bytes for name, program in shown.items()}
        began_s = time.monotonic()
        time.sleep(seconds)
        spent_s = time.monotonic() - began_s
        used = {role: bystander.use() for role, bystander in ours.items()}
        watched = {"service": Watched(service_cost.total(service_cost.Window(used, 0.0)), None)}
        for name, bystander in others.items():
            drawn = (shown[name].written_bytes - before[name]) / spent_s / 1024
            watched[name] = Watched(bystander.use(), drawn)
    return watched


def rows(watched: dict[str, Watched], costs: list[tui_cost.Cost]) -> list[Row]:
    """The table: ours with budgets, the others without."""
    found = []
    for name, one in watched.items():
        ours = name == "service"
        found += [
            Row(f"{name}: CPU", one.use.cpu_percent, "% of a core",
                service_cost.CPU_BUDGET_PERCENT if ours else None),
            Row(f"{name}: memory", one.use.rss_mb, "MB RSS",
                service_cost.MEMORY_BUDGET_MB if ours else None),
        ]  # fmt: skip
        if one.kib_per_s is not None:
            found.append(Row(f"{name}: to the terminal", one.kib_per_s, "KiB/s", None))
    for cost in costs:
        budget = tui_cost.BUDGET[cost.scenario]
        label = f"console, {cost.scenario.partition(':')[2]} slots"
        label = "console, idle" if cost.scenario == "idle" else f"{label} moving"
        label += ", a dialog open" if cost.scenario.startswith("dialog:") else ""
        found += [
            Row(f"{label}: CPU", cost.cpu_percent, "% of a core", budget["cpu_percent"]),
            Row(f"{label}: memory", cost.rss_mb, "MB RSS", budget["rss_mb"]),
            Row(f"{label}: to the terminal", cost.kib_per_s, "KiB/s", budget["kib_per_s"]),
        ]
    first = costs[0]
    found += [
        Row("console: first paint", first.first_paint_s, "s", tui_cost.FIRST_PAINT_S),
        Row("console: a key that changes the view", first.key_ms, "ms", tui_cost.KEY_MS),
    ]
    return found


def ratios(watched: dict[str, Watched]) -> list[str]:
    """Ours ÷ the peer's, which holds on any machine."""
    rival = watched.get(service_cost.PEER)
    if rival is None:
        return []
    both = [watched["service"].use, watched["console"].use]
    cpu = sum(use.cpu_percent for use in both) / rival.use.cpu_percent
    memory = sum(use.rss_mb for use in both) / rival.use.rss_mb
    return [f"service + console ÷ {service_cost.PEER}: CPU {cpu:.2f}, memory {memory:.2f}"]


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the window")
    parser.add_argument("--markdown", action="store_true", help="as the README's table")
    chosen = parser.parse_args()
    watched = side_by_side(chosen.seconds)
    costs = [tui_cost.measure(name, min(chosen.seconds, 30.0)) for name in tui_cost.BUDGET]
    table = rows(watched, costs)
    if chosen.markdown:
        print("| what | measured | budget |\n|---|---|---|")
    for row in table:
        limit = "–" if row.budget is None else f"{row.budget:g}"
        mark = "" if row.budget is None else (" ✖" if row.missed else " ✓")
        text = f"{row.value:.2f} {row.unit}"
        if chosen.markdown:
            print(f"| {row.what} | {text} | {limit}{mark} |")
        else:
            print(f"{row.what:<44}{text:>22}   budget {limit}{mark}")
    print(*ratios(watched), f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", sep="\n")
    return 1 if any(row.missed for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
