"""The control API takes no count that would have it read everything."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from a40console.errors import RefusedError
from a40console.model.control import ClientEnvironment, Hello, LogChunk, ProfileSummary
from a40console.model.explanation import Explanation
from a40console.model.fix import FixOffer
from a40console.model.profile_change import ProfileDiff
from a40console.service.api import ControlApi
from a40console.service.board import Board
from a40console.service.engine_outputs import EngineOutputs
from a40console.service.journal import Journal
from a40console.service.tasks import CommandTasks
from tests.service.past import past_routes


class Outputs(EngineOutputs):
    """Reads nothing, and notes what it was to read."""

    def __init__(self, asked: list[tuple[int, int]]) -> None:
        self._asked = asked

    def chunk(self, offset: int, limit_bytes: int, start: str, *, newest: bool) -> LogChunk:
        self._asked.append((offset, limit_bytes))
        return LogChunk(path=None, text="", next_offset=0)


class Answers:
    """Notes what it is asked to read, and whether the event loop was left alone by it."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.aside: list[bool] = []

    def hello(self) -> Hello:
        raise NotImplementedError

    def profiles(self) -> tuple[ProfileSummary, ...]:
        self._note()
        return ()

    def why(self) -> Explanation:
        raise NotImplementedError

    def changes(self, profile: str) -> ProfileDiff:
        self._note()
        return ProfileDiff(
            id="7f",
            profile=profile or "mine",
            origin="/p/mine.toml",
            running="mine",
            state="serving",
            changes=(),
            not_in_force=(),
        )

    def fix(self) -> FixOffer:
        self._note()
        raise RefusedError("No start has failed of late", remedy="Start one.")

    async def environment(self) -> ClientEnvironment:
        raise NotImplementedError

    @property
    def outputs(self) -> EngineOutputs:
        return Outputs(self.asked)

    def _note(self) -> None:
        self.aside.append(threading.current_thread() is not threading.main_thread())


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def http(answers: Answers, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    journal = Journal(tmp_path / "events.jsonl")
    past = past_routes(tmp_path, journal)
    api = ControlApi(board=Board(), past=past, commands=CommandTasks({}, journal), answers=answers)
    transport = httpx.ASGITransport(app=api.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        yield client


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/events"])
async def test_a_negative_limit_is_refused(
    path: str, http: httpx.AsyncClient, answers: Answers
) -> None:
    response = await http.get(path, params={"limit": -1})
    assert (response.status_code, answers.asked) == (400, [])
    assert response.json()["message"] == "limit must not be negative"
    assert (await http.get(path, params={"limit": 0})).status_code == 200


async def test_profiles_are_read_beside_the_event_loop(
    http: httpx.AsyncClient, answers: Answers
) -> None:
    assert (await http.get("/v1/profiles")).json() == []
    diff = (await http.get("/v1/profiles/changes", params={"profile": "other"})).json()
    assert (diff["profile"], diff["running"]) == ("other", "mine")
    refused = await http.get("/v1/profiles/fix")
    assert (refused.status_code, refused.json()["remedy"]) == (409, "Start one.")
    assert answers.aside == [True, True, True]


async def test_what_is_not_there_is_named(http: httpx.AsyncClient) -> None:
    absent = await http.get("/v1/profiles/nothing")
    assert absent.status_code == 400
    assert absent.json()["message"] == "The control API has no GET /v1/profiles/nothing"
