"""What a switch costs over a bare restart of the same engine, in one run.

The simulated engine, at the speed of the A40 that it is fitted to, is restarted by hand (SIGTERM,
the same command line again, until `/health` says 200) and switched by the service, in turns. The
difference of the medians is ours: closing and opening the gate, the drain, the verified stop, the
run's records and the canary.

    python tests/bench/switch_cost.py [--rounds 5]

Fails where it is more than 2 s.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from tests.live.console import Console, console

BUDGET_S = 2.0
START_S = 3.0
PROFILE = """
kind = "sim"
served_name = "coder"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536
max_running = 8
prefix_caching = true
tool_call_parser = "hermes"
arguments = ["--start-s", "{start_s}"]
"""


class BareEngine:
    """The same engine with nothing around it."""

    def __init__(self, argv: list[str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="a40b-", dir="/tmp"))
        self._socket = self._folder / "engine.sock"
        at = argv.index("--uds") + 1
        self._argv = [*argv[:at], str(self._socket), *argv[at + 1 :]]
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder
        )

    def ready(self) -> None:
        transport = httpx.HTTPTransport(uds=str(self._socket))
        with httpx.Client(transport=transport, base_url="http://engine") as http:
            while True:
                try:
                    if http.get("/health").status_code == 200:
                        return
                except httpx.HTTPError:
                    time.sleep(0.01)

    def restart_s(self) -> float:
        """Seconds from the signal until it serves again."""
        began_s = time.monotonic()
        self._process.terminate()
        self._process.wait()
        self._process = self._start()
        self.ready()
        return time.monotonic() - began_s

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def switched(made: Console, name: str) -> dict[str, float]:
    """Seconds by part of one switch, as the journal has them."""
    made.succeed("engine", "switch", name, "--yes")
    events = map(json.loads, made.paths.events.read_text().splitlines())
    data: dict[str, Any] = [each for each in events if each["kind"] == "engine.switched"][-1][
        "data"
    ]
    return {key: float(value) for key, value in data.items() if key.endswith("_s")}


def measure(made: Console, rounds: int) -> tuple[list[float], list[dict[str, float]]]:
    made.succeed("wait", "ready", "--timeout", "60")
    record = json.loads((made.run_folder() / "run.json").read_text())
    bare = BareEngine(record["argv"])
    try:
        bare.ready()
        by_hand, ours = [], []
        for number in range(rounds):
            by_hand.append(bare.restart_s())
            ours.append(switched(made, "beta" if number % 2 == 0 else "alpha"))
        return by_hand, ours
    finally:
        bare.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with console() as made:
        made.configure("[gateway]\nport = 0\n")
        for name in ("alpha", "beta"):
            made.profile(name, PROFILE.format(start_s=START_S))
        made.serve("--profile", "alpha")
        by_hand, ours = measure(made, rounds)
    held = [each["held_s"] for each in ours]
    over_s = median(held) - median(by_hand)
    print(f"bare restart (SIGTERM to 200): {told(by_hand)}")
    print(f"switch (gate closed to open):  {told(held)}")
    for part in ("drain_s", "stop_s", "start_s", "canary_s"):
        print(f"  of it {part[:-2]:<7} {told([each[part] for each in ours])}")
    print(f"over a bare restart: {over_s:.2f} s, the budget is {BUDGET_S:g} s")
    return 0 if over_s <= BUDGET_S else 1


def told(values: list[float]) -> str:
    return f"median {median(values):.2f} s, {min(values):.2f} to {max(values):.2f} s"


if __name__ == "__main__":
    sys.exit(main())
