"""A day on the simulated engine by a clock that stands between the ticks: the same each time.

The engine is a real process of the simulation, read by the real telemetry over its socket; only
time is not: it passes when it is told to, for the engine, its clients and the console alike.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from a40console import __version__
from a40console.advisor.advice import FindingClock
from a40console.advisor.evidence import Evidence
from a40console.config import RentSettings
from a40console.engines import command
from a40console.engines.command import LaunchPlan, Site, argv_digest, plan
from a40console.engines.effective import differences
from a40console.engines.plugin_folder import TOKEN_FILE_VARIABLE
from a40console.errors import TimedOutError
from a40console.gateway.clients import client_of
from a40console.gateway.meter import RequestCounts
from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineState
from a40console.model.event import NOTE_KIND, Event, Severity
from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.instants import iso_utc
from a40console.model.profile import Profile
from a40console.model.request import GatewayRow
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import (
    Host,
    Snapshot,
    SourceStatus,
    Throughput,
)
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.rehearsal.sessions import RehearsedSessions
from a40console.service.assemble import Moment, Parts, assemble, gpus_of
from a40console.service.cost import Account, terms_of
from a40console.service.engine_block import engine_block
from a40console.service.finding_log import FindingLog
from a40console.service.self_report import self_report
from a40console.service.sessions import Sessions, around
from a40console.service.view_evidence import view_evidence
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView

INTERVAL_S = 1.0
UP_BEFORE_S = 4 * 3600.0
"""How long the engine has served as the day begins."""

READY_WITHIN_S = 20.0
PID, SESSION = 900, 900
USER_AGENT = "claude-cli/2.1.332 (external, cli)"
QUOTA_VCPU = 9.0
NOTE = "both sessions on the same repository from here on"

_SOCKET = re.compile(r"/[\w./-]+\.sock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a day has left behind."""

    profile: Profile
    snapshots: tuple[Snapshot, ...]
    speeds: tuple[Throughput, ...]
    """By snapshot, the engine's since the one before."""

    events: tuple[Event, ...]
    log: str
    """The engine's output."""

    evidence: Evidence
    """What the last snapshot's verdict rests on besides the snapshot."""

    status: EngineStatus
    """How the engine stands."""

    sessions: Sessions
    """The clients' sessions as they stand at its end."""


class _Clock:
    """The engine's clocks, as we were last told them."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.begins_s = 0.0
        self._begins_unix_s = 0.0

    def begin(self, told: dict[str, float]) -> None:
        """The day begins now."""
        self.now_s = self.begins_s = told["now_s"]
        self._begins_unix_s = told["unix_s"]

    def __call__(self) -> float:
        return self.now_s

    def at(self, monotonic_s: float) -> str:
        """An instant on the wall."""
        return iso_utc(self.unix_s(monotonic_s))

    def unix_s(self, monotonic_s: float) -> float:
        """An instant as Unix time."""
        return self._begins_unix_s + monotonic_s - self.begins_s


async def rehearse(profile: Profile, *, seconds: int, python: str = sys.executable) -> Rehearsal:
    """Play the day's first seconds.

    Args:
        profile: A simulated one.
        seconds: How many snapshots, one a second.
        python: Runs the engine.

    Raises:
        TimedOutError: If the simulated engine does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="a40-day-") as folder:
        launch = _launch(profile, Path(folder), python)
        async with _engine(launch, Path(folder)) as output:
            return await _Day(profile, launch).play(seconds, output)


def _launch(profile: Profile, folder: Path, python: str) -> LaunchPlan:
    token_file = folder / "plugin.token"
    token = secrets.token_urlsafe(24)
    token_file.touch(mode=0o600)
    token_file.write_text(token, encoding="utf-8")
    site = Site(
        python=python,
        embedded_script=Path(command.__file__).with_name("embedded.py"),
        socket_path=folder / "engine.sock",
        plugin_environment={TOKEN_FILE_VARIABLE: str(token_file)},
        plugin_token=token,
    )
    by_hand = (*profile.arguments, "--manual-clock")
    return plan(replace(profile, arguments=by_hand), site)


@asynccontextmanager
async def _engine(launch: LaunchPlan, folder: Path) -> AsyncIterator[Path]:
    """The engine's process; its output's file. It ends with the block."""
    path = folder / "output.log"
    with path.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **launch.environment},
        )
        try:
            yield path
        finally:
            process.kill()
            await process.wait()


