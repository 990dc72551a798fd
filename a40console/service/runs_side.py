"""The service's side of controlled experiments, put together from its parts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from a40console.config import Settings
from a40console.errors import ConsoleError, NotServingError
from a40console.experiments.bench import Known
from a40console.model.run import RunTarget
from a40console.model.snapshot import Snapshot
from a40console.operations.operator import EngineOperator
from a40console.operations.roles import Recorder
from a40console.paths import Paths
from a40console.service.board import Board
from a40console.service.chronicle import Chronicle
from a40console.service.gateway_side import GatewaySide
from a40console.service.run_bounds import BoundsTold
from a40console.service.run_disturbed import Clients, clients_of
from a40console.service.run_handlers import RunHandlers
from a40console.service.run_ledger import RunLedger
from a40console.service.run_planning import Past, every_design, known_of
from a40console.service.run_queue import RunQueue
from a40console.service.run_speeds import NO_SPEEDS, Speeds, speeds_in
from a40console.service.run_world import ServiceWorld
from a40console.service.runs import Runs, Works
from a40console.service.runs_api import RunRoutes
from a40console.service.runs_travel import RunsTravel
from a40console.telemetry.view import EngineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSight:
    """What the service sees of the engine and its clients."""

    board: Board
    gateway: GatewaySide
    read_view: Callable[[], EngineView | None]

    def snapshot(self) -> Snapshot:
        """The newest snapshot; raises NotServingError before the first."""
        if self.board.snapshot is None:
            raise NotServingError("The service has not looked yet", remedy="Ask again in a second.")
        return self.board.snapshot

    def view(self) -> EngineView | None:
        """The engine's own words; None while none answers."""
        return self.read_view()

    def clients(self) -> Clients:
        """Who works with the engine."""
        return clients_of(self.snapshot(), self.gateway.admission.under_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsSide:
    """What the service's wiring needs of it."""

    runs: Runs
    routes: RunRoutes
    handlers: RunHandlers
    travel: RunsTravel


def runs_side(
    *,
    paths: Paths,
    operator: EngineOperator,
    sight: ServiceSight,
    chronicle: Chronicle,
    settings: Settings,
    record: Recorder,
    is_settled: Callable[[], bool],
) -> RunsSide:
    """Put it together.

    Args:
        paths: Where runs and the ledger lie.
        operator: Acts on the engine.
        sight: What is seen of it.
        chronicle: How fast it was.
        settings: The operator's.
        record: Takes events.
        is_settled: Whether it is known which engine runs.
    """
    keys: dict[str, str] = {}

    def opened(lost: str) -> None:
        if lost:
            record("ledger.damaged", "the ledger was damaged", "error", {"evidence": lost})
            queue.compare_with_ledger()

    ledger = RunLedger(paths.ledger, opened, BoundsTold(record))
    world = ServiceWorld(
        paths=paths,
        operator=operator,
        ledger=ledger,
        sight=sight,
        gateway_token=lambda: sight.gateway.door.token,
        keys=keys,
        rent=settings.rent,
        is_settled=is_settled,
    )

    async def earlier(profile: str, simulated: bool) -> Speeds:
        try:
            return await ledger.ask(lambda opened: speeds_in(opened, profile, simulated=simulated))
        except ConsoleError as error:
            log.warning("earlier runs are not known: %s (%s)", error.message, error.evidence)
            return NO_SPEEDS

    queue = RunQueue(paths, world, record)
    past = Past(chronicle=chronicle, runs=earlier)

    async def known(target: RunTarget) -> Known:
        price = world.rented_usd_per_h()
        return await known_of(target, operator.status, sight.snapshot(), past, price)

    runs = Runs(
        Works(
            paths=paths,
            operator=operator,
            queue=queue,
            ledger=ledger,
            designs=every_design,
            known=known,
            clients=sight.clients,
            session=sight.gateway.sessions.detail,
            keys=keys,
            record=record,
        )
    )
    return RunsSide(
        runs=runs,
        routes=RunRoutes(runs),
        handlers=RunHandlers(runs, operator, paths.turned),
        travel=RunsTravel(paths, settings.runs, ledger, record),
    )
