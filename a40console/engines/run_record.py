"""What the keeper leaves in a run directory: who the engine is and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a40console.engines.tree import ProcessId
from a40console.files import parse_json

ENGINE_FILE = "engine.json"
EXIT_FILE = "exit.json"
OUTPUT_FILE = "output.log"
KEEPER_LOG = "keeper.log"


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What proves that a process is the engine we started."""

    leader: ProcessId
    keeper: ProcessId
    boot_id: str
    """Pids and start times mean something within one boot only."""

    started_at: str
    """ISO 8601, UTC."""

    started_monotonic_s: float

    @property
    def session_id(self) -> int:
        """The leader began the session, so the session has its number."""
        return self.leader.pid


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process of the engine that outlived its leader, as the keeper saw it."""

    id: ProcessId
    name: str
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class EngineExit:
    """How the leader ended."""

    code: int | None = None
    """None when a signal ended it, when it never began, or when nobody saw it end."""

    signal: str | None = None
    """`SIGKILL`."""

    error: str | None = None
    """Why it could not be executed, in the system's words."""

    error_number: int | None = None
    oom_kill: bool | None = None
    """Whether the kernel killed a process of our cgroup for want of memory meanwhile; None where
    it does not say."""

    oom_kill_at: str | None = None
    ended_at: str | None = None
    last_lines: tuple[str, ...] = ()
    survivors: tuple[Survivor, ...] = ()

    @property
    def cause(self) -> str:
        """One clause for the operator; what the log says may explain more."""
        if self.error is not None:
            return f"it could not be executed: {self.error}"
        if self.signal is not None:
            cause = f"ended by {self.signal}"
        elif self.code is not None:
            cause = f"exited with code {self.code}"
        else:
            cause = "its keeper was gone when it ended, so neither code nor signal is known"
        if self.oom_kill:
            at = f" at {self.oom_kill_at}" if self.oom_kill_at else ""
            cause += f"; the kernel killed a process here for want of memory{at}"
        return cause


UNSEEN_EXIT = EngineExit()
"""The end of an engine whose keeper was gone before."""


def read_identity(run_dir: Path) -> EngineIdentity | None:
    """Who the engine of a run directory is; None where no record can be read."""
    try:
        record = parse_json((run_dir / ENGINE_FILE).read_bytes())
        return EngineIdentity(
            leader=ProcessId(int(record["pid"]), int(record["start_ticks"])),
            keeper=ProcessId(int(record["keeper_pid"]), int(record["keeper_start_ticks"])),
            boot_id=str(record["boot_id"]),
            started_at=str(record["started_at"]),
            started_monotonic_s=float(record["started_monotonic_s"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_exit(run_dir: Path) -> EngineExit | None:
    """How the engine of a run directory ended; None where no record can be read."""
    try:
        record = parse_json((run_dir / EXIT_FILE).read_bytes())
        return EngineExit(
            code=record["code"],
            signal=record["signal"],
            error=record["error"],
            error_number=record["errno"],
            oom_kill=record["oom_kill"],
            oom_kill_at=record["oom_kill_at"],
            ended_at=record["ended_at"],
            last_lines=tuple(record["last_lines"]),
            survivors=tuple(read_survivor(entry) for entry in record["survivors"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_survivor(entry: dict[str, Any]) -> Survivor:
    """One survivor; raises KeyError, ValueError or TypeError for another shape."""
    return Survivor(
        id=ProcessId(int(entry["pid"]), int(entry["start_ticks"])),
        name=str(entry["name"]),
        rss_bytes=int(entry["rss_bytes"]),
    )