class _Day:
    """The console's side of one day."""

    def __init__(self, profile: Profile, launch: LaunchPlan) -> None:
        self._profile = profile
        self._launch = launch
        self._clock = _Clock()
        self._findings = FindingClock()
        self._events: list[Event] = []
        self._speeds: list[Throughput] = []
        self._found = FindingLog(self._record)
        self._rows: tuple[GatewayRow, ...] = ()
        self._status = EngineStatus()
        self._evidence = Evidence()
        self._sessions = RehearsedSessions(profile.public_name, self._clock.unix_s)
        self._told = Sessions(self._sessions.book, lambda: self._clock.unix_s(self._clock.now_s))
        self._sampler = EngineSampler(
            kind="sim",
            endpoint=launch.endpoint,
            period_s=INTERVAL_S,
            on_event=self._note,
            clock=self._clock,
        )

    async def play(self, seconds: int, output: Path) -> Rehearsal:
        """Tick by tick."""
        transport = httpx.AsyncHTTPTransport(uds=self._launch.endpoint.socket_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as engine:
            self._clock.begin(await _ready(engine))
            log = _SOCKET.sub("/run/engine.sock", output.read_text(encoding="utf-8"))
            self._status = self._serving(log)
            self._record_start()
            snapshots: list[Snapshot] = []
            for seq in range(1, seconds + 1):
                self._clock.now_s = (await _advance(engine, INTERVAL_S))["now_s"]
                await self._sampler.poll()
                day = (await engine.get("/sim/v1/day")).json()["requests"]
                asked = await engine.get("/sim/v1/asked", params={"after": self._sessions.after})
                self._sessions.replay(asked.json()["asked"], day, self._clock.now_s)
                self._rows = tuple(self._row(told) for told in day)
                if seq == seconds // 2:
                    self._add(self._clock.now_s, NOTE_KIND, NOTE, "info", {})
                snapshots.append(self._snapshot(seq))
                self._found.observe(snapshots[-1].findings, self._clock.now_s)
        await self._sampler.aclose()
        return Rehearsal(
            profile=self._profile,
            snapshots=tuple(snapshots),
            speeds=tuple(self._speeds),
            events=tuple(self._events),
            log=log,
            evidence=self._evidence,
            status=self._status,
            sessions=self._told,
        )

    def _snapshot(self, seq: int) -> Snapshot:
        now_s = self._clock.now_s
        live = [row for row in self._rows if row.ended_at_s is None]
        view = self._sampler.view(live, [row for row in self._rows if row.ended_at_s is not None])
        self._speeds.append(view.latest_throughput)
        terms = terms_of(RentSettings(), self._profile.usd_per_hour)
        sessions = self._told.take(around(view, terms))
        self._evidence = replace(view_evidence(view), sessions=sessions.signs)
        return assemble(
            Parts(
                moment=Moment(
                    seq=seq,
                    at=self._clock.at(now_s),
                    monotonic_s=now_s,
                    interval_s=INTERVAL_S,
                    events_last_id=len(self._events),
                ),
                service=ServiceInfo(
                    version=__version__,
                    pid=PID - 1,
                    uptime_s=UP_BEFORE_S + seq,
                    home="",
                    read_only=False,
                ),
                engine=engine_block(self._status, self_report(view), now_s=now_s),
                view=view,
                gateway=RequestCounts(aborted=0, failed=0),
                host=_host(view),
                gpus=gpus_of(view, Missing("no driver is asked in a rehearsal")),
                sources=(SourceStatus(name="host", state="ok", age_s=0.0, reason=None),),
                profile=self._profile,
                account=Account(terms=terms, now_s=self._clock.unix_s(now_s)),
                evidence=self._evidence,
                sessions=sessions,
            ),
            self._findings,
        )

    def _serving(self, log: str) -> EngineStatus:
        began_s = self._clock.begins_s
        run = RunRecord(
            id=f"{self._clock.at(began_s - UP_BEFORE_S)[:19]}-{self._profile.name}",
            profile=self._profile,
            base_url=self._launch.endpoint.base_url,
            socket_path=self._launch.endpoint.socket_path,
            plugin=True,
            argv=(),  # it names places that are others each time
            argv_digest=argv_digest(("sim", self._profile.name)),
            started_at=self._clock.at(began_s - UP_BEFORE_S),
        )
        return EngineStatus(
            state=EngineState.SERVING,
            profile=self._profile,
            run=run,
            phase="ready",
            phase_since_s=began_s - UP_BEFORE_S + 8,
            eta=Missing("ready"),
            pid=PID,
            session_id=SESSION,
            started_at_s=began_s - UP_BEFORE_S,
            differences=differences(self._profile, log.splitlines()),
        )

    def _row(self, told: dict[str, Any]) -> GatewayRow:
        """One request as our gateway meters it where the plugin counts the tokens."""
        ended_s, generated = told["ended_s"], told["generated_tokens"]
        passage = self._sessions.known(told["request_id"])
        return GatewayRow(
            request_id=told["request_id"],
            route="messages",
            client=client_of(USER_AGENT),
            session=told["session"],
            agent=passage.agent if passage else None,
            model=self._profile.public_name,
            max_tokens=told["max_tokens"],
            received_at_s=told["received_s"],
            sent_at_s=told["received_s"],
            first_token_at_s=told["first_token_s"],
            last_token_at_s=told["last_token_s"],
            ended_at_s=ended_s,
            ended_at=None if ended_s is None else self._clock.at(ended_s),
            prompt_tokens=told["prompt_tokens"],
            cached_tokens=told["cached_tokens"],
            generated_tokens=generated,
            characters=4 * (generated or 0),
            method="apportioned" if ended_s is None else "usage",
            finish_reason=told["finish_reason"],
            status=200,
            shared=passage.shared if passage else None,
        )

    def _record_start(self) -> None:
        name, began_s = self._profile.name, self._clock.begins_s - UP_BEFORE_S
        self._add(began_s - 1, "service.started", "the service starts", "info", {})
        self._add(began_s, "engine.starting", f"{name} starts", "info", {})
        self._add(began_s + 8, "engine.serving", f"{name} serves", "info", {})

    def _record(
        self,
        kind: str,
        text: str,
        severity: Severity = "info",
        data: dict[str, str] | None = None,
    ) -> None:
        self._note(kind, text, severity, data or {})

    def _note(self, kind: str, text: str, severity: Severity, data: dict[str, str]) -> None:
        self._add(self._clock.now_s, kind, text, severity, data)

    def _add(
        self, at_s: float, kind: str, text: str, severity: Severity, data: dict[str, str]
    ) -> None:
        identity = len(self._events) + 1
        at = self._clock.at(at_s)
        self._events.append(Event(identity, at, kind, text, severity, data))


async def _ready(engine: httpx.AsyncClient) -> dict[str, float]:
    """Wait until the engine answers; its clocks."""
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            while True:
                try:
                    return await _advance(engine, 0.0)
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)
    except TimeoutError:
        raise TimedOutError("The simulated engine did not come up") from None


