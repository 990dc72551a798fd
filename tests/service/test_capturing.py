"""`sessions.capture`: by the beginning of an id, told in events, off with the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from a40console.errors import UsageError
from a40console.gateway.captures import Captures
from a40console.gateway.meter import Passage
from a40console.gateway.sessions import SessionBook
from a40console.model.figures import Missing
from a40console.service.capturing import capture_handler, end_captures
from a40console.service.sessions import Around, Sessions
from a40console.service.tasks import Handler
from tests.gateway.session_clients import HEAD, Ask, Clock, who

NAME = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10"
QUIET = Around(slots=Missing("none"), window_tokens=Missing("none"), usd_per_hour=None, told={})


class Desk:
    """A book with one session, the handler, and what it recorded."""

    def __init__(self, folder: Path) -> None:
        clock = Clock()
        self.captures = Captures(folder, clock.wall)
        self.sessions = Sessions(SessionBook(clock, clock.wall, captures=self.captures), clock.wall)
        self.said: list[tuple[str, str, str]] = []
        passage = Passage(order=1, request_id="a40-1", route="messages", received_at_s=clock())
        self.sessions.book.arrived(passage, Ask(who(NAME), HEAD))
        self.run: Handler = capture_handler(self.sessions, self.record)

    def record(self, kind: str, text: str, severity: str = "info", data: Any = None) -> None:
        self.said.append((kind, severity, text))

    def capturing(self) -> bool:
        block = self.sessions.take(QUIET)
        assert not isinstance(block.sessions, Missing)
        (row,) = block.sessions
        assert row.capturing is self.sessions.detail(NAME).capturing
        return row.capturing


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "captures")


async def test_it_begins_and_ends_with_an_event_each(desk: Desk, tmp_path: Path) -> None:
    assert desk.capturing() is False
    answer = await desk.run({"session": "7f3a on"})
    folder = tmp_path / "captures" / NAME
    assert answer["report"].endswith(f"is written to {folder}, from its next request on.")
    assert desk.capturing() is True
    await desk.run({"session": "7f3a off"})
    assert desk.capturing() is False
    assert [said[:2] for said in desk.said] == [
        ("session.capture", "warn"),
        ("session.capture", "info"),
    ]
    assert desk.said[1][2] == "The text of session 7f3a9c52 is written no more: it was switched off"


async def test_twice_is_once(desk: Desk) -> None:
    await desk.run({"session": "7f3a on"})
    answer = await desk.run({"session": f"{NAME} on"})
    assert answer == {"report": "The capture of 7f3a9c52 was on already."}
    assert len(desk.said) == 1


async def test_with_the_service_it_ends(desk: Desk) -> None:
    await desk.run({"session": "7f3a on"})
    end_captures(desk.captures, desk.record)
    assert desk.said[-1][2] == "The text of session 7f3a9c52 is written no more: the service stops"
    assert desk.capturing() is False


async def test_one_that_is_full_says_so(desk: Desk) -> None:
    desk.captures.on_end(NAME, "268,435,456 bytes are written")
    assert desk.said[-1][2].endswith("no more: 268,435,456 bytes are written")


@pytest.mark.parametrize("text", ["", "on", "7f3a", "7f3a maybe", " on"])
async def test_what_is_no_order_is_refused(desk: Desk, text: str) -> None:
    with pytest.raises(UsageError, match="needs a session and on or off"):
        await desk.run({"session": text})


async def test_a_session_that_is_not_known_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="No session is known as ffff"):
        await desk.run({"session": "ffff on"})
    assert desk.said == []
