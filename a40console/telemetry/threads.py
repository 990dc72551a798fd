"""The engine's busiest thread, from the CPU times that the kernel keeps for each one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from a40console.model.busiest_thread import BusiestThread
from a40console.model.figures import Missing

_COMM_LENGTH = 15
"""The kernel cuts thread names after this many bytes."""

_Key = tuple[int, int, int]
"""Process, thread, start time: a number that was used again is another thread."""


@dataclass(frozen=True, slots=True)
class _Thread:
    key: _Key
    name: str
    ticks: int


class ThreadSampler:
    """Compares two readings of the threads of the engine's processes.

    A thread at 100 % of a core is a candidate only: threads that wait for a GPU spin.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, root: Path = Path("/")
    ) -> None:
        self._clock = clock
        self._proc = root / "proc"
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._before: dict[_Key, int] = {}
        self._before_at_s = 0.0

    def sample(self, pids: Sequence[int]) -> BusiestThread | Missing:
        """The thread that used most since the last call, as a ratio of one core."""
        now_s = self._clock()
        threads = [thread for pid in pids for thread in self._threads(pid)]
        elapsed_s = now_s - self._before_at_s
        moved = [
            (thread.ticks - self._before[thread.key], thread)
            for thread in threads
            if thread.key in self._before
        ]
        self._before = {thread.key: thread.ticks for thread in threads}
        self._before_at_s = now_s
        if not pids:
            return Missing("no engine process")
        if not threads:
            return Missing("the engine's threads cannot be read")
        if not moved or elapsed_s <= 0:
            return Missing("first sample")
        ticks, busiest = max(moved, key=lambda entry: entry[0])
        # The kernel's tick makes a full second read up to one tick too long.
        ratio = min(1.0, ticks / self._ticks_per_s / elapsed_s)
        return BusiestThread(name=self._display_name(busiest), ratio=ratio)

    def _threads(self, pid: int) -> Iterator[_Thread]:
        try:
            entries = os.listdir(self._proc / str(pid) / "task")  # noqa: PTH208 names are enough
        except OSError:
            return
        for entry in entries:
            thread = self._read(pid, entry)
            if thread is not None:
                yield thread

    def _read(self, pid: int, tid: str) -> _Thread | None:
        """One thread from `/proc/PID/task/TID/stat`, whose fields `proc_pid_stat(5)` numbers."""
        try:
            text = (self._proc / str(pid) / "task" / tid / "stat").read_text(errors="replace")
        except OSError:  # it ended between the listing and the reading
            return None
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        try:
            key = (pid, int(tid), int(fields[19]))
            return _Thread(key, name, int(fields[11]) + int(fields[12]))
        except (IndexError, ValueError):
            return None

    def _display_name(self, thread: _Thread) -> str:
        name = thread.name
        pid, tid, _ = thread.key
        if pid == tid and len(name.encode()) >= _COMM_LENGTH:
            name = self._title(pid, name)
        return name.removeprefix("VLLM::") or "unnamed"

    def _title(self, pid: int, name: str) -> str:
        """The process title, whole, where the thread's name is its beginning."""
        try:
            title = (self._proc / str(pid) / "cmdline").read_text(errors="replace")
        except OSError:
            return name
        first = title.partition("\0")[0].partition(" ")[0].rpartition("/")[2]
        return first if first.startswith(name) else name
