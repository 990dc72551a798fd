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
from a40console.errors import ConsoleError, UsageError
from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.captures import Captures
from a40console.gateway.client_limits import client_limits
from a40console.gateway.meter import Meter
from a40console.gateway.probing import Dialects
from a40console.gateway.sessions import SessionBook
from a40console.model.event import Severity
from a40console.model.figures import number
from a40console.model.service_info import NOBODY_FORBIDS, ServiceInfo
from a40console.operations import desire
from a40console.operations.past_starts import PastStarts
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.service.advisor_evidence import EvidenceKeeper, ServiceSigns
from a40console.service.answers import ServiceAnswers
from a40console.service.api import ControlApi
from a40console.service.assemble import Moment, Parts, assemble, gpus_of
from a40console.service.board import Board
from a40console.service.bookkeeping import Bookkeeper
from a40console.service.capturing import end_captures
from a40console.service.chronicle import Chronicle
from a40console.service.control_handlers import control_handlers
from a40console.service.demo_owner import Demo, end_with_owner
from a40console.service.edit_watch import EditWatch
from a40console.service.engine_block import engine_block
from a40console.service.engineering import Surroundings, engine_operator, note_kept
from a40console.service.follower import EngineFollower
from a40console.service.forbidding import by_service_settings
from a40console.service.gateway_door import GatewayDoor
from a40console.service.handlers import Handlers
from a40console.service.holding import admission_gate
from a40console.service.journal import Journal, now
from a40console.service.messages_route import note_route
from a40console.service.other_commands import other_handlers
from a40console.service.past_api import PastRoutes
from a40console.service.read_marks import ReadMarks
from a40console.service.self_report import self_report
from a40console.service.session_shelf import SessionShelf
from a40console.service.sessions import Sessions, around
from a40console.service.standing import Standing
from a40console.service.switch_api import switch_reads
from a40console.service.tasks import CommandTasks
from a40console.service.upstream import EngineUpstream
from a40console.telemetry.held import held_slots
from a40console.telemetry.host import HostSampler
from a40console.telemetry.nvml import GpuSampler

