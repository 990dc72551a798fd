"""The NVIDIA driver of this machine, and whether a build for some CUDA runs on it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pynvml

from a40console.model.figures import Missing

FIRST_DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The oldest Linux driver of each CUDA major version: the toolkit's release notes, table "Minimum
Required Driver Version for CUDA Minor Version Compatibility"."""


class CudaVersion(NamedTuple):
    """A version of CUDA, of a driver or of a build."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class GpuDriver:
    """What the driver says of itself."""

    version: str
    """The driver's own, such as `550.90.07`."""

    cuda: CudaVersion
    """The newest CUDA that it runs."""

    gpus: tuple[str, ...]
    """The names of the devices."""


def read_driver(library: Any = pynvml) -> GpuDriver | Missing:
    """Ask NVIDIA's management library; why there is no answer where there is none. May block."""
    try:
        library.nvmlInit()
    except pynvml.NVMLError as error:
        return Missing(_in_words(error))
    try:
        count = library.nvmlDeviceGetCount()
        if count == 0:
            return Missing("the NVIDIA driver has no GPU")
        code = int(_cuda_code(library))
        return GpuDriver(
            version=str(library.nvmlSystemGetDriverVersion()),
            cuda=CudaVersion(code // 1000, code % 1000 // 10),
            gpus=tuple(_name(library, index) for index in range(count)),
        )
    except pynvml.NVMLError as error:
        return Missing(_in_words(error))
    finally:
        with suppress(pynvml.NVMLError):
            library.nvmlShutdown()


def why_not(build: CudaVersion, driver: GpuDriver) -> str | None:
    """Why a build for this CUDA does not run on the driver; None where it does.

    A driver runs every build of its own CUDA major version and of older ones.
    """
    if build.major <= driver.cuda.major:
        return None
    first = FIRST_DRIVERS.get(build.major)
    needs = f"driver {first} or newer" if first else f"a driver for CUDA {build.major}"
    return (
        f"it is built for CUDA {build}, which needs {needs}; "
        f"this machine's driver {driver.version} runs CUDA {driver.cuda} at most"
    )


def caution(build: CudaVersion, driver: GpuDriver) -> str | None:
    """What may go wrong with a build that runs; None where nothing is known to."""
    if build.major == driver.cuda.major and build.minor > driver.cuda.minor:
        return (
            f"built for CUDA {build}, the driver is of CUDA {driver.cuda}: it runs, but kernels "
            "that are compiled as it runs may be refused"
        )
    return None


def parse_cuda(text: str) -> CudaVersion | None:
    """`12.8` or `13.0.96` as a version of CUDA."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return CudaVersion(int(found[1]), int(found[2])) if found else None


def _cuda_code(library: Any) -> Any:
    """1000 times the major version and 10 times the minor one."""
    try:
        return library.nvmlSystemGetCudaDriverVersion_v2()
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        return library.nvmlSystemGetCudaDriverVersion()


def _name(library: Any, index: int) -> str:
    try:
        return str(library.nvmlDeviceGetName(library.nvmlDeviceGetHandleByIndex(index)))
    except pynvml.NVMLError as error:
        return f"GPU {index} ({error})"


def _in_words(error: pynvml.NVMLError) -> str:
    words = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver on this machine",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded: restart the pod",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "driver and library versions differ: restart the pod"
        ),
    }
    return words.get(error.value, f"the driver answers {error}")
