"""A run is asked for while another has the engine, and is known as long as it waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from a40console.errors import RefusedError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.run import RunSpec
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, locate
from a40console.service.run_disturbed import Clients
from a40console.service.run_folder import RunFolder
from a40console.service.run_ledger import RunLedger
from a40console.service.run_planning import every_design
from a40console.service.run_process import RunProcess
from a40console.service.run_queue import RunQueue
from a40console.service.run_world import ServiceWorld
from a40console.service.runs import Runs, Works
from tests.service import orders
from tests.service.test_run_planning import KNOWN
from tests.service.test_run_queue import running, until

CANARY = RunSpec(experiment="canary")
NOBODY = Clients(active=(), resting=(), requests=0)


@dataclass
class Operator:
    """An engine as a test wants it."""

    status: EngineStatus = field(default_factory=lambda: EngineStatus(state=EngineState.SERVING))
    under_way: Any = None

    def change(self, what: str) -> None:
        self.under_way = SimpleNamespace(change=SimpleNamespace(what=what))

    def is_now(self, state: EngineState) -> None:
        self.status = replace(self.status, state=state)


@dataclass
class Service:
    paths: Paths
    operator: Operator
    world: ServiceWorld
    runs: Runs

    def folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.paths.runs / run_id)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    paths = locate({"A40CONSOLE_HOME": str(tmp_path)})
    paths.state.mkdir(parents=True)
    ledger, operator = RunLedger(paths.ledger), Operator()
    await ledger.ask(lambda opened: opened.runs(1))
    unused: Any = None
    as_operator: Any = operator
    sight: Any = SimpleNamespace(clients=lambda: NOBODY)
    world = ServiceWorld(
        paths=paths,
        operator=as_operator,
        ledger=ledger,
        sight=sight,
        gateway_token=lambda: None,
        keys={},
        rent=unused,
        is_settled=lambda: True,
        began_at="2026-11-30T17:45:02.000Z",
    )

    async def known(_target: object) -> Any:
        return KNOWN

    def record(*_told: object, **_data: object) -> None:
        pass

    works = Works(
        paths=paths,
        operator=as_operator,
        queue=RunQueue(paths, world, record),
        ledger=ledger,
        designs=every_design,
        known=known,
        clients=lambda: NOBODY,
        session=unused,
        keys={},
        record=record,
    )
    yield Service(paths, operator, world, Runs(works))
    await ledger.close()


async def test_a_run_waits_while_the_one_before_it_has_the_engine_put_back(
    service: Service,
) -> None:
    service.operator.change("restart as sim was before the experiment")
    service.operator.is_now(EngineState.STOPPING)
    with pytest.raises(RefusedError, match="under way"):
        await service.runs.start(CANARY)
    earlier = service.folder("20261130-174501-regimes-0000")
    earlier.write_order(orders.order(earlier.id))
    service.runs.queue.current = RunProcess(earlier)
    order = await service.runs.start(CANARY)
    assert [folder.id for folder in service.runs.queue.queued] == [order.id]
    assert service.world.hindrance(order).endswith("is under way")


async def test_a_run_that_waits_has_no_records_yet(service: Service) -> None:
    order = await service.runs.start(CANARY)
    assert await service.runs.records(order.id, 0) == (0, [])


async def test_a_damaged_order_is_listed_with_what_is_wrong(service: Service) -> None:
    order = await service.runs.start(CANARY)
    (service.folder(order.id).path / "order.json").write_text('{"id": ')
    again = RunQueue(service.paths, service.world, lambda *_told, **_data: None)
    async with running(again):
        await until(lambda: not again.queued)
    works = replace(service.runs._works, queue=again)
    [listed] = await Runs(works).newest(10)
    assert (listed.id, listed.spec.experiment, listed.state) == (order.id, "canary", "failed")
    assert "its order is damaged: Expecting value" in listed.reason
    assert isinstance(listed.result, Missing)


@pytest.mark.parametrize("state", [EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED])
async def test_a_run_that_a_service_before_this_one_left_waits_for_an_engine(
    service: Service, state: EngineState
) -> None:
    """After a reboot a service may be started by whoever only looks, and begins without one."""
    service.operator.is_now(state)
    left = orders.order()
    assert service.world.hindrance(left) == state.sentence
    with pytest.raises(RefusedError, match="could not begin"):
        service.world.hindrance(replace(left, asked_at="2026-11-30T17:45:03.000Z"))
    service.operator.is_now(EngineState.SERVING)
    assert service.world.hindrance(left) == ""
