"""Processes as `/proc` shows them: who they are, which of them are an engine's.

Only `/proc/PID/stat` and its like are read: `cmdline` waits for a lock that a process stuck in a
driver may hold, and a look at a broken engine must not freeze the one who looks. A name is thus
the kernel's, 15 characters long: `VLLM::EngineCor`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class ProcessId:
    """One process for good: a pid is given again to a stranger, a pid with its start is not."""

    pid: int
    start_ticks: int
    """Start in clock ticks since boot, field 22 of `/proc/PID/stat`."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A living process at one moment."""

    id: ProcessId
    name: str
    """The kernel's name, at most 15 characters."""

    state: str
    """proc(5): R runs, S sleeps, D waits in the kernel and heeds no signal, T stopped."""

    parent_pid: int
    session_id: int
    thread_count: int

    @property
    def pid(self) -> int:
        """The pid alone, for display; compare by `id`."""
        return self.id.pid


class ProcFs:
    """Reads processes below a `/proc`, which tests put elsewhere."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def boot_id(self) -> str:
        """The kernel's name for this boot; empty where it gives none."""
        try:
            return (self._root / "sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""

    def read_process(self, pid: int) -> ProcessInfo | None:
        """One process, None when it is gone; a zombie (or a dead one, X) is gone."""
        try:
            text = (self._root / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return parse_stat(text)

    def read_table(self) -> dict[int, ProcessInfo]:
        """Every living process by pid."""
        pids = [int(entry.name) for entry in self._root.iterdir() if entry.name.isdigit()]
        return {pid: found for pid in pids if (found := self.read_process(pid)) is not None}

    def is_alive(self, process: ProcessId) -> bool:
        """Whether exactly this process lives, not another with its pid."""
        found = self.read_process(process.pid)
        return found is not None and found.id == process


def parse_stat(text: str) -> ProcessInfo | None:
    """Reads one line of `/proc/PID/stat` (proc(5)); None for what is gone or cut short.

    A zombie with threads left is not gone: its main thread ended while others, perhaps stuck in
    a driver, still hold its memory and its GPU.
    """
    # The name stands in brackets and may hold brackets and blanks itself.
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    if len(fields) < 20:
        return None
    state, thread_count = fields[0], int(fields[17])
    if state in "ZXx" and thread_count <= 1:
        return None
    return ProcessInfo(
        id=ProcessId(int(pid), int(fields[19])),
        name=name,
        state=state,
        parent_pid=int(fields[1]),
        session_id=int(fields[3]),
        thread_count=thread_count,
    )


def with_descendants(table: Mapping[int, ProcessInfo], roots: Iterable[int]) -> set[int]:
    """The pids of the roots that live and of everything below them."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent_pid, []).append(process.pid)
    found: set[int] = set()
    queue = [pid for pid in roots if pid in table]
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, ())
    return found


def engine_members(
    table: Mapping[int, ProcessInfo],
    *,
    leader: ProcessId,
    keeper: ProcessId,
    known: Collection[ProcessId] = (),
) -> list[ProcessInfo]:
    """The living processes that are proven the engine's, by pid; its keeper is none of them.

    Proven are the leader, what the keeper or a proven process has below it, and those `known`
    from an earlier look. The session's other members count while one of the proven is in it: the
    kernel gives a session's number to nobody else as long as it has a member. Without such a
    proof a session of the same number is a stranger's.
    """
    roots = {p.pid for p in (leader, keeper, *known) if p.pid in table and table[p.pid].id == p}
    session_id = leader.pid
    found = with_descendants(table, roots)
    if any(table[pid].session_id == session_id for pid in found):
        members = {p.pid for p in table.values() if p.session_id == session_id}
        found = with_descendants(table, found | members)
    if keeper.pid in roots:
        found.discard(keeper.pid)
    return [table[pid] for pid in sorted(found)]