MEMBERS_PERIOD_S = 1.9
"""Less than two ticks, so that no other tick is missed."""

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
        self._meter = Meter(clock=time.monotonic)
        self._captures = Captures(paths.captures)
        self._sessions = Sessions(SessionBook(run_id=self._run_id, captures=self._captures))
        self._shelf = SessionShelf(paths.state / "sessions.json", self._sessions.book)
        self._findings = FindingClock()
        self._members: list[int] = []
        self._members_of: int | None = None
        self._members_until_s = 0.0
        self._gpu = GpuSampler()
        self._host = HostSampler(disk_path=paths.state, engine_pids=self._engine_pids)
        self._evidence = EvidenceKeeper(
            host=self._host, gpu=self._gpu, runs=paths.engine_runs, edits=EditWatch(paths)
        )
        self._starts = PastStarts(paths.state / "starts.json")
        self._admission = admission_gate(settings.gateway, self._journal.record)
        self._operator = engine_operator(self._around())
        self._follower = EngineFollower(
            runs=paths.engine_runs,
            period_s=settings.service.interval_s,
            on_event=self._note,
        )
        self._operator.follow(self._engine_changed)
        self._shown_state = self._operator.status.state
        self._upstream = EngineUpstream(
            self._status,
            paths.engine_runs,
            time.monotonic,
            messages_route=settings.gateway.messages_route,
        )
        self._dialects = Dialects(on_found=lambda found: note_route(self._journal, found))
        self._door = GatewayDoor(
            gateway_socket,
            paths.gateway_token,
            token_required=settings.gateway.token_required,
        )
        self.gateway_app = self._gateway()
        self.control_app = self._control()

    def _gateway(self) -> Starlette:
        return build_gateway(
            upstream=self._upstream,
            meter=self._meter,
            authorise=self._door.authoriser(),
            collaborators=Collaborators(
                dialects=self._dialects, book=self._sessions.book, gate=self._admission
            ),
            client_limits=client_limits(self._settings.gateway),
        )

    def _around(self) -> Surroundings:
        return Surroundings(
            paths=self._paths,
            settings=self._settings.service,
            gpu=self._gpu,
            host=self._host,
            threads=self._engine_threads,
            past=self._starts,
            recorder=self._journal.record,
            admission=self._admission,
        )

    def _control(self) -> Starlette:
        handlers = Handlers(
            operator=self._operator,
            settings=self._settings,
            has_gpu=gpu_present,
            gateway=lambda: (self._door.url, self._door.token),
            stop=self.stopping.set,
            record=self._journal.record,
            others=other_handlers(self._paths, self._status, self._sessions, self._journal.record)
            | control_handlers(self._operator, self._around(), self._board, self._admission),
        )
        answers = ServiceAnswers(
            paths=self._paths,
            journal=self._journal,
            door=self._door,
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
            commands=CommandTasks(handlers.table(), self._journal, self._forbidden, self._status),
            answers=answers,
            session=self._sessions.detail,
            more=switch_reads(
                self._paths,
                self._board,
                self._chronicle,
                self._starts,
                self._operator,
                self._settings.service.drain_s,
            ),
        ).app()

    @contextlib.asynccontextmanager
    async def running(self, *, profile: str | None, engine: bool) -> AsyncIterator[None]:
        """Everything runs inside the block; the engine outlives it."""
        self._standing.begin()
        self._gpu.start()
        await self._chronicle.open()
        self._shelf.load()
        first = self._first_engine(profile, start=engine)
        tasks = [
            asyncio.create_task(self._tick_for_ever(), name="snapshots"),
            asyncio.create_task(first, name="first engine"),
            asyncio.create_task(self._chronicle.run(), name="history"),
            asyncio.create_task(self._shelf.run(), name="sessions"),
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
            end_captures(self._captures, self._journal.record)
            left = "the engine keeps running" if self._status().living else "no engine runs"
            self._journal.record("service.stopped", f"the service stops; {left}")
            await self._shelf.save()
            await self._chronicle.close()

    async def _first_engine(self, profile: str | None, *, start: bool) -> None:
        """Take over what runs; else start what is asked for, or what ran when we were last here."""
        try:
            try:
                adopted = await self._operator.adopt()
            finally:
                self._starts.find_ends(self._paths.engine_runs)
            if adopted:
                note_kept(self._journal.record, profile, self._status().profile)
                return
            if not start:
                return
            wanted = desire.desired(self._paths.desired)
            named = profile or (self._settings.profile if wanted is None else None)
            if named is not None and not self._again:  # the operator may have stopped it since
                await self._operator.start(named)
            elif wanted is not None:
                await self._operator.start_profile(wanted)
        except UsageError as error:
            self._operator.note_failure(error)
        except ConsoleError as error:
            log.warning("%s (%s) %s", error.message, error.evidence, error.remedy)
        except Exception:
            log.exception("the first engine could not be seen to")
            self._journal.record("service.failed", "a bug of ours: see service.log", "error")

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
        now_s, status, counts = time.monotonic(), self._status(), self._meter.counts()
        sampler, live = self._follower.sampler, self._meter.live()
        view = sampler.view(live, self._meter.finished()) if sampler else None
        waiting = () if view else held_slots(live, now_s)
        self._upstream.plugin_counts = view is None or view.plugin_counts
        serving = self._upstream.current()
        self._dialects.look(serving)
        sessions = self._sessions.take(
            around(view, self._books.terms(status.profile), self._run_id(), waiting)
        )
        self._seq += 1
        snapshot = assemble(
            Parts(
                moment=Moment(
                    seq=self._seq,
                    at=now(),
                    monotonic_s=now_s,
                    interval_s=self._settings.service.interval_s,
                    events_last_id=self._journal.last_id,
                ),
                service=ServiceInfo(
                    version=__version__,
                    pid=os.getpid(),
                    uptime_s=round(now_s - self._started_s, 3),
                    home=str(self._paths.home),
                    read_only=self._journal.trouble is not None,
                    forbidden=self._forbidden or NOBODY_FORBIDS,
                ),
                engine=engine_block(
                    status,
                    self_report(view),
                    now_s=now_s,
                    under_way=self._operator.under_way,
                ),
                view=view,
                gateway=counts,
                host=self._host.view(),
                gpus=gpus_of(view, self._gpu.view()),
                sources=(
                    self._host.status(),
                    self._gpu.status(),
                    self._dialects.status(serving),
                ),
                profile=status.profile,
                account=self._books.account(status.profile),
                evidence=self._evidence.take(
                    status,
                    view,
                    service=ServiceSigns(
                        unsupervised=self._standing.unsupervised,
                        events=self._journal.trouble,
                        history=self._chronicle.trouble,
                        sessions=self._shelf.trouble,
                    ),
                    sessions=sessions,
                ),
                sessions=sessions,
                waiting=waiting,
                gate=self._admission.closed,
            ),
            self._findings,
        )
        self._books.take(snapshot, view, counts, status)
        self._board.pin(snapshot)

    def end_streams(self) -> None:
        """Let readers of snapshots and held requests go, so that the servers can end."""
        self._board.close()
        self._admission.dismiss()

    def _note(self, kind: str, text: str, severity: Severity, data: dict[str, str]) -> None:
        self._journal.record(kind, text, severity, data)

    def _status(self) -> EngineStatus:
        return self._operator.status

    def _run_id(self) -> str | None:
        """Which engine start serves: the cache of another one holds nothing of ours."""
        run = self._status().run
        return None if run is None else run.id

    def _engine_threads(self) -> int:
        """Threads for llama.cpp: all but one vCPU, which the gateway and the clients need."""
        return default_threads(number(self._host.view().cpu_quota_vcpu))

    def _engine_pids(self) -> list[int]:
        """The engine's processes, looked for every 2 s: that reads every process of the machine."""
        leader, now_s = self._status().pid, time.monotonic()
        if leader != self._members_of or now_s >= self._members_until_s:
            self._members_of, self._members = leader, self._operator.member_pids()
            self._members_until_s = now_s + MEMBERS_PERIOD_S
        return self._members
