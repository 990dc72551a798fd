"""The real NVML binding against a library of ours at the C boundary, in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a40console.model.figures import Missing
from a40console.telemetry import gpu_figures

SOURCE = Path(__file__).parents[1] / "data" / "fake_nvml.c"

PROLOGUE = """
import ctypes, json, os, threading, time
from pathlib import Path
from a40console.model.codec import encode
from a40console.telemetry.nvml import GpuSampler

now_s = 100.0
sampler = GpuSampler(clock=lambda: now_s)
answers = []

def control(text):
    target = Path(os.environ["FAKE_NVML_CONTROL"])
    target.with_suffix(".new").write_text(text)
    target.with_suffix(".new").replace(target)

def library(name):
    return getattr(ctypes.CDLL("libnvidia-ml.so.1"), name)()

def show():
    answers.append({"gpus": encode(sampler.view()), "status": encode(sampler.status())})

control("")
"""

Script = Callable[..., list[Any]]


def build(folder: Path, *flags: str) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed: the stand-in for the NVIDIA library cannot be built")
    folder.mkdir()
    target = folder / "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", "-Wall", *flags, "-o", str(target), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


def run(folder: Path, body: str, control: Path) -> list[Any]:
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_NVML_CONTROL": str(control),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{PROLOGUE}\n{body}\nprint(json.dumps(answers))"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="session")
def new_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml") / "new")


@pytest.fixture(scope="session")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml") / "old", "-DOLD_DRIVER")


@pytest.fixture
def script(new_driver: Path, tmp_path: Path) -> Script:
    def start(body: str, folder: Path = new_driver) -> list[Any]:
        return run(folder, body, tmp_path / "control")

    return start


def test_a_healthy_card_is_read_whole(script: Script) -> None:
    [answer] = script("control('reasons 0x5')\nsampler.sample()\nnow_s += 0.4\nshow()")
    [gpu] = answer["gpus"]
    assert gpu["name"] == "NVIDIA A40"
    assert gpu["memory_used_bytes"] == 43_000_000_000
    assert gpu["memory_total_bytes"] == 48_305_799_168
    assert gpu["utilization_ratio"] == 0.73
    assert gpu["power_w"] == pytest.approx(254.321)
    assert gpu["power_limit_w"] == 300
    assert gpu["temperature_c"] == 67
    assert gpu["sm_clock_mhz"] == 1740
    assert gpu["throttle_reasons"] == ["power cap"], "an idle bit is no throttle"
    assert gpu["peak_bytes_per_s"] == 696e9
    assert gpu["age_s"] == pytest.approx(0.4)
    assert answer["status"]["state"] == "ok"


def test_before_the_first_reading_nothing_is_claimed(script: Script) -> None:
    [answer] = script("show()")
    assert answer["gpus"] == {"missing": "first sample"}
    assert answer["status"]["state"] == "stale"


def test_an_impossible_utilisation_is_no_reading(script: Script) -> None:
    [answer] = script("control('utilization 37100')\nsampler.sample()\nshow()")
    assert answer["gpus"][0]["utilization_ratio"] == {"missing": "driver reported 37100 %"}
    assert answer["gpus"][0]["power_w"] == pytest.approx(254.321)


def test_refused_calls_cost_one_figure_and_are_not_repeated(script: Script) -> None:
    body = """
control('nvmlDeviceGetPowerUsage 4\\nnvmlDeviceGetTemperature 3')
sampler.sample()
first = library("fake_nvml_device_calls")
sampler.sample()
show()
answers.append([first, library("fake_nvml_device_calls") - first])
"""
    answer, [first, second] = script(body)
    [gpu] = answer["gpus"]
    assert gpu["power_w"] == {"missing": "no permission to read it here"}
    assert gpu["temperature_c"] == {"missing": "this GPU does not report it"}
    assert gpu["memory_used_bytes"] == 43_000_000_000
    assert answer["status"]["state"] == "ok"
    # Count and handle are asked once, and the two refused calls never again.
    assert first - second == 4


def test_an_old_driver_answers_by_the_old_name(script: Script, old_driver: Path) -> None:
    body = "control('reasons 0x80')\nsampler.sample()\nsampler.sample()\nshow()"
    [answer] = script(body, old_driver)
    assert answer["gpus"][0]["throttle_reasons"] == ["power brake"]


def test_a_passing_error_is_asked_again(script: Script) -> None:
    body = """
control('nvmlDeviceGetPowerUsage 10')
sampler.sample()
show()
control('')
sampler.sample()
show()
"""
    bad, good = script(body)
    assert bad["gpus"][0]["power_w"] == {"missing": "the driver answers Timeout"}
    assert good["gpus"][0]["power_w"] == pytest.approx(254.321)


def test_driver_and_library_mismatch_says_what_to_do(script: Script) -> None:
    [answer] = script("control('nvmlInitWithFlags 18')\nsampler.sample()\nshow()")
    advice = "driver and library versions differ: restart the pod"
    assert answer["gpus"] == {"missing": advice}
    assert answer["status"]["state"] == "failed"
    assert answer["status"]["reason"] == advice


def test_access_lost_after_hours_degrades_and_comes_back_without_leak(script: Script) -> None:
    body = """
sampler.sample()
control('all 999')
for _ in range(20):
    now_s += 2
    sampler.sample()
