"""Sessions over a restart of the service: what the file holds, and what it costs to write."""

from __future__ import annotations

import json
import stat
import threading
import time
from pathlib import Path

import pytest

from a40console.gateway.session_records import KEPT_AGENTS
from a40console.gateway.session_store import Frozen, frozen
from a40console.model.session import Outline
from a40console.service.session_shelf import SessionShelf
from a40console.service.sessions import Sessions
from tests.gateway.session_clients import HEAD, Answer, Ask, Gateway, block, talk, who
from tests.service.session_days import around, busy_day


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def sessions(gateway: Gateway) -> Sessions:
    return Sessions(gateway.book, gateway.clock.wall)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions.json"


async def test_a_restarted_service_knows_the_sessions_and_goes_on(
    gateway: Gateway, sessions: Sessions, file: Path
) -> None:
    busy_day(gateway)
    sessions.take(around())
    before = [sessions.detail(name) for name in ("7f3a", "other")]
    await SessionShelf(file, gateway.book).save()
    again = Gateway()
    again.clock.now_s = gateway.clock.now_s
    told = Sessions(again.book, again.clock.wall)

    SessionShelf(file, again.book).load()
    told.take(around())

    assert [told.detail(name) for name in ("7f3a", "other")] == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again.pass_s(9)
    again.turn(Ask(who(), HEAD + talk(2), tool_answers=(Answer("t2"),)), prompt=5000, cached=4048)
    detail = told.detail("7f3a")
    assert (detail.turns, detail.requests) == (3, 4)
    assert detail.timeline[-1].reread_tokens == 2
    assert detail.timeline[-2].tools[0].duration_s == pytest.approx(12.0)


async def test_the_file_holds_no_text_of_anyone(gateway: Gateway, file: Path) -> None:
    busy_day(gateway)

    await SessionShelf(file, gateway.book).save()

    written = file.read_text(encoding="utf-8")
    for secret in ("do it", "identity", "result 0", "call 0"):
        assert secret not in written


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 1, "sessions": [{}]}', '{"version": 9, "sessions": []}']
)
def test_a_file_that_is_none_costs_only_what_it_held(
    gateway: Gateway, file: Path, content: str
) -> None:
    file.write_text(content, encoding="utf-8")

    SessionShelf(file, gateway.book).load()

    assert gateway.book.records() == ()


async def test_a_disk_that_takes_nothing_costs_the_file_alone(
    gateway: Gateway, tmp_path: Path
) -> None:
    busy_day(gateway)
    shelf = SessionShelf(tmp_path / "gone" / "sessions.json", gateway.book)

    await shelf.save()

    assert shelf.trouble is not None
    assert len(gateway.book.records()) == 2


async def test_saving_holds_the_loop_for_no_longer_than_freezing_takes(
    gateway: Gateway, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text, which takes most of the time, is made elsewhere, of what was there at the start."""
    gateway.turn(Ask(who(), _long(0, 4000)), prompt=9000, cached=0)
    loop_thread, made = threading.get_ident(), list[int]()
    text = Frozen.text

    def watched(self: Frozen) -> str:
        made.append(threading.get_ident())
        gateway.turn(Ask(who(), _long(0, 10)), prompt=9000, cached=0)
        return text(self)

    monkeypatch.setattr(Frozen, "text", watched)
    await SessionShelf(file, gateway.book).save()
    (session,) = json.loads(file.read_text(encoding="utf-8"))["sessions"]
    (agent,) = session["agents"]

    assert len(made) == 1
    assert loop_thread not in made
    assert (session["turns"], agent["sums"]["requests"], len(session["entries"])) == (1, 1, 1)
    assert len(agent["baselines"][0]["outline"]) == len(HEAD) + 4000


def test_freezing_a_session_that_is_as_large_as_they_get_is_quick(gateway: Gateway) -> None:
    for number in range(KEPT_AGENTS):
        asked = Ask(who(agent=f"Explore {number}"), _long(number, 1500))
        gateway.turn(asked, prompt=9000, cached=0)
    (record,) = gateway.book.records()
    assert record.blocks() > 30_000

    began_s = time.process_time()
    made = frozen(record, whole=True)
    froze_s = time.process_time() - began_s

    assert froze_s < 0.02
    assert made.text().count('"digest"') > 15_000


async def test_only_what_changed_is_encoded_again(
    gateway: Gateway, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy_day(gateway)
    shelf, made, text = SessionShelf(file, gateway.book), list[str](), Frozen.text

    def watched(self: Frozen) -> str:
        made.append(self.session.session)
        return text(self)

    monkeypatch.setattr(Frozen, "text", watched)
    await shelf.save()
    gateway.turn(Ask(who("other"), HEAD))
    await shelf.save()
    await shelf.save()

    assert made == ["7f3a", "other", "other"]


def _long(number: int, pieces: int) -> Outline:
    return (*HEAD, *(block("tool_result", f"{number} {piece}", piece) for piece in range(pieces)))
