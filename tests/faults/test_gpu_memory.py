"""Rows 4 and 12: memory of the GPU that is not let go, and a start that hangs in NCCL."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.console import (
    PROFILE,
    FaultConsole,
    alive,
    fault_console,
    finding,
    missing,
    source,
)
from tests.faults.namespaces import MountNamespace, mount_namespace
from tests.telemetry.test_nvml import build

pytestmark = pytest.mark.slow

GIB = 2**30
KEPT_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
WAIT_S = 3


@dataclass
class Card:
    """A console on a machine whose NVIDIA library is the stand-in."""

    console: FaultConsole
    wishes: Path

    def driver(self, *lines: str) -> None:
        fresh = self.wishes.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.replace(self.wishes)


@contextmanager
def devices_of_a_gpu(folder: Path) -> Iterator[MountNamespace]:
    """A `/dev` that has the files of NVIDIA's driver, for the console alone."""
    behind = shlex.quote(str(folder))
    kept = "; ".join(
        f"touch /dev/{name}; mount --bind {behind}/{name} /dev/{name}" for name in KEPT_DEVICES
    )
    script = (
        f"set -e; mkdir -p {behind}; mount --rbind /dev {behind}; mount -t tmpfs none /dev; "
        f"{kept}; mkdir /dev/shm; mount --bind {behind}/shm /dev/shm; ln -s /proc/self/fd /dev/fd; "
        "touch /dev/nvidiactl /dev/nvidia0 /dev/nvidia-uvm"
    )
    with mount_namespace() as namespace:
        try:
            namespace.run("sh", "-c", script)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no /dev of its own can be made here: {error.stderr.decode()}")
        yield namespace


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Card]:
    folder = build(tmp_path_factory.mktemp("nvml") / "library")
    wishes = folder / "control"
    variables = {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_CONTROL": str(wishes)}
    with (
        devices_of_a_gpu(folder / "dev") as namespace,
        fault_console(namespace.prefix, **variables) as console,
    ):
        made = Card(console, wishes)
        made.driver(f"used {GIB}")
        console.settings(gpu_wait_s=str(WAIT_S))
        on_gpu(console)
        console.serve("--no-engine")
        console.until(lambda s: source(s, "nvml")["state"] == "ok", 30)
        yield made


def on_gpu(console: FaultConsole) -> None:
    """A profile that is meant for a GPU."""
    text = PROFILE.replace('VLLM_CPU_KVCACHE_SPACE = "1"\n', "")
    settings = "gpu_memory_utilization = 0.9"
    console.profile(
        "gpu",
        text.format(executable=console.executable, control=console.wishes, settings=settings),
    )


def holds(card: Card, used: int) -> None:
    card.driver(f"used {used}")
    card.console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == used, 20)


# --- 4: memory that is still in use after an engine has ended --------------------------------


def test_a_restart_waits_until_the_memory_is_let_go(card: Card) -> None:
    console = card.console
    console.succeed("engine", "start", "gpu")
    holds(card, 40 * GIB)
    told = len(console.events())
    console.succeed("engine", "restart", "--no-wait")
    snapshot = console.until(lambda s: s["engine"]["phase"] == "memory", 30)
    assert snapshot["engine"]["state"] == "starting"
    assert "40.0 of 45.0 GiB are in use" in missing(snapshot["engine"]["eta_s"])
    assert finding(snapshot, "start-stalled") is None
    kinds = console.event_kinds()[told:]
    assert "engine.waiting_for_memory" in kinds
    assert "engine.starting" not in kinds, "nothing is loaded into certain want of memory"
    card.driver(f"used {GIB}")
    console.until_state("serving", 20)
    assert console.event_kinds()[told:].count("engine.waiting_for_memory") == 1
    assert console.event_kinds()[told:].count("engine.starting") == 1
    console.succeed("engine", "stop")


def test_memory_that_stays_in_use_is_told_with_who_holds_it(card: Card) -> None:
    console = card.console
    holds(card, 40 * GIB)
    told, began_s = len(console.events()), time.monotonic()
    command = [*console.prefix, "sh", "-c", "exec 9</dev/nvidia-uvm; exec sleep 600"]
    with subprocess.Popen(command) as neighbour:
        said = console.refused(5, "engine", "start", "gpu")
        assert WAIT_S < time.monotonic() - began_s < WAIT_S + 30
        assert "40.0 of 45.0 GiB are in use" in said
        assert f"sleep (pid {neighbour.pid}) uses the GPU" in said
        assert alive(neighbour.pid), "who is not ours is named, and never ended"
        neighbour.kill()
    assert "engine.starting" not in console.event_kinds()[told:]
    snapshot = console.status()
    assert snapshot["engine"]["state"] == "failed"
    assert f"(pid {neighbour.pid})" in (finding(snapshot, "engine-failed") or {})["evidence"]
    # With nobody there that could be named, it says that.
    said = console.refused(5, "engine", "start", "gpu")
    assert "no process that is visible from here uses the GPU" in said
    card.driver(f"used {GIB}")
    console.succeed("engine", "start", "gpu")
    console.succeed("engine", "stop")


# --- 12: a start that hangs in NCCL ----------------------------------------------------------


def test_a_start_that_hangs_in_nccl_is_named_with_what_helps(card: Card) -> None:
    console = card.console
    card.driver(f"used {GIB}", "utilization 100")
    console.control(start="nccl")
    console.succeed("engine", "start", "gpu", "--no-wait")
    snapshot = console.until(lambda s: finding(s, "start-stalled"), 30)
    assert snapshot["gpus"][0]["utilization_ratio"] == 1.0
    assert snapshot["gpus"][0]["memory_used_bytes"] == GIB
    found = finding(snapshot, "start-stalled")
    assert found is not None
    assert "stuck in NCCL initialisation" in found["title"]
    assert "nccl==2.27.5" in found["evidence"]
    assert "NCCL_DEBUG=INFO" in found["remedy"]
    assert found["command"] == "engine.restart"
    assert "no process is left" in console.succeed("engine", "stop")
    console.control()
