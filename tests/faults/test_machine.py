"""A machine that hides things: a driver that does not answer, cores that are not ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.console import (
    FaultConsole,
    alive,
    fault_console,
    finding,
    kill,
    missing,
    number,
    source,
)
from tests.faults.control_groups import cpu_group
from tests.telemetry.test_nvml import build

pytestmark = pytest.mark.slow

MISMATCH, NOT_LOADED, LOST, UNKNOWN = 18, 9, 15, 999  # nvmlReturn_t, nvml.h
GIB = 2**30


@dataclass
class Card:
    """A console on a machine whose NVIDIA library is the stand-in."""

    console: FaultConsole
    wishes: Path
    journal: Path

    def calls(self, name: str) -> int:
        """How often the library was initialised, refused to be, or shut down."""
        return self.journal.read_text().split().count(name)

    def held_files(self) -> int:
        """Files that the library holds open in the service, as the real one holds the device."""
        folder = Path(f"/proc/{self.console.status()['service']['pid']}/fd")
        names = []
        for entry in folder.iterdir():
            with suppress(OSError):
                names.append(str(entry.readlink()))
        return sum(name.startswith(str(self.wishes)) for name in names)

    def driver(self, *lines: str) -> None:
        fresh = self.wishes.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.replace(self.wishes)


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Card]:
    folder = build(tmp_path_factory.mktemp("nvml") / "library")
    wishes = folder / "control"
    journal = folder / "journal"
    variables = {
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_NVML_CONTROL": str(wishes),
        "FAKE_NVML_JOURNAL": str(journal),
    }
    with fault_console(**variables) as console:
        made = Card(console, wishes, journal)
        made.driver(f"nvmlInitWithFlags {MISMATCH}")
        console.serve("--profile", "fake")
        console.succeed("wait", "ready", "--timeout", "30")
        yield made


# --- 28: a driver that does not answer -------------------------------------------------------


def test_a_driver_of_another_version_costs_the_gpu_figures_alone(card: Card) -> None:
    console = card.console
    console.control(running=2)
    snapshot = console.until(lambda s: (number(s["requests"]["running"]) or 0) == 2)
    why = "driver and library versions differ: restart the pod"
    assert why in missing(snapshot["gpus"])
    assert source(snapshot, "nvml")["state"] == "failed"
    assert why in source(snapshot, "nvml")["reason"]
    found = finding(snapshot, "gpu-degraded")
    assert found is not None
    assert found["title"] == "The GPU cannot be read"
    assert why in found["evidence"]
    # The engine is shown as if nothing were wrong with the driver.
    assert snapshot["engine"]["state"] == "serving"
    assert source(snapshot, "vllm.metrics")["state"] == "ok"
    console.until(lambda s: (number(s["throughput"]["generation_tokens_per_s"]) or 0) > 0)
    assert "wave" in console.ask()
    assert console.run("status", "--check").returncode == 0
    assert "restart the pod" in console.succeed("status")


def test_a_driver_that_comes_to_answer_is_read_without_a_restart(card: Card) -> None:
    card.driver(f"used {2 * GIB}")
    snapshot = card.console.until(lambda s: isinstance(s["gpus"], list), 90)
    [gpu] = snapshot["gpus"]
    assert gpu["name"] == "NVIDIA A40"
    assert gpu["memory_used_bytes"] == 2 * GIB
    assert source(snapshot, "nvml")["state"] == "ok"
    assert finding(snapshot, "gpu-degraded") is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (UNKNOWN, "Unknown Error: the container lost its access to the GPU"),
        (LOST, "fell off the bus"),
        (NOT_LOADED, "driver is not loaded"),
    ],
)
def test_a_driver_that_fails_later_is_told_and_tried_again(
    card: Card, code: int, reason: str
) -> None:
    console = card.console
    card.driver(f"used {2 * GIB}")
    console.until(lambda s: source(s, "nvml")["state"] == "ok", 90)
    card.driver(f"all {code}", f"nvmlInitWithFlags {code}")
    snapshot = console.until(lambda s: source(s, "nvml")["state"] == "failed")
    assert reason in source(snapshot, "nvml")["reason"]
    assert reason in (finding(snapshot, "gpu-degraded") or {})["evidence"]
    assert snapshot["engine"]["state"] == "serving"
    later = console.until(lambda s: s["gpus"][0]["age_s"] > 2)
    assert later["gpus"][0]["memory_used_bytes"] == 2 * GIB, "the last reading, with its age"
    card.driver(f"used {2 * GIB}")
    console.until(lambda s: source(s, "nvml")["state"] == "ok", 30)


# --- 29: access that is lost after hours, again and again --------------------------------------


def test_access_that_comes_and_goes_leaks_nothing(card: Card) -> None:
    console = card.console
    card.driver(f"used {2 * GIB}")
    console.until(lambda s: source(s, "nvml")["state"] == "ok", 90)
    assert card.held_files() == 1
    before = card.calls("init")
    for cycle in range(2):
        card.driver(f"all {UNKNOWN}", f"nvmlInitWithFlags {UNKNOWN}")
        console.until(lambda s: source(s, "nvml")["state"] == "failed")
        assert card.held_files() == 0, "what was initialised is given back"
        card.driver(f"used {(3 + cycle) * GIB}")
        console.until(lambda s: source(s, "nvml")["state"] == "ok", 30)
        assert card.held_files() == 1
    assert card.calls("init") == before + 2
    assert card.calls("init") - card.calls("shutdown") == 1


def test_a_driver_that_stays_away_is_asked_ever_less_often(card: Card) -> None:
    card.driver(f"all {UNKNOWN}", f"nvmlInitWithFlags {UNKNOWN}")
    began_s, refused = time.monotonic(), card.calls("refused")
    card.console.until(lambda s: source(s, "nvml")["state"] == "failed")
    card.console.until(lambda s: card.calls("refused") - refused >= 4, 60)
    assert time.monotonic() - began_s > 3.5, "at once, then after 1, 1, 2 s"
    card.driver(f"used {2 * GIB}")
    card.console.until(lambda s: source(s, "nvml")["state"] == "ok", 30)


# --- 30: processes that the pod does not see ---------------------------------------------------


def test_processes_of_the_host_are_counted_and_never_offered(card: Card, bystander: int) -> None:
    console = card.console
    card.driver(f"used {21 * GIB}", "processes 3", "first_pid 4100000")
    snapshot = console.until(lambda s: source(s, "nvml")["reason"], 90)
    assert source(snapshot, "nvml")["state"] == "ok"
    assert source(snapshot, "nvml")["reason"] == "3 processes not visible from this pod"
    assert snapshot["gpus"][0]["memory_used_bytes"] == 21 * GIB
    assert "4100000" not in str(snapshot), "no pid of the host is shown"

    # A listed pid may be a process of this pod that has nothing to do with the engine.
    card.driver(f"used {21 * GIB}", "processes 1", f"first_pid {bystander}")
    console.until(lambda s: source(s, "nvml")["reason"] is None)
    console.succeed("engine", "stop", "--yes")
    found = finding(console.until(lambda s: finding(s, "gpu-memory-held")), "gpu-memory-held")
    assert found is not None
    assert "21.0 GiB used" in found["evidence"]
    assert found["command"] is None
    assert str(bystander) not in found["evidence"] + found["remedy"]
    console.run("engine", "clean")
    assert alive(bystander)
    card.driver(f"used {GIB}")
    console.until(lambda s: finding(s, "gpu-memory-held") is None, 30)
    console.succeed("engine", "start", "fake", timeout_s=30)


def test_an_empty_process_list_is_nothing_to_tell(card: Card) -> None:
    card.driver(f"used {2 * GIB}", "processes 0")
    card.console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == 2 * GIB, 90)
    assert source(card.console.status(), "nvml")["reason"] is None
    card.driver(f"used {3 * GIB}", "nvmlDeviceGetComputeRunningProcesses_v3 3")
    snapshot = card.console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == 3 * GIB)
    assert source(snapshot, "nvml")["state"] == "ok"


# --- 31: a utilisation that cannot be ----------------------------------------------------------


def test_an_impossible_utilisation_is_missing_and_no_full_gpu(card: Card) -> None:
    card.driver(f"used {2 * GIB}", "utilization 37100")
    snapshot = card.console.until(
        lambda s: isinstance(s["gpus"], list) and "37100" in str(s["gpus"][0]["utilization_ratio"]),
        90,
    )
    [gpu] = snapshot["gpus"]
    assert missing(gpu["utilization_ratio"]) == "driver reported 37100 %"
    assert gpu["power_w"] == pytest.approx(254.321)
    card.driver(f"used {2 * GIB}", "utilization 99")
    card.console.until(lambda s: s["gpus"][0]["utilization_ratio"] == 0.99)


# --- 1: what an orphan holds -------------------------------------------------------------------


def test_what_an_orphan_holds_of_the_gpu_is_named(card: Card) -> None:
    """Row 1 on a GPU: the pids, and the memory that is held beyond what was before the start."""
    console = card.console
    card.driver(f"used {GIB}")
    console.until(lambda s: source(s, "nvml")["state"] == "ok", 90)
    console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == GIB)
    console.succeed("engine", "restart", "--yes")
    card.driver(f"used {21 * GIB}")
    snapshot = console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == 21 * GIB)
    assert snapshot["gpus"][0]["memory_baseline_bytes"] == GIB
    kill(snapshot["engine"]["pid"])
    console.until_state("orphaned")
    found = finding(console.status(), "engine-orphaned")
    assert found is not None
    assert "VLLM::EngineCor (pid" in found["evidence"]
    assert "GPU 0 holds 20.0 GiB more than before it" in found["evidence"]
    # Another service knows it too.
    console.end_service()
    console.serve()
    found = console.until(
        lambda s: isinstance(s["gpus"], list) and finding(s, "engine-orphaned"), 30
    )
    assert "GPU 0 holds 20.0 GiB more" in (finding(found, "engine-orphaned") or {})["evidence"]
    console.succeed("engine", "clean")


def test_an_engine_for_the_cpu_does_not_wait_for_a_full_gpu(card: Card) -> None:
    card.driver(f"used {44 * GIB}")
    card.console.until(lambda s: s["gpus"][0]["memory_used_bytes"] == 44 * GIB, 30)
    if card.console.status()["engine"]["state"] == "serving":
        card.console.succeed("engine", "stop", "--yes")
    card.console.succeed("engine", "start", "fake", timeout_s=20)
    assert card.console.status()["engine"]["state"] == "serving"


# --- 32: cores and memory of a limited container ---------------------------------------------


def test_a_quota_is_the_whole_and_its_throttling_is_told() -> None:
    with cpu_group(0.4) as way, fault_console(way) as console:
        console.serve("--profile", "fake")
        console.prefix = ()  # what only looks is not throttled itself
        console.until_state("serving", 60)
        console.control(burn=True)
        snapshot = console.until(lambda s: finding(s, "vcpu-throttled"), 60)
        host = snapshot["host"]
        assert host["cpu_quota_vcpu"] == pytest.approx(0.4)
        assert host["quota_origin"] in ("cgroup1", "cgroup2")
        assert host["source"] == host["quota_origin"]
        assert 0.2 < host["cpu_used_vcpu"] < 0.7, "of the quota, not of the machine"
        assert host["throttled_ms_per_s"] > 100
        found = finding(snapshot, "vcpu-throttled")
        assert found is not None
        assert f"of 0.4 vCPU used ({host['quota_origin']})" in found["evidence"]
        assert "throttled" in found["evidence"]
        console.control()


def test_without_a_quota_the_cpus_that_may_be_used_count() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU cannot be halved")
    with fault_console(("taskset", "--cpu-list", str(allowed[0]))) as console:
        console.serve("--no-engine")
        host = console.until(lambda s: "missing" not in str(s["host"]["age_s"]))["host"]
        assert host["cpu_quota_vcpu"] == 1.0
        assert host["quota_origin"] == "affinity"
