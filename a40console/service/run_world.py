"""What the queue of runs needs of the rest of the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from a40console.config import RentSettings
from a40console.errors import ConsoleError, NotServingError, RefusedError
from a40console.model.engine import DOWN, EngineState
from a40console.model.figures import Figure, Missing, number
from a40console.model.instants import iso_utc
from a40console.model.profile import Profile
from a40console.model.run import Run
from a40console.model.run_order import RunOrder
from a40console.model.snapshot import Snapshot
from a40console.operations.operator import EngineOperator
from a40console.paths import Paths
from a40console.service.run_disturbed import LOSES, Clients
from a40console.service.run_environment import own_environment, url_environment
from a40console.service.run_folder import RunFolder
from a40console.service.run_ledger import RunLedger
from a40console.service.run_planning import COMING
from a40console.telemetry.view import EngineView

CHANGE_LIMIT_S = 1800.0
"""How long a change that a run began may go on after it, before the engine is left as it is."""

CHANGE_LOOK_S = 0.5
SEEN_WITHIN_S = 6.0
NO_RENT = Missing("no rent is set, and what a URL costs is not known")


class Sight(Protocol):
    """What the service sees of the engine and its clients."""

    def snapshot(self) -> Snapshot:
        """The newest snapshot; raises NotServingError before the first."""

    def view(self) -> EngineView | None:
        """The engine's own words; None while none answers."""

    def clients(self) -> Clients:
        """Who works with the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWorld:
    """The service as the queue of runs sees it."""

    paths: Paths
    operator: EngineOperator
    ledger: RunLedger
    sight: Sight
    gateway_token: Callable[[], str | None]
    keys: dict[str, str]
    """Keys of URLs by the runs that were given them; never on a disk."""

    rent: RentSettings
    is_settled: Callable[[], bool]
    began_at: str = field(default_factory=lambda: iso_utc(time.time()))
    """When the service began, ISO 8601: what was asked for before waits until it has an engine."""

    def settled(self) -> bool:
        """Whether it is known which engine runs."""
        return self.is_settled()

    def hindrance(self, order: RunOrder) -> str:
        """Why a run cannot start yet; empty where it can; raises RefusedError if it never can."""
        if order.spec.target.kind == "url":
            return ""
        if (change := self.operator.under_way) is not None:
            return f"a {change.change.what} is under way"
        state = self.operator.status.state
        if state in COMING or (state in DOWN and order.asked_at < self.began_at):
            return state.sentence
        if state is not EngineState.SERVING:
            raise RefusedError("It could not begin", evidence=state.sentence)
        clients = self.sight.clients()
        if clients.any_active and self._waits_for_clients(order):
            return _at_work(clients)
        return ""

    def _waits_for_clients(self, order: RunOrder) -> bool:
        """Whether it was to wait, or would cost somebody who came since more than was accepted."""
        spec = order.spec
        loses = order.plan.intrusion in LOSES and not spec.accept_intrusion
        return spec.when == "idle" or loses

    async def equip(self, order: RunOrder) -> tuple[RunOrder, Profile | None]:
        """The order with what it runs on, and what the engine is, to be put back after it."""
        target = order.spec.target
        if target.kind == "url":
            vcpu = self.sight.snapshot().host.cpu_quota_vcpu
            token = self.keys.get(order.id, "")
            environment = await url_environment(target, token, self.rented_usd_per_h(), vcpu)
            return replace(order, environment=environment), None
        await self._seen()
        run, view = self.operator.status.run, self.sight.view()
        if run is None:
            raise NotServingError("The engine is gone")
        settings = {} if view is None else view.settings
        environment = await own_environment(run, self.sight.snapshot(), settings)
        before = self.operator.status.profile
        return replace(order, environment=environment), before

    async def _seen(self) -> None:
        """Wait until an engine that has just come to serve was asked who it is."""
        until_s = time.monotonic() + SEEN_WITHIN_S
        while time.monotonic() < until_s:
            engine, run = self.sight.snapshot().engine, self.operator.status.run
            known = not isinstance(engine.version, Missing) or number(engine.max_model_len)
            if run is not None and engine.id == run.id and known:
                return
            await asyncio.sleep(CHANGE_LOOK_S)

    def rented_usd_per_h(self) -> Figure:
        """What this machine costs by the settings alone, whatever engine runs on it."""
        price, disk = self.rent.usd_per_hour, self.rent.disk_usd_per_hour
        return NO_RENT if price is None else float(price + (disk or 0))

    def token(self, order: RunOrder) -> str | None:
        """The secret of its target, empty for none; None where it is lost."""
        match order.spec.target.kind:
            case "gateway":
                return self.gateway_token() or ""
            case "url":
                keyed = RunFolder(self.paths.runs / order.id).is_keyed
                return self.keys.get(order.id, None if keyed else "")
            case _:
                return ""

    async def put_back(self, profile: Profile) -> str:
        """Make the engine what it was before a run; what was done, in words."""
        await self._change_ended()
        status = self.operator.status
        if status.profile == profile or not status.living:
            return ""
        what = f"restart as {profile.name} was before the experiment"
        try:
            if (mode := _turned(status.profile, profile)) is not None:
                way = await self.operator.speculation_way(mode)
                if way.how == "live":
                    await self.operator.speculate(mode)
                    return f"speculation is {mode} again"
            await self.operator.replace_with(what, profile, rung=status.rung)
        except ConsoleError as error:
            return f"{profile.name} could not be put back: {error.message} ({error.evidence})"
        return f"{profile.name} is as it was before, started anew"

    async def _change_ended(self) -> None:
        """A restart that the run began outlives it."""
        waited_s = 0.0
        while self.operator.under_way is not None and waited_s < CHANGE_LIMIT_S:
            await asyncio.sleep(CHANGE_LOOK_S)
            waited_s += CHANGE_LOOK_S

    async def keep(self, folder: RunFolder) -> Run:
        """Let the ledger take a run that has ended."""
        self.keys.pop(folder.id, None)
        return await self.ledger.take(lambda ledger: ledger.ingest(folder.path))

    async def has(self, folder: RunFolder) -> bool:
        """Whether the ledger has a run."""
        return await self.ledger.ask(lambda ledger: ledger.has(folder.id))


def _at_work(clients: Clients) -> str:
    """`2 sessions are at work`."""
    sessions = len(clients.active)
    many, what = (sessions, "session") if sessions else (clients.requests, "request")
    return f"1 {what} is at work" if many == 1 else f"{many} {what}s are at work"


def _turned(now: Profile | None, before: Profile) -> str | None:
    """How speculation was turned, where nothing else differs; None where more does."""
    asked = before.speculation
    if now is None or asked is None or replace(now, speculation=asked) != before:
        return None
    return str(asked.start_tokens) if asked.start_tokens else "off"
