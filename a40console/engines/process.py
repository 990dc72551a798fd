"""An engine as a tree of processes: started under a keeper, found again, stopped for good."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from a40console.engines.launching import (
    EngineStartError,
    Launch,
    end_keeper,
    keeper_silent,
    never_began,
    prepare_run_dir,
    start_keeper,
)
from a40console.engines.ports import socket_is_stale
from a40console.engines.run_record import (
    UNSEEN_EXIT,
    EngineExit,
    EngineIdentity,
    read_exit,
    read_identity,
)
from a40console.engines.signalling import send_signal
from a40console.engines.tree import ProcessId, ProcessInfo, ProcFs, engine_members
from a40console.errors import RefusedError

START_TIMEOUT_S = 5.0
KEEPER_END_TIMEOUT_S = 2.0
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.25


class ProcessState(StrEnum):
    """What lives of an engine's processes."""

    RUNNING = "running"
    ORPHANED = "orphaned"
    """The leader is gone, others of the engine live on and hold their memory."""

    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class StopReport:
    """What a stop achieved."""

    left: tuple[ProcessInfo, ...]
    """Processes of the engine that still live; empty when stopped means stopped."""

    denied: tuple[ProcessId, ...]
    """Those that we were not allowed to signal."""

    escalated: bool
    """Whether SIGTERM was not enough."""

    elapsed_s: float
    socket_left: bool
    """Whether the engine's socket file is still there."""

    @property
    def unkillable(self) -> bool:
        """Whether something outlived a SIGKILL that we were allowed to send."""
        return any(process.id not in self.denied for process in self.left)

    def describe(self) -> str:
        """What the operator reads: what is left and what to do about it."""
        if not self.left:
            how = "after SIGKILL" if self.escalated else "on SIGTERM"
            text = f"Stopped {how} in {self.elapsed_s:.1f} s: no process is left."
            return f"{text} Something still listens on its socket." if self.socket_left else text
        names = ", ".join(f"{p.name} (pid {p.pid}, state {p.state})" for p in self.left)
        if self.unkillable:
            why = "SIGKILL has no effect, the kernel holds them: unkillable. Restart the pod."
        else:
            why = "We may not signal them. End them as their owner, or restart the pod."
        return f"Still there after {self.elapsed_s:.1f} s: {names}. {why}"


class EngineProcess:
    """One start of an engine: the leader, its session and everything below its keeper."""

    def __init__(self, run_dir: Path, identity: EngineIdentity, proc: ProcFs | None = None) -> None:
        self.run_dir = run_dir
        self.identity = identity
        self._proc = proc or ProcFs()
        # What was proven the engine's stays so after the leader and the keeper are gone.
        self._known: set[ProcessId] = set()

    @property
    def pid(self) -> int:
        """The leader's pid, which is also the session's number."""
        return self.identity.leader.pid

    @classmethod
    async def start(
        cls,
        run_dir: Path,
        launch: Launch,
        python: str = sys.executable,
        *,
        timeout_s: float = START_TIMEOUT_S,
    ) -> Self:
        """Starts an engine in a fresh run directory; raises EngineStartError and leaves nothing.

        It returns once the program runs; whether it has ended since, `state` tells. Cancelled
        meanwhile, it ends what it had started.
        """
        starting = asyncio.ensure_future(cls._start(run_dir, launch, python, timeout_s))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(EngineStartError):
                await (await starting).stop(term_timeout_s=0)
            raise

    @classmethod
    async def _start(cls, run_dir: Path, launch: Launch, python: str, timeout_s: float) -> Self:
        deadline_s = time.monotonic() + timeout_s
        prepare_run_dir(run_dir)
        keeper = await asyncio.to_thread(start_keeper, run_dir, launch, python, timeout_s)
        while True:
            keeper_alive = keeper is not None and ProcFs().is_alive(keeper)  # first: it may end
            if (identity := read_identity(run_dir)) is not None:
                return cls(run_dir, identity)
            if (end := read_exit(run_dir)) is not None:
                raise never_began(launch, end)
            if not keeper_alive or time.monotonic() >= deadline_s:
                end_keeper(keeper)
                raise keeper_silent(run_dir)
            await asyncio.sleep(FIRST_PAUSE_S)

    @classmethod
    def recorded(cls, run_dir: Path, proc: ProcFs | None = None) -> Self | None:
        """The engine of a run directory, living or not; None when none was ever started there."""
        identity = read_identity(run_dir)
        return None if identity is None else cls(run_dir, identity, proc)

    @classmethod
    def adopt(cls, run_dir: Path, proc: ProcFs | None = None) -> Self | None:
        """Finds the engine of a run directory again; None when nothing of it lives.

        A recorded pid that another process has by now, or a record from before a reboot, proves
        nothing.
        """
        engine = cls.recorded(run_dir, proc)
        return None if engine is None or engine.state() is ProcessState.ENDED else engine

    def members(self) -> list[ProcessInfo]:
        """Every living process that is proven the engine's, by pid."""
        if self._proc.boot_id() != self.identity.boot_id:
            return []
        if (end := read_exit(self.run_dir)) is not None:
            self._known.update(survivor.id for survivor in end.survivors)
        found = engine_members(
            self._proc.read_table(),
            leader=self.identity.leader,
            keeper=self.identity.keeper,
            known=self._known,
        )
        self._known = {process.id for process in found}
        return found

    def leader_alive(self) -> bool:
        """Whether the process that we started lives, not another with its pid."""
        return self._is_alive(self.identity.leader)

    def keeper_alive(self) -> bool:
        """Whether someone will record how the engine ends, and caps its output."""
        return self._is_alive(self.identity.keeper)

    def _is_alive(self, process: ProcessId) -> bool:
        return self._proc.boot_id() == self.identity.boot_id and self._proc.is_alive(process)

    def state(self) -> ProcessState:
        """What lives of it."""
        if self.leader_alive():
            return ProcessState.RUNNING
        return ProcessState.ORPHANED if self.members() else ProcessState.ENDED

    def exit(self) -> EngineExit | None:
        """How the leader ended; None while it lives or while its keeper has yet to record it."""
        if self.leader_alive():
            return None
        keeper_alive = self.keeper_alive()  # first: it records, then it ends
        end = read_exit(self.run_dir)
        return end if end is not None or keeper_alive else UNSEEN_EXIT

    async def stop(
        self,
        *,
        term_timeout_s: float = 10.0,
        kill_timeout_s: float = 10.0,
        socket_path: Path | None = None,
    ) -> StopReport:
        """SIGTERM to every process of the engine, then SIGKILL, then a look at what is left.

        Gives up on what outlives both timeouts. The engine's socket file goes when nobody
        listens behind it any more.
        """
        began_s = time.monotonic()
        denied: set[ProcessId] = set()
        left = await self._signal_all(signal.SIGTERM, term_timeout_s, denied)
        escalated = bool(left)
        if left:
            left = await self._signal_all(signal.SIGKILL, kill_timeout_s, denied)
        elapsed_s = time.monotonic() - began_s
        if not left:
            await self._keeper_end()
            if socket_path is not None and socket_is_stale(socket_path):
                socket_path.unlink(missing_ok=True)
        return StopReport(
            left=tuple(left),
            denied=tuple(sorted(denied)),
            escalated=escalated,
            elapsed_s=elapsed_s,
            socket_left=socket_path is not None and socket_path.exists(),
        )

    async def clean(
        self, *, term_timeout_s: float = 2.0, kill_timeout_s: float = 10.0
    ) -> StopReport:
        """Ends the survivors of an engine whose leader is gone; raises RefusedError if it lives."""
        if self.leader_alive():
            raise RefusedError(
                "The engine is running: nothing of it is left over.",
                evidence=f"its leader, pid {self.pid}, is alive",
                remedy="Stop the engine instead.",
            )
        return await self.stop(term_timeout_s=term_timeout_s, kill_timeout_s=kill_timeout_s)

    async def _signal_all(
        self, number: signal.Signals, timeout_s: float, denied: set[ProcessId]
    ) -> list[ProcessInfo]:
        """Signals each member once, also those born meanwhile; returns what outlives the time."""
        deadline_s = time.monotonic() + timeout_s
        told: set[ProcessId] = set()
        pause_s = FIRST_PAUSE_S
        # Twice: a process born and orphaned during one look can escape that look.
        while members := self.members() or self.members():
            for process in members:
                if process.id not in told:
                    told.add(process.id)
                    if not send_signal(self._proc, process.id, number):
                        denied.add(process.id)
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                return members
            await asyncio.sleep(min(pause_s, remaining_s))
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return []

    async def _keeper_end(self) -> None:
        """Lets the keeper record the end; on a full disk it goes on trying without us."""
        deadline_s = time.monotonic() + KEEPER_END_TIMEOUT_S
        while self.keeper_alive():
            if time.monotonic() >= deadline_s:
                return
            await asyncio.sleep(FIRST_PAUSE_S)
