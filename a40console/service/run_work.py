"""One run from its first record to its last, in a process of its own."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
import time
import traceback
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import uvloop

from a40console.engines.tree import ProcFs
from a40console.errors import ConsoleError
from a40console.experiments.bench import ArmFailedError, Design, RunStoppedError
from a40console.experiments.server_address import without_key
from a40console.gateway.anthropic.identity import CUSTOM_SESSION_HEADER
from a40console.model.experiment import settle
from a40console.model.figures import Figure, Missing
from a40console.model.instants import iso_utc
from a40console.model.own_request import RUN_SESSION
from a40console.model.run import RunEnvironment, RunState
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Ended, Found, Started
from a40console.model.run_result import RunResult
from a40console.paths import Paths, locate
from a40console.service.client import ServiceClient, client_of
from a40console.service.run_bench import Around, Job, RunBench
from a40console.service.run_client import RunClient
from a40console.service.run_counters import RunCounters
from a40console.service.run_engine import RunEngine
from a40console.service.run_environment import is_here
from a40console.service.run_folder import RunChild, RunFolder
from a40console.service.run_machine import MachineWatch
from a40console.service.run_place import TOKEN_VARIABLE, Place, find_place
from a40console.service.run_records import RecordsError, RunRecords
from a40console.service.run_stop import Limits, RunStop

LOCK = "lock"
NOT_OURS, NOT_WRITTEN = 3, 4
"""Exit codes: another process carries the run out; the disk does not take its records."""

log = logging.getLogger(__name__)
Outcome = tuple[RunState, str]


def carry_out(path: Path) -> int:
    """Carry out the run of a folder; 0 where its records say how it ended."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    folder, paths = RunFolder(path), locate()
    token = os.environ.pop(TOKEN_VARIABLE, "")
    try:
        if not _is_alone(folder):
            return NOT_OURS
        order = folder.order()
        if order is None:
            log.error("the order of %s cannot be read", folder.path)
            return 1
        with RunRecords(folder.records_file) as records:
            uvloop.run(_Run(folder, order, paths, token, records).carry_out())
    except (RecordsError, OSError) as error:
        log.error("%s", error)
        return NOT_WRITTEN
    return 0


def _is_alone(folder: RunFolder) -> bool:
    """Whether nobody else carries the run out; then it is written down who does."""
    lock = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    proc = ProcFs()
    found = proc.read_process(os.getpid())
    if found is not None:
        folder.write_child(RunChild(found.id, proc.boot_id()))
    return True  # the lock stays open, and so held, until the process ends


class _Run:
    """One run from its first record to its last."""

    def __init__(
        self,
        folder: RunFolder,
        order: RunOrder,
        paths: Paths,
        token: str,
        records: RunRecords,
    ) -> None:
        self._folder = folder
        self._order = order
        self._paths = paths
        self._token = token
        self._records = records
        environment = order.environment
        known = environment if isinstance(environment, RunEnvironment) else None
        self._usd_per_h: Figure = known.usd_per_h if known else Missing("no price is known")
        self._simulated = known is not None and known.simulated

    async def carry_out(self) -> None:
        """Measure, and write down how it ended; raises RecordsError where that cannot be."""
        stop = RunStop(
            asked=self._folder.why_ended, limits=Limits.of(self._order.spec, self._usd_per_h)
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: stop.end(self._folder.why_ended() or "ended"))
        if isinstance(self._order.environment, RunEnvironment):
            self._records.append(
                Started(
                    at=_now(),
                    environment=self._order.environment,
                    plan=self._order.plan,
                    settled=self._order.settled,
                )
            )
        watch = asyncio.create_task(stop.watch(), name="limits")
        try:
            state, reason = await self._outcome(stop)
        except RecordsError as error:
            state, reason = "partial", str(error)
        finally:
            watch.cancel()
        told = without_key(reason, self._token)  # whatever its server said
        self._records.append(Ended(at=_now(), state=state, reason=told))

    async def _outcome(self, stop: RunStop) -> Outcome:
        try:
            async with AsyncExitStack() as stack:
                bench = await self._bench(stack, stop)
                return await self._measure(self._design(), bench, stop)
        except RunStoppedError as error:
            return "failed", f"{error}, before anything was measured"
        except ConsoleError as error:
            return "failed", f"{error.message}: {error.evidence}".rstrip(": ")
        except RecordsError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the run says how it ended
            traceback.print_exc()
            return "failed", f"it met a bug of ours: {type(error).__name__}: {error}"

    def _design(self) -> Design:
        from a40console.experiments.registry import designs

        return designs()[self._order.spec.experiment]

    async def _bench(self, stack: AsyncExitStack, stop: RunStop) -> RunBench:
        order, spec = self._order, self._order.spec
        service = await stack.enter_async_context(client_of(self._paths, f"run {order.id}"))
        places = [await stop.bounded(self._place(service))]

        async def moved() -> None:
            places.append(await self._place(service))
            await client.move(places[-1])

        here = spec.target.kind != "url" or is_here(spec.target)
        machine = MachineWatch(here=here, simulated=self._simulated)
        await stack.enter_async_context(machine)
        client = RunClient(
            place=places[0],
            dialect=spec.target.dialect,
            record=lambda sample: bench.record(sample),
            stop=stop,
            headers=_session(order),
        )
        engine = RunEngine(
            run_id=order.id,
            service=service,
            place=lambda: places[-1],
            moved=moved,
            stop=stop,
        )
        bench = RunBench(
            client=client,
            engine=engine,
            around=Around(counters=lambda: RunCounters(places[-1].counters), machine=machine),
            append=self._records.append,
            stop=stop,
            job=Job(
                target=spec.target,
                model=places[0].model,
                settled=settle(self._design().offer, spec.preset, spec.parameters),
                seed=spec.seed,
                usd_per_h=self._usd_per_h,
                simulated=self._simulated,
            ),
        )
        await stack.enter_async_context(client)
        return bench

    async def _place(self, service: ServiceClient) -> Place:
        target = self._order.spec.target
        return await find_place(target, self._token, service, self._paths.engine_runs)

    async def _measure(self, design: Design, bench: RunBench, stop: RunStop) -> Outcome:
        outcome: Outcome
        try:
            result = await design.run(bench)
            outcome = ("done", "")
        except RunStoppedError as error:
            why = stop.why or str(error)  # a request that was cut knows only that it was
            outcome = ("partial", why)
            if not bench.has_measured:
                return "failed", f"{why}, before anything was measured"
            result = design.partial(bench, why)
        except ArmFailedError as error:
            if not bench.has_measured:
                return "failed", str(error)
            outcome = ("partial", str(error))
            result = design.partial(bench, str(error))
        result = _with_doubts(result, bench)
        self._records.append(Found(result=result))
        fatal = [doubt for doubt in result.doubts if doubt.invalidates]
        return ("invalid", fatal[0].text) if fatal else outcome


def _session(order: RunOrder) -> dict[str, str]:
    """Through the gateway a run is a session with a name of its own, and no client's."""
    if order.spec.target.kind != "gateway":
        return {}
    return {CUSTOM_SESSION_HEADER: RUN_SESSION + order.id}


def _with_doubts(result: RunResult, bench: RunBench) -> RunResult:
    missing = [doubt for doubt in bench.doubts if doubt not in result.doubts]
    return replace(result, doubts=(*result.doubts, *missing))


def _now() -> str:
    return iso_utc(time.time())
