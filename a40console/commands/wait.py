"""`a40console wait`: until the engine is ready, idle or stopped, for scripts."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.number import NumberRange
from a40console.commands.output import note, print_json
from a40console.commands.progress import Progress
from a40console.commands.running import connect, engine_lives
from a40console.commands.verdict import phase_line
from a40console.errors import NoServiceError, NotServingError, TimedOutError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths
from a40console.tui.format import count, shown

Goal = Literal["ready", "idle", "stopped"]

POLL_S = 0.3
FAILED_FOR_INTERVALS = 2.5
"""A snapshot may be an interval old: a failure counts once newer ones still show it."""

_NOT_RUNNING = (EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED)


@click.command()
@click.argument("goal", type=click.Choice(["ready", "idle", "stopped"]))
@click.option(
    "--timeout",
    "timeout_s",
    type=NumberRange(min=0),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Give up after this many seconds, with exit code 7.",
)
@json_option
@click.pass_obj
def command(invocation: Invocation, *, goal: Goal, timeout_s: float, as_json: bool) -> None:
    """Wait until the engine serves, serves and has nothing to do, or has stopped.

    Also before the service is up. Exit code 4 if the engine fails meanwhile. Starts nothing.
    """
    started = time.monotonic()
    wait = Wait(invocation.paths, goal)
    snapshot = asyncio.run(wait.until(started + timeout_s))
    waited_s = time.monotonic() - started
    if as_json:
        state = snapshot.engine.state if snapshot else Missing("no service answers")
        print_json({"reached": goal, "engine": state, "waited_s": round(waited_s, 3)})
    else:
        note(f"{goal} after {waited_s:.1f} s")


@dataclass
class Wait:
    """One wait: what it looks for, and what it last saw."""

    paths: Paths
    goal: Goal
    progress: Progress | None = None
    seen: str = "nothing was seen"
    failed_since_s: float | None = None

    async def until(self, deadline: float) -> Snapshot | None:
        """The snapshot that reached the goal; None where all is gone, the service too.

        Raises:
            NotServingError: If the engine failed, with its cause.
            TimedOutError: At the deadline, with what was seen last.
        """
        while True:
            snapshot = await self._look(deadline)
            if snapshot is None:
                if self.goal == "stopped":
                    if not engine_lives(self.paths):
                        return None
                    self.seen = "No service answers, and an engine still runs."
            elif self._reached(snapshot):
                return snapshot
            if time.monotonic() >= deadline:
                raise TimedOutError(f"Not {self.goal} in time", evidence=self.seen)
            await asyncio.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))

    async def _look(self, deadline: float) -> Snapshot | None:
        """The newest snapshot; None where no service answers."""
        try:
            async with asyncio.timeout(max(1.0, deadline - time.monotonic())):
                async with await connect(self.paths) as client:
                    snapshot = await client.snapshot()
        except NoServiceError as error:
            self.seen = f"{error.message}: {error.evidence}"
        except (TimeoutError, TimedOutError):
            self.seen = "The service does not answer."
        else:
            if self.progress is not None:
                self.progress.show(snapshot)
            return snapshot
        return None

    def _reached(self, snapshot: Snapshot) -> bool:
        engine = snapshot.engine
        phase = phase_line(engine)
        self.seen = f"The engine is {engine.state.value}{phase and f': {phase}'}"
        if self.goal == "stopped":
            return engine.state in _NOT_RUNNING
        self._check_failure(snapshot)
        serves = engine.state is EngineState.SERVING
        return serves and (self.goal == "ready" or self._is_idle(snapshot))

    def _check_failure(self, snapshot: Snapshot) -> None:
        now_s = time.monotonic()
        if snapshot.engine.state is not EngineState.FAILED:
            self.failed_since_s = None
        elif self.failed_since_s is None:
            self.failed_since_s = now_s
        elif now_s - self.failed_since_s > FAILED_FOR_INTERVALS * snapshot.interval_s:
            end = snapshot.engine.exit
            raise NotServingError(
                "The engine failed",
                evidence="" if isinstance(end, Missing) else end.cause,
                remedy="Read its output with: a40console engine logs",
            )

    def _is_idle(self, snapshot: Snapshot) -> bool:
        requests = snapshot.requests
        self.seen = (
            f"The engine has {requests.held} held, {shown(requests.waiting, count)} waiting, "
            f"{shown(requests.running, count)} running"
        )
        return (requests.held, requests.waiting, requests.running) == (0, 0, 0)
