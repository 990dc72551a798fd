"""The driver as NVIDIA's real binding reads it, from a library of ours at the C boundary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.gpu_driver import CudaVersion, parse_cuda
from tests.telemetry.test_nvml import build

SCRIPT = """
import json
from dataclasses import asdict
from a40console.engines.gpu_driver import read_driver
from a40console.model.figures import Missing
answer = read_driver()
print(json.dumps(answer.reason if isinstance(answer, Missing) else asdict(answer)))
"""


@pytest.fixture(scope="module", params=["new", "old"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = ["-DOLD_DRIVER"] if request.param == "old" else []
    return build(tmp_path_factory.mktemp("nvml") / request.param, *flags)


def read(library: Path, tmp_path: Path, control: str = "") -> Any:
    (tmp_path / "control").write_text(control)
    own = {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_CONTROL": str(tmp_path / "control")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_driver_cuda_and_devices_are_read(library: Path, tmp_path: Path) -> None:
    answer = read(library, tmp_path, "devices 2\ncuda 13010\ndriver 580\n")
    assert answer == {
        "version": "580.90.07",
        "cuda": [13, 1],
        "gpus": ["NVIDIA A40", "NVIDIA A40"],
    }


@pytest.mark.parametrize(
    ("control", "says"),
    [
        ("devices 0\n", "has no GPU"),
        ("nvmlInitWithFlags 18\n", "driver and library versions differ: restart the pod"),
        ("nvmlInitWithFlags 9\n", "not loaded"),
        ("nvmlSystemGetDriverVersion 999\n", "the driver answers"),
    ],
)
def test_a_driver_that_does_not_answer_says_why(
    library: Path, tmp_path: Path, control: str, says: str
) -> None:
    assert says in read(library, tmp_path, control)


def test_without_a_driver_there_is_a_reason(tmp_path: Path) -> None:
    assert read(tmp_path, tmp_path) == "no NVIDIA driver on this machine"


def test_versions_of_cuda_are_read() -> None:
    assert parse_cuda("12.8.90") == CudaVersion(12, 8)
    assert parse_cuda("13.0.3.0") == CudaVersion(13, 0)
    assert parse_cuda("thirteen") is None
    assert str(CudaVersion(12, 8)) == "12.8"
