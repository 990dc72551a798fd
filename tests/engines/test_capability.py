"""What the profile picker says about this machine."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.engines.capability import check, find_executable, gpu_present, needs_gpu
from a40console.profiles.loader import load_profiles

SHIPPED = load_profiles(Path("/nonexistent")).profiles
QWEN, SMOL = SHIPPED["qwen3-coder-30b"], SHIPPED["smollm2-135m"]
CPU = SHIPPED["smollm2-135m-vllm-cpu"]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("vllm", "llama-server"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "notes").write_text("not a program")
    return tmp_path


def test_the_embedded_default_needs_its_wheel_only() -> None:
    assert check(SMOL, {}, has_module=lambda name: name == "xllamacpp").ready
    missing = check(SMOL, {}, has_module=lambda name: False)
    assert not missing.ready
    assert missing.why_not is not None
    assert "pip install 'a40console[embedded]'" in missing.why_not
    assert "xllamacpp" not in sys.modules, "looking for it must not load it"


def test_vllm_needs_its_program_and_a_gpu(programs: Path) -> None:
    with_vllm = {"PATH": str(programs)}
    assert check(QWEN, with_vllm, has_gpu=lambda: True).ready
    without_gpu = check(QWEN, with_vllm, has_gpu=lambda: False)
    assert "no GPU" in (without_gpu.why_not or "")
    without_vllm = check(QWEN, {"PATH": "/nonexistent"}, has_gpu=lambda: True)
    assert "vllm is not on the PATH" in (without_vllm.why_not or "")
    assert "a40console engine install --gpu" in (without_vllm.why_not or "")


def test_a_profile_for_the_cpu_needs_no_gpu(programs: Path) -> None:
    assert not needs_gpu(CPU)
    assert check(CPU, {"PATH": str(programs)}, has_gpu=lambda: False).ready


def test_a_path_that_is_not_there_is_said(programs: Path) -> None:
    profile = replace(SMOL, executable=str(programs / "gone"))
    assert "is not there" in (check(profile, {}).why_not or "")


def test_programs_are_found_where_they_are(programs: Path, tmp_path: Path) -> None:
    assert find_executable("vllm", {"PATH": str(programs)}) == str(programs / "vllm")
    assert find_executable("~/llama-server", {"HOME": str(programs)}) is not None
    assert find_executable(str(programs / "notes"), {}) is None
    assert find_executable("notes", {"PATH": str(programs)}) is None


def test_a_program_beside_our_interpreter_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "vllm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert find_executable("vllm", {"PATH": "/nonexistent"}) == str(program)


def test_a_gpu_is_seen_by_its_device(tmp_path: Path) -> None:
    assert not gpu_present([str(tmp_path / "none")])
    assert gpu_present([str(tmp_path)])
