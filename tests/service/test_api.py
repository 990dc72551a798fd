"""The control API takes no count that would have it read everything."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

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
    """Notes what it is asked to read."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def hello(self) -> Hello:
        raise NotImplementedError

    def profiles(self) -> tuple[ProfileSummary, ...]:
        raise NotImplementedError

    def why(self) -> Explanation:
        raise NotImplementedError

    def changes(self, profile: str) -> ProfileDiff:
        raise NotImplementedError

    def fix(self) -> FixOffer:
        raise NotImplementedError

    def environment(self) -> ClientEnvironment:
        raise NotImplementedError

    @property
    def outputs(self) -> EngineOutputs:
        return Outputs(self.asked)


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/events"])
async def test_a_negative_limit_is_refused(path: str, tmp_path: Path) -> None:
    answers, journal = Answers(), Journal(tmp_path / "events.jsonl")
    past = past_routes(tmp_path, journal)
    api = ControlApi(board=Board(), past=past, commands=CommandTasks({}, journal), answers=answers)
    transport = httpx.ASGITransport(app=api.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
        response = await http.get(path, params={"limit": -1})
        assert (response.status_code, answers.asked) == (400, [])
        assert response.json()["message"] == "limit must not be negative"
        assert (await http.get(path, params={"limit": 0})).status_code == 200
