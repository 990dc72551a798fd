"""Who uses a GPU, told by the driver's files that a process holds open."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.engines.gpu_holders import gpu_holders

STAT = "{pid} ({name}) {state} 1 {pid} {pid} 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 100 1000 10 0"


def process(root: Path, pid: int, name: str, *files: str, state: str = "S") -> None:
    folder = root / str(pid) / "fd"
    folder.mkdir(parents=True)
    (folder.parent / "stat").write_text(STAT.format(pid=pid, name=name, state=state))
    for number, target in enumerate(files):
        (folder / str(number)).symlink_to(target)


def test_processes_with_a_context_are_found_and_nobody_else(tmp_path: Path) -> None:
    process(tmp_path, 10, "VLLM::EngineCor", "/dev/null", "/dev/nvidia-uvm", "/dev/nvidia0")
    process(tmp_path, 11, "a40console", "/dev/nvidiactl", "/dev/nvidia0")
    process(tmp_path, 12, "bash", "/dev/pts/0")
    process(tmp_path, 9, "python", "/dev/nvidia-uvm")
    process(tmp_path, 13, "gone", "/dev/nvidia-uvm", state="Z")
    found = gpu_holders(tmp_path)
    assert [(holder.pid, holder.name) for holder in found] == [
        (9, "python"),
        (10, "VLLM::EngineCor"),
    ]


def test_a_process_whose_files_may_not_be_seen_is_not_claimed(tmp_path: Path) -> None:
    process(tmp_path, 10, "another")
    (tmp_path / "10" / "fd").rmdir()
    assert gpu_holders(tmp_path) == []


@pytest.mark.parametrize("target", ["/dev/nvidia-uvm-tools", "/dev/kfd"])
def test_the_files_of_other_drivers_count_too(tmp_path: Path, target: str) -> None:
    process(tmp_path, 10, "x", target)
    assert len(gpu_holders(tmp_path)) == 1
