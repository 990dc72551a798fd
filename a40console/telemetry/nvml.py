"""The GPUs through NVIDIA's management library, read by one worker thread because it blocks.

Which processes hold what is not asked: inside a pod NVML lists none, or pids of the host. What an
engine holds is the device's memory less what was used before it started. Listed pids are counted
where they are none of this pod's, and never leave this module: nothing may be ended by them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pynvml

from a40console.model.figures import Missing, measured
from a40console.model.snapshot import Gpu, SourceStatus
from a40console.telemetry import gpu_figures

_LOG = logging.getLogger(__name__)

_REFUSED: Mapping[int, str] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "this GPU does not report it",
    pynvml.NVML_ERROR_NO_PERMISSION: "no permission to read it here",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "this driver does not have it",
}
"""Answers that stay: the call is not made again until the library is initialised anew."""

_LOST: Mapping[int, str] = {
    pynvml.NVML_ERROR_UNINITIALIZED: "the driver dropped us: asking it again",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver on this machine",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded: restart the pod",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "driver and library versions differ: restart the pod"
    ),
    pynvml.NVML_ERROR_GPU_IS_LOST: "the GPU fell off the bus: restart the pod, or rent another",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the GPU needs a reset: restart the pod",
    pynvml.NVML_ERROR_IRQ_ISSUE: "the GPU's interrupts fail: restart the pod",
    pynvml.NVML_ERROR_UNKNOWN: (
        "the driver answers Unknown Error: the container lost its access to the GPU;"
        " restart the pod if it stays"
    ),
}
"""Errors after which no call is worth making until the library is initialised anew."""

SourceState = Literal["ok", "stale", "failed", "absent"]

_NO_DEVICE = "no NVIDIA GPU on this machine"

_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_KEEP_S = 60.0
"""A lost source's last reading is shown with its age for this long."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the worker left for the readers; replaced as a whole."""

    gpus: tuple[Gpu, ...] = ()
    hidden_processes: int = 0
    at_s: float | None = None
    problem: str | None = None
    absent: bool = False


