"""The machine: Python, CPU, memory, disks, clock, GPU."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from a40console.engines.capability import build_for, find_program, gpu_present
from a40console.engines.installing.environments import Build
from a40console.engines.installing.resolution import ENVIRONMENT_BYTES
from a40console.engines.snapshots import hub_cache
from a40console.engines.weights import look
from a40console.model.check import Check, CheckState
from a40console.model.figures import Missing
from a40console.model.wording import memory_size, size
from a40console.operations.checks.asked import Asked
from a40console.telemetry.cgroup import Cgroups

GROUP = "machine"
FEW_VCPU = 2
LITTLE_MEMORY_BYTES = 4e9
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's name for it
LITTLE_SHM_BYTES = 256e6
"""vLLM's processes talk through it; Docker gives 64 MB unless told otherwise."""

NO_DISK_BYTES = 200e6
CLOCK_TOLERANCE_S = 86400


def machine_checks(asked: Asked) -> Iterator[Check]:
    """Everything about the machine."""
    yield _python()
    groups = Cgroups()
    yield _cpu(groups)
    yield _memory(groups)
    yield _shared_memory(SHARED_MEMORY)
    yield from _disks(asked)
    yield _clock(time.time())
    yield _gpu(asked)


def _check(name: str, state: CheckState, text: str, mend: str = "") -> Check:
    return Check(group=GROUP, name=name, state=state, text=text, mend=mend)


def _python() -> Check:
    return _check("Python", "ok", f"{platform.python_version()}, {sys.executable}")


def _cpu(groups: Cgroups) -> Check:
    limit = groups.cpu_limit()
    by = {"cgroup2": "the container's quota", "cgroup1": "the container's quota"}
    origin = by.get(limit.origin, "cores of the machine")
    text = f"{limit.quota_vcpu:g}, {'a CPU set' if limit.origin == 'affinity' else origin}"
    if limit.quota_vcpu >= FEW_VCPU:
        return _check("vCPU", "ok", text)
    mend = "Rent more vCPU: engine, gateway and clients share them"
    return _check("vCPU", "warn", text, mend)


def _memory(groups: Cgroups) -> Check:
    use = groups.memory()
    machine = groups.machine_memory_bytes()
    total = use.limit_bytes or machine
    if total is None:
        return _check("memory", "unchecked", "neither a limit nor /proc/meminfo can be read")
    text = f"{memory_size(total)}, " + ("the container's limit" if use.limit_bytes else "no limit")
    if total >= LITTLE_MEMORY_BYTES:
        return _check("memory", "ok", text)
    return _check("memory", "warn", text, "Rent more memory: vLLM alone takes 4 GB")


def _shared_memory(place: Path) -> Check:
    try:
        total = shutil.disk_usage(place).total
    except OSError as error:
        return _check(str(place), "unchecked", f"{place}: {error.strerror}")
    text = memory_size(total)
    if total >= LITTLE_SHM_BYTES:
        return _check(str(place), "ok", text)
    return _check(str(place), "warn", text, "Start the container with --shm-size=1g")


def _disks(asked: Asked) -> Iterator[Check]:
    places = {"our data": asked.paths.data, "hub's cache": hub_cache(asked.environment)}
    seen: set[int] = set()
    for name, folder in places.items():
        existing = next(each for each in (folder, *folder.parents) if each.exists())
        try:
            device = existing.stat().st_dev
            free = shutil.disk_usage(existing).free
        except OSError as error:
            yield _check(f"disk, {name}", "unchecked", f"{existing}: {error.strerror}")
            continue
        if device not in seen:
            seen.add(device)
            yield _disk(f"disk, {name}", existing, free, _to_come(asked) if len(seen) == 1 else 0)


def _disk(name: str, folder: Path, free_bytes: int, needed_bytes: float) -> Check:
    text = f"{size(free_bytes)} free under {folder}"
    if needed_bytes:
        text += f"; about {size(needed_bytes)} are still to come for the profiles"
    mend = "Free space there, or set A40CONSOLE_HOME and HF_HOME to another disk"
    if free_bytes < NO_DISK_BYTES:
        return _check(name, "missing", text, mend)
    return _check(
        name,
        "warn" if free_bytes < needed_bytes else "ok",
        text,
        mend if free_bytes < needed_bytes else "",
    )


def _to_come(asked: Asked) -> float:
    """What profiles still fetch as far as sizes are known here: pinned files, and a vLLM.

    What a model of the hub takes, only the hub knows.
    """
    build: Build = "cpu" if isinstance(asked.driver, Missing) else "gpu"
    needed = 0.0
    files = {}
    for profile in asked.profiles.profiles.values():
        if profile.file is not None:
            files[profile.file.sha256] = profile.file
        elif profile.kind == "vllm" and not profile.is_cpp and build_for(profile) == build:
            found = find_program(profile, asked.environment, asked.paths.environments)
            needed = max(needed, 0.0 if found else ENVIRONMENT_BYTES[build])
    folder = asked.paths.models
    absent = (
        file
        for file in files.values()
        if look(folder / Path(file.file).name, file, verify=False) == "missing"
    )
    return needed + sum(file.size_bytes for file in absent)


def _clock(now_s: float) -> Check:
    """A clock that stands before our own files were written is wrong."""
    text = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now_s))
    try:
        written_s = Path(__file__).stat().st_mtime
    except OSError:
        return _check("clock", "unchecked", f"{text}: nothing to compare it with")
    if now_s > written_s - CLOCK_TOLERANCE_S:
        return _check("clock", "ok", text)
    mend = "Set the clock: certificates are refused until it is right"
    return _check("clock", "warn", f"{text}, before this console was installed", mend)


def _gpu(asked: Asked) -> Check:
    driver = asked.driver
    if not isinstance(driver, Missing):
        names = ", ".join(dict.fromkeys(driver.gpus))
        count = f"{len(driver.gpus)} × " if len(driver.gpus) > 1 else ""
        text = f"{count}{names}, driver {driver.version}, CUDA {driver.cuda}"
        return _check("GPU", "ok", text)
    if gpu_present():
        mend = "Restart the pod, or rent another: the device is here, its driver is not"
        return _check("GPU", "warn", driver.reason, mend)
    return _check("GPU", "unchecked", f"{driver.reason}: engines run on the CPU")
