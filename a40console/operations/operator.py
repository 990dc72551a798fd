"""Commands on the one engine: start, stop, restart, switch, speculation, clean, adopt.

One command acts at a time; a stop interrupts what is under way. Who asks for another change
meanwhile is refused, and told who is at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from a40console.errors import ConsoleError, RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations import desire
from a40console.operations.applying import Edits, apply_edited
from a40console.operations.climbing import Climber
from a40console.operations.edited_profile import take_over
from a40console.operations.ending import refused_start
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.live_speculation import (
    LiveSpeculation,
    NotWellError,
    Way,
    started_depth,
)
from a40console.operations.preflight import Preflight
from a40console.operations.resumption import Resumption
from a40console.operations.revival import Revival
from a40console.operations.roles import Admission, Recorder, Starter
from a40console.operations.status import EngineStatus, refuse_another
from a40console.operations.steps import Interruptible
from a40console.operations.switch import Canary, Change, Switch
from a40console.operations.turned import forget_turned, note_turned
from a40console.operations.under_way import UnderWay
from a40console.operations.watch import Explain, RestartPolicy
from a40console.operations.who import asking
from a40console.paths import Paths

CLEAN_TIMEOUT_S = 2.0
DRAIN_S = 30.0
"""How long running requests may take to end before an engine is replaced."""


@dataclass(frozen=True, slots=True)
class Engineering:
    """What the operator works with."""

    starter: Starter
    admission: Admission
    canary: Canary
    preflight: Preflight
    policy: RestartPolicy
    explain: Explain


class EngineOperator:
    """Keeps the turn; everything else reads `status`."""

    def __init__(
        self,
        *,
        paths: Paths,
        find_profile: Callable[[str], Profile],
        works: Engineering,
        recorder: Recorder,
        clock: Callable[[], float],
        drain_s: float = DRAIN_S,
    ) -> None:
        self._runs = paths.engine_runs
        self._desired_file = paths.desired
        self._fallback_file = paths.fallback
        self._turned_file = paths.turned
        self._find_profile = find_profile
        self._record = recorder
        self._explain = works.explain
        self._preflight = works.preflight
        self._speculation = LiveSpeculation(
            runs=paths.engine_runs, canary=works.canary, recorder=recorder, clock=clock
        )
        self._edits = Edits(
            paths, recorder, self._restart_with, self._take_over, lambda: self.status
        )
        self._drain_s = drain_s
        self._turn = asyncio.Lock()
        self._preparing = Interruptible()
        self.under_way: UnderWay | None = None
        """What changes just now."""

        self._gate = Gatekeeper(works.admission)
        self._life = EngineLife(
            paths=paths,
            starter=works.starter,
            recorder=recorder,
            explain=works.explain,
            clock=clock,
        )
        self._climber = Climber(self._life, recorder)
        self._switch = Switch(
            self._life,
            self._climber,
            self._gate,
            works.canary,
            recorder,
            fallback_file=paths.fallback,
        )
        self._resumption = Resumption(
            paths,
            self._life,
            self._climber,
            self._gate,
            turn=self._turn,
            recorder=recorder,
            explain=works.explain,
        )
        self._revival = Revival(
            self._life, self._climber, self._gate, works.policy, self._turn, recorder
        )

    @property
    def status(self) -> EngineStatus:
        """Where the engine is in its life."""
        return self._life.status

    def follow(self, on_change: Callable[[EngineStatus], None]) -> None:
        """Call this after each change of status from now on."""
        self._life.on_change = on_change

    def member_pids(self) -> list[int]:
        """The engine's processes now."""
        process = self._life.process
        return [member.pid for member in process.members()] if process else []

    @property
    def busy(self) -> bool:
        """Whether a start is under way, or what leads to one."""
        return self._life.step.busy

    @property
    def gate(self) -> Gatekeeper:
        """Who holds the gateway's gate closed."""
        return self._gate

    @asynccontextmanager
    async def exclusively(
        self, what: str, drain_s: float | None = None
    ) -> AsyncIterator[EngineLife]:
        """Nobody else acts on the engine inside the block.

        Args:
            what: What is done, in words: `sleep of beta`.
            drain_s: How long it lets running requests end; None where the settings say it.

        Raises:
            RefusedError: If no engine was started, or another change is under way.
        """
        profile = self._present_profile()
        bound_s = self._drain_s if drain_s is None else drain_s
        rung = self.status.rung
        change = Change(what=what, profile=profile, rung=rung, drain_s=bound_s, who=asking())
        with self._alone(change):
            async with self._turn:
                yield self._life

    async def start(self, name: str) -> None:
        """Start a profile and wait until it serves.

        Raises:
            RefusedError: If an engine lives already, or something of one is left.
        """
        profile = self._find_profile(name)
        await self.start_profile(profile, read_anew=True)

    async def start_profile(self, profile: Profile, *, read_anew: bool = False) -> None:
        """Start a profile as it is given, and wait until it serves.

        Args:
            profile: What to start.
            read_anew: Whether it is as its file says, nothing of it turned.

        Raises:
            RefusedError: If an engine lives already, or something of one is left.
        """
        self._refuse_second()
        refuse_another(self.status, starting=self.busy)
        async with self._turn:
            refuse_another(self.status, starting=self.busy)
            if read_anew:
                forget_turned(self._turned_file)
            desire.forget(self._fallback_file)
            await self._climber.climb(Wanted(profile))

    async def stop(self) -> str:
        """Stop the engine and verify that nothing of it is left; what the operator reads.

        A start under way is interrupted; a switch goes no further than it is.

        Raises:
            RefusedError: If there is no engine.
            ConsoleError: If something of it is left.
        """
        life = self._life
        life.stops_wanted += 1
        try:
            self._preparing.interrupt()
            if life.step.busy:
                life.step.interrupt()
                life.publish(replace(self.status, state=EngineState.STOPPING, phase=None))
            async with self._turn:
                desire.forget(self._desired_file)
                desire.forget(self._fallback_file)
                life.unwanted = True
                self._revival.let_go()
                if life.process is not None:
                    return await life.take_down(life.process)
                if self.status.state is EngineState.ABSENT:
                    remedy = "Start one: a40console engine start"
                    raise RefusedError("No engine runs", remedy=remedy)
                life.publish(replace(self.status, state=EngineState.STOPPED, phase=None))
                return "Nothing was running."
        finally:
            life.stops_wanted -= 1

    async def settle(self) -> None:
        """Wait until a stop that is under way has ended."""
        if self.status.state is EngineState.STOPPING:
            async with self._turn:
                return

    async def restart(self, drain_s: float | None = None) -> dict[str, str]:
        """Start the same profile again in its own place, as it was asked for last."""
        profile = self._present_profile()
        rung = self.status.rung
        return await self.replace_with(f"restart of {profile.name}", profile, drain_s, rung=rung)

    async def switch(self, name: str, drain_s: float | None = None) -> dict[str, str]:
        """Let another profile serve; puts the old one back if that fails."""
        running = self.status.profile if self.status.living else None
        same = running is not None and running.name == name
        what = f"switch to {name}{', which served already' if same else ''}"
        result = await self.replace_with(what, self._find_profile(name), drain_s)
        forget_turned(self._turned_file)
        return result | ({"again": f"{name} served already: it was started anew"} if same else {})

    async def apply(self, shown: str = "", drain_s: float | None = None) -> dict[str, str]:
        """Let the running profile's edited file be in force: by a restart where it takes one.

        Args:
            shown: Names the changes that the operator saw; empty takes the file as it is now.
            drain_s: How long running requests may take to end before a restart.

        Raises:
            RefusedError: If nothing runs, the file is wrong, or it is not what was shown.
        """
        self._refuse_second()
        return await apply_edited(self._edits, self.status, shown, drain_s)

    async def foresee(self, profile: Profile) -> None:
        """See to what of a switch to a profile can be told at once; nothing is changed.

        Raises:
            RefusedError: If it cannot succeed.
        """
        await self._preflight.foresee(profile)

    async def speculation_way(self, mode: str) -> Way:
        """How speculation would be turned now; nothing is changed.

        Raises:
            UsageError: If the mode is none of `on`, `off` and a number of tokens.
            RefusedError: If the profile has no speculation, is locked, or has it so already.
        """
        return await self._speculation.way(self.status, mode)

    async def speculate(self, mode: str, drain_s: float | None = None) -> dict[str, str]:
        """Turn speculation on, off, or on at a depth: live where the engine can, else by restart.

        Raises:
            UsageError: If the mode is none of `on`, `off` and a number of tokens.
            RefusedError: If the profile has no speculation, or is locked.
        """
        self._refuse_second()
        way = await self.speculation_way(mode)
        note_turned(self._turned_file, self._present_profile())
        what, rung = f"speculation {mode}", self.status.rung
        if way.how == "restart":
            before = started_depth(self.status)
            replaced = await self.replace_with(what, way.profile, drain_s, rung=rung)
            return replaced | self._speculation.restarted(way, before)
        change = Change(what=what, profile=way.profile, rung=rung, drain_s=0.0, who=asking())
        with self._alone(change):
            async with self._turn:
                try:
                    result = await self._speculation.turn(self.status, way)
                except NotWellError as error:
                    if error.stays:
                        self._turned(way.profile)
                    raise
                self._turned(way.profile)
                return {"profile": way.profile.name, **result}

    def _turned(self, profile: Profile) -> None:
        """What was turned while the engine runs is what a restart of it begins with."""
        desire.remember(self._desired_file, profile)
        self._life.publish(replace(self.status, profile=profile))

    async def clean(self) -> str:
        """End exactly the processes that an engine left behind, an unkillable leader included."""
        async with self._turn:
            process = self._life.process
            if process is None or self.status.state is not EngineState.ORPHANED:
                raise RefusedError("Nothing of an engine is left over")
            report = await self._life.clean(process, CLEAN_TIMEOUT_S)
            self._revival.let_go()
            return report

    async def adopt(self) -> bool:
        """Take over an engine that a service before us started; whether there is one.

        One that ended while no service watched is explained, and what was desired of it stays.
        """
        return await self._resumption.adopt(self._switch.prove)

    def note_failure(self, error: ConsoleError) -> None:
        """A start that could not even begin is told like one that failed."""
        self._life.publish(refused_start(EngineStatus(), error))
        self._life.record_failure(error)

    async def close(self) -> None:
        """Let go of the engine without touching it; who waits at the gate is told."""
        await self._preparing.close()
        await self._life.close()
        self._revival.let_go()

    async def _restart_with(self, file: Profile, drain_s: float | None) -> dict[str, str]:
        return await self.replace_with(f"change of {file.name}", file, drain_s)

    async def _take_over(self, file: Profile) -> None:
        change = Change(what=f"change of {file.name}", profile=file, drain_s=0.0, who=asking())
        with self._alone(change):
            async with self._turn:
                status = take_over(self.status, file, self._runs, self._desired_file)
                self._life.publish(status)

    async def replace_with(
        self, what: str, profile: Profile, drain_s: float | None = None, *, rung: int = 0
    ) -> dict[str, str]:
        """Let a profile serve, as it is given, in place of what serves; `what` is told of it."""
        bound_s = self._drain_s if drain_s is None else drain_s
        change = Change(what=what, profile=profile, rung=rung, drain_s=bound_s, who=asking())
        with self._alone(change):
            if self.status.state is EngineState.ORPHANED:
                refuse_another(self.status, starting=self.busy)
            await self._preparing.run(self._preflight.demand(profile, self.status, self._tell))
            self._tell("")
            async with self._turn:
                if self.status.state is EngineState.ORPHANED:
                    refuse_another(self.status, starting=self.busy)
                return await self._switch.carry_out(change)

    def _tell(self, text: str) -> None:
        """How far the preparation of a change is."""
        if self.under_way is not None:
            self.under_way = replace(self.under_way, progress=text)

    @contextmanager
    def _alone(self, change: Change) -> Iterator[None]:
        """Nobody else changes what serves inside the block."""
        self._refuse_second()
        if self.busy:
            raise RefusedError(
                "The engine is starting", remedy="Wait for it, or stop it first: engine stop"
            )
        self.under_way = UnderWay(change, self._life.clock())
        try:
            yield
        finally:
            self.under_way = None

    def _refuse_second(self) -> None:
        if (other := self.under_way) is not None:
            doing = other.progress or self.status.phase or self.status.state
            raise RefusedError(
                f"A {other.change.what} is under way",
                evidence=f"asked for by {other.change.who or 'the service'}; {doing}",
                remedy="Wait for it, or stop the engine: a40console engine stop",
            )

    def _present_profile(self) -> Profile:
        if self.status.profile is None:
            raise RefusedError("No engine was started", remedy="Start one: engine start PROFILE")
        return self.status.profile