class GpuSampler:
    """Polls every GPU once a period; each reading fails on its own, the source as a whole.

    `view`, `status` and `memory_used_bytes` never block. A driver call that does not return
    holds only the worker, which is a daemon, and shows as a growing age.
    """

    name = "nvml"

    def __init__(
        self,
        *,
        period_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        library: Any = pynvml,
        root: Path = Path("/"),
    ) -> None:
        self._proc = root / "proc"
        self._period_s = period_s
        self._clock = clock
        self._library = library
        self._handles: list[Any] | None = None
        self._initialised = False
        self._refused: dict[tuple[int, str], int] = {}
        self._retry_in_s = _FIRST_RETRY_S
        self._reading = _Reading()
        self._baseline: dict[int, int] = {}
        self._stopping = threading.Event()
        self._worker: threading.Thread | None = None

    def start(self) -> None:
        """Begin to poll."""
        if self._worker is None:
            # An event of its own: a worker that the driver held must still see that it was ended.
            self._stopping = threading.Event()
            self._worker = threading.Thread(
                target=self._poll, args=(self._stopping,), name="nvml", daemon=True
            )
            self._worker.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the worker; one that the driver holds is left to end with the process."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.join(timeout_s)
            self._worker = None

    def sample(self) -> None:
        """Read every GPU once. Blocks in the driver: the worker's own call."""
        try:
            handles = self._open()
            gpus = tuple(self._read(index, handle) for index, handle in enumerate(handles))
            hidden = self._hidden(handles)
        except pynvml.NVMLError as error:
            self._close()
            absent = error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
            self._fail(_LOST.get(error.value, f"the driver answers {error}"), absent=absent)
            return
        if not gpus:
            self._close()
            self._fail(_NO_DEVICE, absent=True)
            return
        self._retry_in_s = _FIRST_RETRY_S
        self._reading = _Reading(gpus, hidden, self._clock())

    def view(self) -> tuple[Gpu, ...] | Missing:
        """The last reading with its age; missing once the source is lost for a minute."""
        reading, baseline, age = self._reading, self._baseline, self._age()
        if isinstance(age, Missing):
            return age
        if reading.problem and age > _KEEP_S:
            return Missing(reading.problem)
        return tuple(
            replace(
                gpu,
                age_s=age,
                memory_baseline_bytes=measured(
                    baseline.get(gpu.index), "not taken before an engine started"
                ),
            )
            for gpu in reading.gpus
        )

    @property
    def hidden_processes(self) -> int:
        """How many processes the driver lists on the GPUs that this pod does not see."""
        return self._reading.hidden_processes

    def status(self) -> SourceStatus:
        """Whether the driver answers, and what to do where it does not."""
        reading, age = self._reading, self._age()
        state: SourceState = "ok"
        reason = reading.problem
        if reading.problem:
            state = "absent" if reading.absent else "failed"
        elif isinstance(age, Missing):
            state, reason = "stale", age.reason
        elif self._is_late(age):
            state, reason = "stale", f"the driver has not answered for {age:.0f} s"
        elif reading.hidden_processes:
            reason = gpu_figures.hidden(reading.hidden_processes)
        return SourceStatus(name=self.name, state=state, age_s=age, reason=reason)

    def set_baseline(self, known: Mapping[int, int]) -> None:
        """Remember what each GPU's memory held before an engine of ours started.

        Args:
            known: Bytes by GPU index; empty where it was not taken.
        """
        self._baseline = dict(known)

    def _age(self) -> float | Missing:
        """Seconds since the last reading that succeeded."""
        reading = self._reading
        if reading.at_s is None:
            return Missing(reading.problem or "first sample")
        return max(0.0, self._clock() - reading.at_s)

    def _is_late(self, age_s: float) -> bool:
        return age_s > max(5.0, 3 * self._period_s)

    def _poll(self, stopping: threading.Event) -> None:
        delay_s = 0.0
        while not stopping.wait(delay_s):
            try:
                self.sample()
            except Exception:  # noqa: BLE001 the worker outlives whatever a driver does
                _LOG.exception("reading the GPUs failed")
                self._close()
                self._fail("reading the driver's answers failed; the log has the details")
            delay_s = self._retry_in_s if self._reading.problem else self._period_s
        self._close()

    def _open(self) -> list[Any]:
        if self._handles is None:
            self._refused.clear()
            self._library.nvmlInit()
            self._initialised = True
            count = self._library.nvmlDeviceGetCount()
            self._handles = [self._library.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        return self._handles

    def _close(self) -> None:
        """Undo exactly one initialisation: the library counts them."""
        self._handles = None
        if self._initialised:
            self._initialised = False
            try:
                self._library.nvmlShutdown()
            except pynvml.NVMLError as error:
                _LOG.debug("NVML shutdown: %s", error)

    def _fail(self, problem: str, *, absent: bool = False) -> None:
        """Keep the last reading, now with a problem, and wait longer the longer it lasts."""
        if self._reading.problem == problem:
            self._retry_in_s = min(2 * self._retry_in_s, _LAST_RETRY_S)
        else:
            _LOG.log(logging.INFO if absent else logging.WARNING, "GPU telemetry: %s", problem)
            self._retry_in_s = _FIRST_RETRY_S
        self._reading = replace(self._reading, problem=problem, absent=absent)

    def _read(self, index: int, handle: Any) -> Gpu:
        def ask(*symbols: str, arguments: tuple[Any, ...] = ()) -> Any:
            return self._ask(index, handle, symbols, arguments)

        used, memory_total = gpu_figures.memory(ask("nvmlDeviceGetMemoryInfo"))
        name = ask("nvmlDeviceGetName")
        return Gpu(
            source=self.name,
            age_s=0.0,
            index=index,
            name=name,
            memory_used_bytes=used,
            memory_total_bytes=memory_total,
            memory_baseline_bytes=Missing("not taken before an engine started"),
            utilization_ratio=gpu_figures.utilization(ask("nvmlDeviceGetUtilizationRates")),
            power_w=gpu_figures.scaled(ask("nvmlDeviceGetPowerUsage"), 1e-3),
            power_limit_w=gpu_figures.scaled(ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            temperature_c=ask(
                "nvmlDeviceGetTemperature",
                "nvmlDeviceGetTemperatureV",
                arguments=(pynvml.NVML_TEMPERATURE_GPU,),
            ),
            sm_clock_mhz=ask("nvmlDeviceGetClockInfo", arguments=(pynvml.NVML_CLOCK_SM,)),
            throttle_reasons=gpu_figures.reasons(
                ask(  # drivers before 535 know only the second name
                    "nvmlDeviceGetCurrentClocksEventReasons",
                    "nvmlDeviceGetCurrentClocksThrottleReasons",
                )
            ),
            read_bytes_per_s=Missing("NVML counts no memory traffic"),
            peak_bytes_per_s=gpu_figures.peak(name),
        )

    def _hidden(self, handles: list[Any]) -> int:
        """Distinct pids that the driver lists and that are none of this pod's."""
        listed: set[int] = set()
        for index, handle in enumerate(handles):
            answer = self._ask(index, handle, ("nvmlDeviceGetComputeRunningProcesses",), ())
            listed |= gpu_figures.pids(answer)
        return sum(not (self._proc / str(pid)).exists() for pid in listed)

    def _ask(
        self, index: int, handle: Any, symbols: tuple[str, ...], arguments: tuple[Any, ...]
    ) -> Any:
        """The answer to the first of these symbols that the driver has, or why there is none.

        Raises:
            pynvml.NVMLError: Where the error takes the whole source down.
        """
        answer = Missing("not asked")
        for symbol in symbols:
            code = self._refused.get((index, symbol))
            try:
                if code is not None:
                    raise pynvml.NVMLError(code)
                return self._call(symbol)(handle, *arguments)
            except pynvml.NVMLError as error:
                if error.value in _LOST:
                    raise
                answer = Missing(_REFUSED.get(error.value, f"the driver answers {error}"))
                if error.value in _REFUSED:
                    self._refused[index, symbol] = error.value
                if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                    return answer
        return answer

    def _call(self, symbol: str) -> Callable[..., Any]:
        """The binding's function; an older binding lacks some, as an older driver does."""
        call: Callable[..., Any] | None = getattr(self._library, symbol, None)
        if call is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return call
