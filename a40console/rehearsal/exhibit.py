"""A rehearsed day behind the real control API: what the gallery's screens are drawn from."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import httpx

from a40console import __version__
from a40console.advisor.limit import explain
from a40console.config import RentSettings
from a40console.engines.run_record import OUTPUT_FILE
from a40console.files import write_private
from a40console.model.codec import encode
from a40console.model.control import (
    ClientEnvironment,
    Hello,
    LogChunk,
    ProfileSummary,
    ReadMark,
)
from a40console.model.event import Event
from a40console.model.explanation import Explanation
from a40console.model.figures import number
from a40console.model.fix import FixOffer
from a40console.model.history import history_point
from a40console.model.instants import unix_s
from a40console.model.profile_change import ProfileDiff
from a40console.model.snapshot import PROTOCOL_VERSION, SCHEMA_VERSION, Snapshot
from a40console.operations import record
from a40console.operations.catalogue import summarise
from a40console.operations.edited_profile import diff_of
from a40console.operations.past_starts import PastStarts
from a40console.operations.profile_fix import offer_fix
from a40console.paths import Paths, make_private
from a40console.profiles.loader import load_profiles
from a40console.rehearsal.day import Rehearsal
from a40console.rehearsal.runs import RehearsedRuns
from a40console.service.api import ControlApi
from a40console.service.board import Board
from a40console.service.chronicle import Chronicle
from a40console.service.client import ServiceClient
from a40console.service.connecting import client_environment
from a40console.service.cost import terms_of
from a40console.service.engine_outputs import EngineOutputs
from a40console.service.gateway_door import OPEN_TOKEN
from a40console.service.journal import Journal
from a40console.service.past_api import PastRoutes
from a40console.service.read_marks import ReadMarks
from a40console.service.tally import Counters, Reading
from a40console.service.tasks import CommandTasks

GATEWAY = "http://127.0.0.1:8080"


class Exhibit:
    """The service's own API over one rehearsal; nothing in it moves.

    Args:
        day: What was rehearsed.
        paths: A home for it alone: the day's files are written there.
    """

    def __init__(self, day: Rehearsal, paths: Paths) -> None:
        self._day = day
        self._now_s = unix_s(day.snapshots[-1].at) or 0.0
        self._board = Board()
        self._board.pin(day.snapshots[-1])
        _write_files(day, paths)
        journal = Journal(paths.events)
        past = PastRoutes(
            journal=journal,
            chronicle=self._chronicle(journal, paths),
            starts=self._starts(paths),
            marks=ReadMarks(_mark_file(paths), lambda: journal.last_id),
            terms=lambda: terms_of(RentSettings(), day.profile.usd_per_hour),
            wall=lambda: self._now_s,
        )
        api = ControlApi(
            board=self._board,
            past=past,
            commands=CommandTasks({}, journal),
            answers=_Answers(day, paths),
            session=day.sessions.detail,
            more=RehearsedRuns(paths.ledger).reads(),
        )
        self._routes = httpx.ASGITransport(api.app())

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All of the day, the shown one last."""
        return self._day.snapshots

    @property
    def events(self) -> tuple[Event, ...]:
        """The day's journal."""
        return self._day.events

    def client(self) -> ServiceClient:
        """A client whose service this is."""
        transport = httpx.MockTransport(self._answer)
        return ServiceClient(Path("/run/rehearsal.sock"), transport=transport)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/snapshots":
            # Past the routes' transport, which answers only when an answer is whole.
            return httpx.Response(200, content=self._board.lines())
        return await self._routes.handle_async_request(request)

    def _chronicle(self, journal: Journal, paths: Paths) -> Chronicle:
        chronicle = Chronicle(
            paths.state / "history.sqlite",
            interval_s=self._day.snapshots[-1].interval_s,
            recorder=journal.record,
            wall=lambda: self._now_s,
        )
        for snapshot, speeds in zip(self._day.snapshots, self._day.speeds, strict=True):
            at_s = unix_s(snapshot.at) or 0.0
            reading = Reading(
                counters=Counters(at_s=at_s),
                counters_reset_s=None,
                run_age_s=number(snapshot.engine.uptime_s),
                elapsed_s=snapshot.interval_s,
                usd_per_hour=None,
                busy=False,
                simulated=snapshot.simulated,
            )
            chronicle.add(history_point(snapshot, at_s), reading, speeds)
        return chronicle

    def _starts(self, paths: Paths) -> PastStarts:
        """The one start, which nobody watched."""
        starts = PastStarts(paths.state / "starts.json", wall=lambda: self._now_s)
        starts.follow(self._day.status)
        return starts


class _Answers:
    """What the service answers besides."""

    def __init__(self, day: Rehearsal, paths: Paths) -> None:
        self._day = day
        self._paths = paths
        self.outputs: EngineOutputs = _Outputs(paths, lambda: day.status.run)

    def hello(self) -> Hello:
        """Who answers."""
        return Hello(
            version=__version__,
            schema=SCHEMA_VERSION,
            protocol=PROTOCOL_VERSION,
            pid=self._day.snapshots[-1].service.pid,
            gateway_url=GATEWAY,
            events_last_id=len(self._day.events),
        )

    def profiles(self) -> tuple[ProfileSummary, ...]:
        """Every profile that is shipped."""
        found = load_profiles(self._paths.profiles)
        return tuple(
            summarise(profile, found, os.environ, self._paths)
            for _, profile in sorted(found.profiles.items())
        )

    def changes(self, profile: str) -> ProfileDiff:
        """The rehearsed engine runs as its file says."""
        return diff_of(self._paths, self._day.status, profile)

    def fix(self) -> FixOffer:
        """Nothing fails in a rehearsal, so nothing is offered."""
        return offer_fix(self._paths, self._day.status)

    async def environment(self) -> ClientEnvironment:
        """What a client would set."""
        return client_environment(
            url=GATEWAY,
            listens_on="127.0.0.1",
            token=OPEN_TOKEN,
            served_name=self._day.profile.public_name,
            window_tokens=self._day.snapshots[-1].engine.max_model_len,
            environment={},
        )

    def why(self) -> Explanation:
        """What explains the shown snapshot's speed."""
        return explain(self._day.snapshots[-1], self._day.evidence)


class _Outputs(EngineOutputs):
    """The engine's output, whose place is another each time."""

    def chunk(self, offset: int, limit_bytes: int, start: str, *, newest: bool) -> LogChunk:
        """A piece of it, without that place."""
        return replace(super().chunk(offset, limit_bytes, start, newest=newest), path=OUTPUT_FILE)


def _write_files(day: Rehearsal, paths: Paths) -> None:
    """The day as a service would have left it on the disk."""
    make_private(paths.state)
    lines = [json.dumps(encode(event)) for event in day.events]
    write_private(paths.events, "".join(f"{line}\n" for line in lines))
    mark = ReadMark(event=len(day.events), at=day.snapshots[-1].at)
    write_private(_mark_file(paths), json.dumps(encode(mark)))
    if (run := day.status.run) is not None:
        folder = make_private(run.folder(paths.engine_runs))
        write_private(folder / OUTPUT_FILE, day.log)
        record.save(run, paths.engine_runs)
        record.note_served(folder)


def _mark_file(paths: Paths) -> Path:
    return paths.state / "read-mark.json"