show()
answers.append(library("fake_nvml_initialised"))
now_s += 60
show()
control('')
sampler.sample()
show()
answers.append(library("fake_nvml_initialised"))
"""
    lost, held, gone, back, held_again = script(body)
    assert lost["gpus"][0]["memory_used_bytes"] == 43_000_000_000, "the last reading stays"
    assert lost["gpus"][0]["age_s"] == 40, "with its age"
    assert lost["status"]["state"] == "failed"
    assert "Unknown Error" in lost["status"]["reason"]
    assert held == 0
    assert "Unknown Error" in gone["gpus"]["missing"]
    assert back["status"] == {"name": "nvml", "state": "ok", "age_s": 0, "reason": None}
    assert held_again == 1


def test_an_error_in_the_middle_of_a_reading_keeps_the_last_whole_one(script: Script) -> None:
    body = """
sampler.sample()
calls = library("fake_nvml_device_calls")
control(f'after {calls + 3}\\nall 15\\nused 1')
sampler.sample()
show()
"""
    [answer] = script(body)
    assert answer["gpus"][0]["memory_used_bytes"] == 43_000_000_000
    assert answer["status"]["reason"].startswith("the GPU fell off the bus")


def test_the_worker_backs_off_while_the_driver_is_gone(script: Script) -> None:
    body = """
from a40console.telemetry import nvml as module
module._FIRST_RETRY_S = 0.05
sampler = GpuSampler(period_s=0.02)
control('nvmlInitWithFlags 9')
sampler.start()
time.sleep(0.6)
inits = sampler._retry_in_s
control('')
deadline = time.monotonic() + 10
while sampler.status().state != "ok" and time.monotonic() < deadline:
    time.sleep(0.02)
show()
sampler.stop()
answers.append([inits, library("fake_nvml_initialised"), [t.name for t in threading.enumerate()]])
"""
    answer, [retry_in_s, held, threads] = script(body)
    assert answer["status"]["state"] == "ok"
    assert retry_in_s >= 0.2
    assert held == 0, "ending the worker gives the library back"
    assert threads == ["MainThread"]


def test_a_library_that_cannot_be_loaded_is_no_gpu(script: Script, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / "libnvidia-ml.so.1").write_text("not a library")
    [answer] = script("sampler.sample()\nshow()", folder)
    assert answer["gpus"] == {"missing": "no NVIDIA driver on this machine"}
    assert answer["status"]["state"] == "absent"


def test_a_driver_without_a_card_is_no_gpu_and_gives_the_library_back(script: Script) -> None:
    body = """
control('devices 0')
sampler.sample()
show()
answers.append(library("fake_nvml_initialised"))
"""
    answer, held = script(body)
    assert answer["status"]["state"] == "absent"
    assert answer["gpus"] == {"missing": "no NVIDIA GPU on this machine"}
    assert held == 0


def test_processes_that_are_not_here_are_counted_and_their_pids_stay_inside(
    script: Script,
) -> None:
    body = """
control('processes 3\\nfirst_pid 4100000')
sampler.sample()
show()
control(f'processes 1\\nfirst_pid {os.getpid()}')
sampler.sample()
show()
control('nvmlDeviceGetComputeRunningProcesses_v3 3')
sampler.sample()
show()
"""
    hidden, own, refused = script(body)
    assert hidden["status"]["state"] == "ok"
    assert hidden["status"]["reason"] == "3 processes not visible from this pod"
    assert "4100" not in str(hidden)
    assert own["status"]["reason"] is None, "it is one of this pod's"
    assert refused["status"]["reason"] is None


def test_what_is_initialised_again_holds_no_file_more(script: Script) -> None:
    body = """
counts = []
for _ in range(30):
    control('')
    sampler.sample()
    control('all 999\\nafter 0')
    sampler.sample()
    counts.append(library("fake_nvml_initialised"))
control('')
sampler.sample()
answers.append([counts, library("fake_nvml_initialised")])
before = len(os.listdir("/proc/self/fd"))
for _ in range(30):
    control('all 999')
    sampler.sample()
    control('')
    sampler.sample()
answers.append(len(os.listdir("/proc/self/fd")) - before)
"""
    [counts, held], grown = script(body)
    assert counts == [0] * 30
    assert held == 1
    assert grown == 0


def test_a_silent_driver_shows_as_age(script: Script) -> None:
    body = """
sampler.sample()
now_s += 12
show()
"""
    [answer] = script(body)
    assert answer["status"]["state"] == "stale"
    assert answer["status"]["reason"] == "the driver has not answered for 12 s"


def test_the_baseline_is_what_was_used_before_our_engine(script: Script) -> None:
    body = """
control('devices 2\\nused 280000000')
sampler.sample()
show()
sampler.set_baseline({0: 7})
show()
"""
    before, known = script(body)
    assert "missing" in before["gpus"][0]["memory_baseline_bytes"]
    assert known["gpus"][0]["memory_baseline_bytes"] == 7
    assert "missing" in known["gpus"][1]["memory_baseline_bytes"]


def test_a_card_that_is_not_on_the_sheet_has_no_peak(script: Script) -> None:
    [answer] = script("control('unlisted 1')\nsampler.sample()\nshow()")
    assert "NVIDIA B999" in answer["gpus"][0]["peak_bytes_per_s"]["missing"]


def test_reason_bits_that_are_not_known_are_still_named() -> None:
    assert gpu_figures.reasons(0x1) == ()
    assert gpu_figures.reasons(0x44) == ("power cap", "hardware thermal slowdown")
    assert gpu_figures.reasons(0x1001) == ("reason 0x1000",)
    assert gpu_figures.reasons(Missing("no")) == Missing("no")
