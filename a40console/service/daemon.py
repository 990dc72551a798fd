"""The service's wiring: builds the parts, ties them together, ticks once an interval."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator

from starlette.applications import Starlette

from a40console import __version__
from a40console.advisor.advice import FindingClock
from a40console.config import Settings
from a40console.engines.capability import gpu_present
from a40console.engines.command import default_threads
from a40console.errors import ConsoleError
from a40console.model.figures import number
from a40console.model.service_info import NOBODY_FORBIDS, ServiceInfo
from a40console.operations.past_starts import PastStarts
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.service.advisor_evidence import EvidenceKeeper, ServiceSigns
from a40console.service.answers import ServiceAnswers
from a40console.service.api import ControlApi
from a40console.service.assemble import Moment, Parts, assemble, gpus_of
from a40console.service.board import Board
from a40console.service.bookkeeping import Bookkeeper
from a40console.service.chronicle import Chronicle
from a40console.service.control_handlers import control_handlers
from a40console.service.demo_owner import Demo, end_with_owner
from a40console.service.edit_watch import EditWatch
from a40console.service.engine_block import engine_block
from a40console.service.engine_members import EngineMembers
from a40console.service.engineering import Surroundings, engine_operator
from a40console.service.first_engine import FirstEngine
from a40console.service.follower import EngineFollower
from a40console.service.forbidding import by_service_settings
from a40console.service.gateway_side import GatewaySide, Traffic
from a40console.service.handlers import Handlers
from a40console.service.journal import Journal, now
from a40console.service.other_commands import other_handlers
from a40console.service.past_api import PastRoutes
from a40console.service.read_marks import ReadMarks
from a40console.service.runs_side import ServiceSight, runs_side
from a40console.service.self_report import self_report
from a40console.service.standing import Standing
from a40console.service.switch_api import switch_reads
from a40console.service.tasks import CommandTasks
from a40console.telemetry.host import HostSampler
from a40console.telemetry.nvml import GpuSampler
from a40console.telemetry.view import EngineView

log = logging.getLogger(__name__)


class Daemon:
    """The parts of a running service."""

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        *,
        gateway_socket: socket.socket,
        demo: Demo | None,
        failures: int,
    ) -> None:
        self._paths = paths
        self._demo = demo
        self._settings = settings
        self._forbidden = by_service_settings(settings.service, paths.config_file)
        self._again = failures > 0
        self._started_s = time.monotonic()
        self._seq = 0
        self._baseline_run = ""
        self.stopping = asyncio.Event()
        self._journal = Journal(paths.events)
        self._standing = Standing(self._journal.record, failures)
        self._board = Board()
        self._chronicle = Chronicle(
            paths.state / "history.sqlite",
            interval_s=settings.service.interval_s,
            recorder=self._journal.record,
        )
        self._books = Bookkeeper(self._chronicle, self._journal, settings.rent)
        self._gateway = GatewaySide(
            paths,
            settings,
            gateway_socket=gateway_socket,
            journal=self._journal,
            read_status=self._status,
        )
        self._findings = FindingClock()
        members = EngineMembers(lambda: self._status().pid, lambda: self._operator.member_pids())
        self._gpu = GpuSampler()
        self._host = HostSampler(disk_path=paths.state, engine_pids=members.pids)
        self._evidence = EvidenceKeeper(
            host=self._host, gpu=self._gpu, runs=paths.engine_runs, edits=EditWatch(paths)
        )
        self._starts = PastStarts(paths.state / "starts.json")
        self._operator = engine_operator(self._around())
        self._follower = EngineFollower(
            runs=paths.engine_runs,
            period_s=settings.service.interval_s,
            on_event=self._journal.record,
        )
        self._operator.follow(self._engine_changed)
        self._shown_state = self._operator.status.state
        self._first: asyncio.Task[None] | None = None
        self._view: EngineView | None = None
        self._runs = runs_side(
            paths=paths,
            operator=self._operator,
            sight=ServiceSight(
                board=self._board, gateway=self._gateway, read_view=lambda: self._view
            ),
            chronicle=self._chronicle,
            settings=settings,
            record=self._journal.record,
            is_settled=self._is_settled,
        )
        self.gateway_app = self._gateway.app
        self.control_app = self._control()

    def _is_settled(self) -> bool:
        """Whether it is known which engine runs, and it was looked at."""
        found = self._first is not None and self._first.done()
        return found and self._board.snapshot is not None

    def _around(self) -> Surroundings:
        return Surroundings(
            paths=self._paths,
            settings=self._settings.service,
            gpu=self._gpu,
            host=self._host,
            threads=self._engine_threads,
            past=self._starts,
            recorder=self._journal.record,
            admission=self._gateway.admission,
        )

    def _control(self) -> Starlette:
        drain_s = self._settings.service.drain_s
        handlers = Handlers(
            operator=self._operator,
            settings=self._settings,
            has_gpu=gpu_present,
            gateway=lambda: (self._gateway.door.url, self._gateway.door.token),
            stop=self.stopping.set,
            record=self._journal.record,
            others=other_handlers(
                self._paths, self._status, self._gateway.sessions, self._journal.record
            )
            | control_handlers(self._operator, self._around(), self._board, self._gateway)
            | self._runs.handlers.table(),
        )
        table = self._runs.handlers.guarded(handlers.table())
        answers = ServiceAnswers(
            paths=self._paths,
            journal=self._journal,
            door=self._gateway.door,
            read_status=self._status,
            explain=lambda: self._evidence.explain(self._board.snapshot),
            read_window=self._board.window_tokens,
        )
        past = PastRoutes(
            journal=self._journal,
            chronicle=self._chronicle,
            starts=self._starts,
            marks=ReadMarks(self._paths.state / "read-mark.json", lambda: self._journal.last_id),
            terms=lambda: self._books.terms(self._status().profile),
        )
        return ControlApi(
            board=self._board,
            past=past,
            commands=CommandTasks(table, self._journal, self._forbidden, self._status),
            answers=answers,
            session=self._gateway.sessions.detail,
            more={
                **switch_reads(self._paths, self._board, self._starts, self._operator, drain_s),
                **self._runs.travel.reads(),
                **self._runs.routes.reads(),
            },
            posts=self._runs.routes.posts(),
        ).app()

    @contextlib.asynccontextmanager
    async def running(self, *, profile: str | None, engine: bool) -> AsyncIterator[None]:
        """Everything runs inside the block; the engine outlives it."""
        self._standing.begin()
        self._gpu.start()
        await self._chronicle.open()
        self._gateway.shelf.load()
        await self._runs.travel.begin()
        first = self._first_engine().see_to(profile, start=engine)
        self._first = asyncio.create_task(first, name="first engine")
        tasks = [
            asyncio.create_task(self._tick_for_ever(), name="snapshots"),
            self._first,
            asyncio.create_task(self._runs.runs.queue.run(), name="runs"),
            asyncio.create_task(self._runs.travel.run(), name="copies of runs"),
            asyncio.create_task(self._chronicle.run(), name="history"),
            asyncio.create_task(self._gateway.shelf.run(), name="sessions"),
        ]
        if (demo := self._demo) is not None:
            ending = end_with_owner(self._paths, demo, self._end)
            tasks.append(asyncio.create_task(ending, name="demo"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._operator.settle()
            await self._operator.close()
            await self._follower.close()
            self._gpu.stop()
            self._gateway.end_captures()
            left = "the engine keeps running" if self._status().living else "no engine runs"
            self._journal.record("service.stopped", f"the service stops; {left}")
            await self._gateway.shelf.save()
            await self._chronicle.close()
            await self._runs.runs.ledger.close()

    def _first_engine(self) -> FirstEngine:
        return FirstEngine(
            operator=self._operator,
            starts=self._starts,
            paths=self._paths,
            record=self._journal.record,
            configured=self._settings.profile,
            again=self._again,
        )

    async def _end(self) -> None:
        """End the engine, and with it the service."""
        try:
            await self._operator.stop()
        except ConsoleError as error:
            log.warning("%s (%s)", error.message, error.evidence)
        finally:
            self.stopping.set()

    async def _tick_for_ever(self) -> None:
        interval_s = self._settings.service.interval_s
        due_s = time.monotonic()
        while True:
            try:
                self._tick()
            except Exception:
                log.exception("a snapshot could not be made")
            due_s = max(due_s + interval_s, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())

    def _engine_changed(self, status: EngineStatus) -> None:
        """Telemetry follows, and whoever asks right after a command must see what it did.

        What goes wrong here is ours alone: it must not end a start or a stop halfway.
        """
        try:
            self._starts.follow(status)
            self._follower.follow(status)
            if status.run is not None and status.run.id != self._baseline_run:
                self._baseline_run, before = status.run.id, status.run.vram_baseline_bytes
                self._gpu.set_baseline({} if before is None else {0: before})
            if status.state is not self._shown_state:
                self._shown_state = status.state
                self._publish()
        except Exception:
            log.exception("a change of the engine could not be followed")

    def _tick(self) -> None:
        self._standing.look()
        self._journal.retry()
        self._host.sample()
        self._publish()

    def _publish(self) -> None:
        now_s, status = time.monotonic(), self._status()
        traffic = self._gateway.look(self._follower.sampler, now_s)
        snapshot = assemble(self._parts(status, traffic, now_s), self._findings)
        self._books.take(snapshot, traffic.view, traffic.counts, status)
        self._board.pin(snapshot)

    def _parts(self, status: EngineStatus, traffic: Traffic, now_s: float) -> Parts:
        """What each part knows at this instant."""
        self._view = view = traffic.view
        sessions = self._gateway.sessions_of(traffic, self._books.terms(status.profile))
        self._seq += 1
        return Parts(
            moment=Moment(
                seq=self._seq,
                at=now(),
                monotonic_s=now_s,
                interval_s=self._settings.service.interval_s,
                events_last_id=self._journal.last_id,
            ),
            service=self._info(now_s),
            engine=engine_block(
                status, self_report(view), now_s=now_s, under_way=self._operator.under_way
            ),
            view=view,
            gateway=traffic.counts,
            host=self._host.view(),
            gpus=gpus_of(view, self._gpu.view()),
            sources=(self._host.status(), self._gpu.status(), traffic.messages),
            profile=status.profile,
            account=self._books.account(status.profile),
            evidence=self._evidence.take(status, view, service=self._signs(), sessions=sessions),
            sessions=sessions,
            waiting=traffic.waiting,
            gate=self._gateway.admission.closed,
        )

    def _info(self, now_s: float) -> ServiceInfo:
        return ServiceInfo(
            version=__version__,
            pid=os.getpid(),
            uptime_s=round(now_s - self._started_s, 3),
            home=str(self._paths.home),
            read_only=self._journal.trouble is not None,
            forbidden=self._forbidden or NOBODY_FORBIDS,
        )

    def _signs(self) -> ServiceSigns:
        return ServiceSigns(
            unsupervised=self._standing.unsupervised,
            events=self._journal.trouble,
            history=self._chronicle.trouble,
            sessions=self._gateway.shelf.trouble,
        )

    def end_streams(self) -> None:
        """Let readers of snapshots and held requests go, so that the servers can end."""
        self._board.close()
        self._gateway.admission.dismiss()

    def _status(self) -> EngineStatus:
        return self._operator.status

    def _engine_threads(self) -> int:
        """Threads for llama.cpp: all but one vCPU, which the gateway and the clients need."""
        return default_threads(number(self._host.view().cpu_quota_vcpu))
