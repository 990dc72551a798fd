"""Whether this machine can run a profile, found out without starting or importing an engine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from a40console.engines import attached
from a40console.engines.installing.environments import Build, newest
from a40console.model.profile import Profile

EMBEDDED_MODULE = "xllamacpp"
INSTALL_EMBEDDED = "pip install 'a40console[embedded]'"
GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")
"""NVIDIA's, Windows' and AMD's ways to a GPU."""


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether a profile can run here, and if not, what is missing and how to mend it."""

    ready: bool
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was found."""

    path: str
    origin: str
    """How it was found, for the operator."""


def find_executable(name: str, environment: Mapping[str, str]) -> str | None:
    """The full path of a program: as given, from PATH, or beside ours.

    Args:
        name: A name, or a path, which may begin with `~`.
        environment: Where PATH and HOME are taken from.
    """
    if "/" in name:
        home = environment.get("HOME")
        path = Path(home) / name[2:] if home and name.startswith("~/") else Path(name)
        return str(path.absolute()) if _runs(path) else None
    beside = Path(sys.prefix) / "bin"
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None and _runs(beside / name):
        found = str(beside / name)
    return found


def find_program(
    profile: Profile, environment: Mapping[str, str], environments: Path | None = None
) -> Program | None:
    """The program that a start would run; None where there is none.

    Args:
        profile: Names it; a vLLM without a name is the newest that we installed, for the GPU or
            the CPU as the profile needs it, else `vllm` from the PATH or beside us.
        environment: Where PATH and HOME are taken from.
        environments: The folder of what we installed.
    """
    if profile.kind != "vllm" and profile.executable is None:
        return Program(sys.executable, "embedded")
    if profile.executable is None and environments is not None:
        found = newest(environments, build_for(profile))
        if found is not None:
            return Program(str(found.executable), f"environment {found.name}, installed here")
    name = profile.executable or "vllm"
    path = find_executable(name, environment)
    if path is None:
        return None
    return Program(path, "named by the profile" if profile.executable else "on the PATH")


def build_for(profile: Profile) -> Build:
    """The build of vLLM that a profile is for."""
    return "gpu" if needs_gpu(profile) else "cpu"


def check(
    profile: Profile,
    environment: Mapping[str, str],
    *,
    environments: Path | None = None,
    has_gpu: Callable[[], bool] | None = None,
    has_module: Callable[[str], bool] | None = None,
) -> Capability:
    """Whether everything a profile needs is here; its model may still have to be fetched."""
    missing = obstacles(
        profile, environment, environments=environments, has_gpu=has_gpu, has_module=has_module
    )
    why_not = next(missing, None)
    return Capability(why_not is None, why_not)


def obstacles(
    profile: Profile,
    environment: Mapping[str, str],
    *,
    environments: Path | None = None,
    has_gpu: Callable[[], bool] | None = None,
    has_module: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """What a profile needs and this machine lacks, its model and memory apart."""
    if profile.kind == "attached":
        if (fault := attached.key_fault(profile, environment)) is not None:
            yield fault
        return
    if profile.kind == "llamacpp" and profile.executable is None:
        if not (has_module or _has_module)(EMBEDDED_MODULE):
            yield f"llama.cpp's embedded server is missing: {INSTALL_EMBEDDED}"
        return
    if find_program(profile, environment, environments) is None:
        yield _missing_program(profile)
    if needs_gpu(profile) and not (has_gpu or gpu_present)():
        yield "no GPU is visible here: take a profile for the CPU"


def _missing_program(profile: Profile) -> str:
    if profile.executable is None:
        install = f"a40console engine install --{build_for(profile)}"
        return f"vllm is not on the PATH: {install}, or set executable in the profile"
    where = "is not there" if "/" in profile.executable else "is not on the PATH"
    return f"{profile.executable} {where}: install it, or set executable in the profile"


def needs_gpu(profile: Profile) -> bool:
    """Whether a profile is meant for a GPU: vLLM's are, unless they set its CPU build's variables.

    A llama-server runs on whatever it was built for.
    """
    if profile.kind != "vllm":
        return False
    variables = profile.environment
    return variables.get("VLLM_TARGET_DEVICE") != "cpu" and not any(
        name.startswith("VLLM_CPU_") for name in variables
    )


def gpu_present(devices: Sequence[str] = GPU_DEVICES) -> bool:
    """Whether a GPU's device file is here; a driver that does not work shows at the start."""
    return any(Path(device).exists() for device in devices)


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
