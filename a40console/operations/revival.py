"""Starts an engine again that ended by itself, while the requests that come are held."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from a40console.errors import ConsoleError
from a40console.model.engine import EngineState
from a40console.operations.climbing import Climber
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.steps import StartInterruptedError
from a40console.operations.watch import Ending, RestartPolicy

ORPHAN_PATIENCE_S = 10.0
"""For so long processes that outlive their leader may still end by themselves."""


class Revival:
    """Closes the gate when an engine is gone; opens it when it serves, or nobody revives it."""

    def __init__(
        self,
        life: EngineLife,
        climber: Climber,
        gate: Gatekeeper,
        policy: RestartPolicy,
        turn: asyncio.Lock,
        recorder: Recorder,
    ) -> None:
        self._life = life
        self._climber = climber
        self._gate = gate
        self._policy = policy
        self._turn = turn
        self._record = recorder
        self._hold_number: int | None = None
        life.on_gone = self._hold
        life.on_ending = self._ended

    def _hold(self) -> None:
        """Hold requests from the moment at which it is seen to be gone."""
        if self._life.unwanted or not self._permits():
            return
        if self._gate.closed in (None, self._gate.paused):
            profile = self._life.status.profile
            name = profile.name if profile else "the engine"
            self._hold_number = self._gate.close(f"{name} is started again, as it ended by itself")

    def _permits(self) -> bool:
        """Whether it will be started again: what was asked for since its last end counts anew."""
        if not self._life.status.restarts:
            self._policy.begin_anew()
        return self._policy.permits(self._life.clock())

    def let_go(self) -> None:
        """Open the gate, where it was closed here."""
        if (number := self._hold_number) is not None:
            self._hold_number = None
            self._gate.open(number)

    async def _ended(self, ending: Ending) -> None:
        if not ending.final:
            if ending.status.state is EngineState.ORPHANED:
                asyncio.get_running_loop().call_later(ORPHAN_PATIENCE_S, self._give_up)
            return
        if self._life.unwanted:
            self.let_go()
            return
        self._hold()
        self._life.reviving = True
        try:
            await self._start_again(self._life.status)
        finally:
            self._life.reviving = False
            self.let_go()

    def _give_up(self) -> None:
        """Whatever became of what was left: nobody starts it again."""
        if not self._life.reviving:
            self.let_go()

    async def _start_again(self, ended: EngineStatus) -> None:
        """Start it anew as often as the policy says, unless the operator acts meanwhile."""
        async with self._turn:  # it ended in the midst of a change: that says what serves next
            now = self._life.status
            if now.state is not ended.state or now.run is not ended.run:
                return
            ended = now  # what was turned meanwhile is what it starts with
        profile, rung = ended.profile, ended.rung
        while profile and (delay_s := self._policy.delay_s(self._life.clock())) is not None:
            self._record("engine.restarting", f"{profile.name} starts again in {delay_s:.0f} s")
            await asyncio.sleep(delay_s)
            async with self._turn:
                if self._life.status is not ended:
                    return
                try:
                    await self._climber.climb(Wanted(profile, rung=rung, asked=False))
                except StartInterruptedError:
                    return
                except ConsoleError:
                    ended = self._life.status  # the failure is in the journal and in the status
                else:
                    return
        if profile:
            self._stays_down(profile.name)

    def _stays_down(self, name: str) -> None:
        """Say that nobody starts it again, and why."""
        why = f"not started again: {self._policy.in_words()}"
        self._life.publish(replace(self._life.status, stays_down=why))
        self._record("engine.not_restarted", f"{name} is {why}", "error")