async def _advance(engine: httpx.AsyncClient, seconds: float) -> dict[str, float]:
    answer = await engine.post("/sim/v1/clock", json={"advance_s": seconds}, timeout=60.0)
    told: dict[str, float] = answer.json()
    return told


def _host(view: EngineView) -> Host:
    """The pod around the simulated card: as busy as what passes through it needs."""
    rate: Figure = view.throughput.generation_tokens_per_s
    busy = combine(lambda per_s: min(1.0, per_s / 600), rate)
    share = number(busy)
    thread: BusiestThread | Missing = Missing("how busy the engine is is not known yet")
    if share is not None:
        thread = BusiestThread(name="EngineCore", ratio=round(0.1 + 0.6 * share, 2))
    return Host(
        source="simulated",
        age_s=0.0,
        cpu_quota_vcpu=QUOTA_VCPU,
        quota_origin="cgroup2",
        cpu_used_vcpu=combine(lambda part: round(0.4 + 2.2 * part, 2), busy),
        throttled_ms_per_s=0.0,
        busiest_engine_thread=thread,
        memory_used_bytes=21.4 * 2**30,
        memory_limit_bytes=50.0 * 2**30,
        shm_used_bytes=0.2 * 2**30,
        shm_total_bytes=23.0 * 2**30,
        disk_free_bytes=61.0 * 2**30,
    )
