"""How far the load's own client can be believed: its loop's lag, its CPU, steps of the clock."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from array import array
from collections.abc import Callable
from types import TracebackType
from typing import Self

from a40console.model.figures import Figure, Missing

PERIOD_S = 0.097
"""Being woken costs some 60 µs on a busy machine, more than reading a token: a hundred times a
second would be most of the client's CPU beside a slow engine. No multiple of anything: it meets an
engine's passes at every phase."""

LEAST_TICKS = 10
TOO_SHORT = Missing("too short to tell")
NOT_BEGUN = Missing("not watched yet")
_CLOCK_MONOTONIC = 1
_NONBLOCKING_AND_CLOSED_ON_EXEC = os.O_NONBLOCK | os.O_CLOEXEC
_EXPIRATIONS_BYTES = 8
_CLEAR_S = 0.002
"""Two readings of the clocks that lie further apart than this were interrupted: not compared."""

_LEAST_STEP_S = 0.05
"""Less than this between two ticks is how far two clocks are read apart, or the wall's slow turn
towards the time of its servers."""


class LoadHealth:
    """Watches this process while it is entered; `figures()` may be asked during and after.

    The lag is that of a timer of the kernel, which the loop reads as it reads a socket: how long
    bytes that have arrived wait until they are stamped. The loop's own timers would not do, they
    are rounded up to a millisecond. Every expiry counts, also those that a stalled loop slept
    through.
    """

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        """Watch nothing yet; `wall` is the clock that may be set."""
        self._wall = wall
        self._fd = -1
        self._lags_s = array("d")
        self._began_s = self._due_s = 0.0
        self._ended_s: float | None = None
        self._cpu_began_s = self._cpu_ended_s = 0.0
        self._offset_s: float | None = None
        self._step_s = 0.0

    async def __aenter__(self) -> Self:
        self._fd = _timer(PERIOD_S)
        self._began_s = self._due_s = time.monotonic()
        self._cpu_began_s = time.process_time()
        self._compare_clocks()
        asyncio.get_running_loop().add_reader(self._fd, self._tick)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tick()  # what is due already and was not read yet
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        self._ended_s, self._cpu_ended_s = time.monotonic(), time.process_time()

    def figures(self) -> dict[str, Figure]:
        """`loop_lag_mean_s`, `loop_lag_p99_s`, `cpu_cores`, `clock_step_s`, for `ArmEnd.client`."""
        lags = sorted(self._lags_s)
        enough = len(lags) >= LEAST_TICKS
        return {
            "loop_lag_mean_s": sum(lags) / len(lags) if enough else TOO_SHORT,
            "loop_lag_p99_s": lags[int(0.99 * len(lags))] if enough else TOO_SHORT,
            "cpu_cores": self._cpu_cores(),
            "clock_step_s": self._step_s if self._offset_s is not None else NOT_BEGUN,
        }

    def _cpu_cores(self) -> Figure:
        if not self._began_s:
            return NOT_BEGUN
        running = self._ended_s is None
        used_s = (time.process_time() if running else self._cpu_ended_s) - self._cpu_began_s
        took_s = (self._ended_s or time.monotonic()) - self._began_s
        return used_s / took_s if took_s >= LEAST_TICKS * PERIOD_S else TOO_SHORT

    def _tick(self) -> None:
        try:
            expired = int.from_bytes(os.read(self._fd, _EXPIRATIONS_BYTES), "little")
        except BlockingIOError:
            return
        now_s = time.monotonic()
        for _ in range(expired):
            self._due_s += PERIOD_S
            self._lags_s.append(max(0.0, now_s - self._due_s))
        self._compare_clocks()

    def _compare_clocks(self) -> None:
        """Add up what the wall clock jumped against the one that nobody sets."""
        before_s, wall_s, after_s = time.monotonic(), self._wall(), time.monotonic()
        if after_s - before_s > _CLEAR_S:
            return
        offset_s = wall_s - before_s
        jump_s = abs(offset_s - (offset_s if self._offset_s is None else self._offset_s))
        if jump_s > _LEAST_STEP_S:
            self._step_s += jump_s
        self._offset_s = offset_s


class _Spec(ctypes.Structure):
    """`struct timespec`."""

    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = [("it_interval", _Spec), ("it_value", _Spec)]


def _timer(period_s: float) -> int:
    """A file descriptor that becomes readable every so often (timerfd; Python has it from 3.13).

    Raises:
        OSError: If the kernel gives none.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCKING_AND_CLOSED_ON_EXEC)
    period = _Spec(int(period_s), int(period_s % 1 * 1e9))
    both = _TimerSpec(period, period)
    if fd < 0 or libc.timerfd_settime(fd, 0, ctypes.byref(both), None) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd
