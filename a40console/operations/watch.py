"""Follows a serving engine to its end, and says whether it should be started again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from a40console.engines.diagnosis import StartFailureKind
from a40console.engines.process import EngineProcess, ProcessState
from a40console.engines.tree import ProcessId, ProcessInfo
from a40console.model.engine import EngineEnd, EngineState
from a40console.operations.status import EngineStatus

LOOK_PERIOD_S = 0.25
EXIT_LOOKS = 60
KEEPER_GONE = (
    "the engine's keeper is gone: its output is no longer capped, and how it ends will not be known"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an engine ended, for the operator."""

    end: EngineEnd
    evidence: str
    remedy: str
    kind: StartFailureKind = "other"
    """What it was, if it was a start that failed."""


Explain = Callable[[EngineProcess, EngineStatus], Explanation]


@dataclass(frozen=True, slots=True)
class Ending:
    """The engine ended, or its leader did."""

    status: EngineStatus
    kind: str
    """Of the event; empty where it is none."""

    text: str
    evidence: dict[str, str] = field(default_factory=dict)
    final: bool = True
    """Whether nothing of it is left."""


@dataclass(slots=True)
class RestartPolicy:
    """How often an engine that ends by itself is started again: a crash loop burns money."""

    enabled: bool = True
    delays_s: tuple[float, ...] = (1.0, 5.0, 20.0)
    within_s: float = 600.0
    _starts: deque[float] = field(default_factory=deque)

    def permits(self, now_s: float) -> bool:
        """Whether there will be another start."""
        while self._starts and now_s - self._starts[0] > self.within_s:
            self._starts.popleft()
        return self.enabled and len(self._starts) < len(self.delays_s)

    def delay_s(self, now_s: float) -> float | None:
        """Seconds to wait before the next start; None when it should stay down."""
        if not self.permits(now_s):
            return None
        self._starts.append(now_s)
        return self.delays_s[len(self._starts) - 1]

    def begin_anew(self) -> None:
        """Somebody asked for what runs now: the ends of what ran before are not its own."""
        self._starts.clear()

    def in_words(self) -> str:
        """Why there is no other start, where there is none."""
        if not self.enabled:
            return "[service] restart_engine is off"
        restarts = len(self.delays_s)
        told = "1 restart" if restarts == 1 else f"{restarts} restarts"
        return f"{told} within {self.within_s / 60:g} min"


class Watcher:
    """Looks at an engine's processes until nothing of it is left."""

    def __init__(
        self,
        process: EngineProcess,
        explain: Explain,
        on_gone: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._explain = explain
        self._on_gone = on_gone

    async def endings(self, read_status: Callable[[], EngineStatus]) -> AsyncIterator[Ending]:
        """What ends: first perhaps the leader alone (orphaned), last the whole engine.

        An orphan's ending comes again, without a kind, when others than before are left of it.
        """
        end: EngineEnd | None = None
        told: frozenset[ProcessId] = frozenset()
        kept = True
        while (state := self._process.state()) is not ProcessState.ENDED:
            survivors = self._process.members() if state is ProcessState.ORPHANED else []
            left = frozenset(process.id for process in survivors)
            if left and left != told:
                self._on_gone()
                end = end or (await self._why(read_status)).end
                yield _orphaned(read_status(), survivors, end, told=bool(told))
                told = left
            if kept and not self._process.keeper_alive():
                kept = False
                without = replace(read_status(), keeper_gone=True)
                yield Ending(without, "engine.keeper_gone", KEEPER_GONE, final=False)
            await asyncio.sleep(LOOK_PERIOD_S)
        self._on_gone()
        why = await self._why(read_status)
        yield ended_by_itself(read_status(), why)

    async def _why(self, read_status: Callable[[], EngineStatus]) -> Explanation:
        for _ in range(EXIT_LOOKS):  # the keeper is about to write it, if its disk has room
            if self._process.exit() is not None:
                break
            await asyncio.sleep(LOOK_PERIOD_S / 5)
        return self._explain(self._process, read_status())


def ended_by_itself(before: EngineStatus, why: Explanation) -> Ending:
    """The ending of an engine that nobody of us stopped."""
    status = replace(
        before,
        state=EngineState.FAILED,
        phase=None,
        end=why.end,
        end_evidence=why.evidence,
        remedy=why.remedy,
        survivors=(),
        left="",
        keeper_gone=False,
    )
    evidence = {"evidence": why.evidence, "remedy": why.remedy}
    return Ending(status, "engine.ended", why.end.cause, evidence)


def _orphaned(
    before: EngineStatus, survivors: Sequence[ProcessInfo], end: EngineEnd, *, told: bool
) -> Ending:
    names = ", ".join(f"{process.name} (pid {process.pid})" for process in survivors)
    status = replace(
        before,
        state=EngineState.ORPHANED,
        phase=None,
        end=end,
        survivors=tuple(survivors),
        left=before.left or "survivors",  # what outlived SIGKILL is still that
    )
    text = f"the engine's leader is gone ({end.cause}), {names} lives on"
    return Ending(status, "" if told else "engine.orphaned", text, {"left": names}, final=False)
