"""Which processes here use a GPU, told by the driver's files that they hold open.

NVML names them only outside containers: inside it answers with nobody, or with pids of the host.
"""

from __future__ import annotations

import os
from pathlib import Path

from a40console.engines.tree import ProcessInfo, ProcFs

COMPUTE_DEVICES = ("/dev/nvidia-uvm", "/dev/kfd")
"""Open in every process with a CUDA (or ROCm) context, and in none that only asks for figures."""


def gpu_holders(root: Path = Path("/proc")) -> list[ProcessInfo]:
    """Living processes that can be seen from here and have a context on a GPU, by pid."""
    table = ProcFs(root).read_table()
    return [table[pid] for pid in sorted(table) if _uses_gpu(root / str(pid) / "fd")]


def _uses_gpu(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(_target(entry.path).startswith(COMPUTE_DEVICES) for entry in entries)
    except OSError:
        return False  # it has ended, or is another user's


def _target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
