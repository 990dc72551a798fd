"""Looking back over the control API, as the console's client does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from a40console.errors import ConsoleError
from a40console.model.figures import Missing, number
from a40console.model.instants import unix_s
from a40console.service import past_api
from a40console.service.api import ControlApi
from a40console.service.board import Board
from a40console.service.chronicle import Chronicle
from a40console.service.client import ServiceClient
from a40console.service.journal import Journal
from a40console.service.tasks import CommandTasks
from a40console.tui.panels.digest import new_events
from tests.service.past import chronicle, past_routes
from tests.service.test_api import Answers
from tests.service.test_chronicle import Wall, live


class Bench:
    """A control API without a service around it."""

    def __init__(self, folder: Path) -> None:
        self.wall = Wall()
        self.journal = Journal(folder / "events.jsonl")
        self.kept: Chronicle = chronicle(folder, self.journal, wall=self.wall)
        api = ControlApi(
            board=Board(),
            past=past_routes(folder, self.journal, self.kept, wall=self.wall),
            commands=CommandTasks({}, self.journal),
            answers=Answers(),
        )
        transport = httpx.ASGITransport(app=api.app())
        self.client = ServiceClient(folder / "none.sock", transport=transport)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://service")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.kept.open()
    yield made
    await made.kept.close()
    await made.http.aclose()


async def test_history_by_points_and_by_step(bench: Bench) -> None:
    live(bench.kept, bench.wall, 600)
    whole = await bench.client.history(points=100)
    assert (whole.step_s, len(whole.points) <= 100) == (10.0, True)
    last = await bench.client.history(-30.0)
    assert (last.step_s, last.points[-1].at_s) == (1.0, bench.wall.at_s)
    live(bench.kept, bench.wall, 25)
    more = await bench.client.history(whole.points[-1].at_s, step_s=whole.step_s)
    assert more.step_s == 10.0
    assert [p.at_s for p in more.points] == [whole.points[-1].at_s + 10 * n for n in (1, 2)]


@pytest.mark.parametrize(
    ("path", "query", "text"),
    [
        ("/v1/history", {"points": "-1"}, "points must not be negative"),
        ("/v1/history", {"since": "soon"}, "since must be a number"),
        ("/v1/history", {"since": "nan"}, "since must be a finite number"),
        ("/v1/history", {"until": "inf"}, "until must be a finite number"),
        ("/v1/events", {"severity": "fatal"}, "severity must be one of info, warn, error"),
        ("/v1/events", {"before": "x"}, "before must be a whole number"),
        ("/v1/digest", {"since_event": "x"}, "since_event must be a whole number"),
        ("/v1/starts", {"limit": "-3"}, "limit must not be negative"),
        ("/v1/spending", {"since": "-inf"}, "since must be a finite number"),
    ],
)
async def test_nonsense_is_refused(
    bench: Bench, path: str, query: dict[str, str], text: str
) -> None:
    answer = await bench.http.get(path, params=query)
    assert (answer.status_code, answer.json()["message"]) == (400, text)


async def test_far_off_questions_are_answered_with_what_there_is(bench: Bench) -> None:
    live(bench.kept, bench.wall, 5)
    for since_s in (-1e15, -1e6, 1e15):
        await bench.client.history(since_s, points=10**9)
        await bench.client.spending(since_s)
        await bench.client.digest(since_s=since_s)
    assert (await bench.client.history(points=0)).points == ()


async def test_events_page_back(bench: Bench) -> None:
    for number_of in range(30):
        bench.journal.record("engine.noted", str(number_of))
    newest = await bench.client.events(limit=10)
    older = await bench.client.events(limit=10, before=newest[0].id)
    assert [event.id for event in (*older, *newest)] == list(range(11, 31))
    assert await bench.client.events(kind="note") == ()
    assert len(await bench.client.events(since=25, kind="engine")) == 5


async def test_the_read_mark(bench: Bench) -> None:
    for number_of in range(5):
        bench.journal.record("engine.noted", str(number_of))
    assert (await bench.client.read_mark()).event == 0
    assert (await bench.client.mark_read(3)).event == 3
    assert (await bench.client.mark_read(1)).event == 3
    assert (await bench.client.read_mark()).event == 3
    for body in ("", "[]", '{"event": "3"}', '{"event": true}', '{"event": -1}'):
        answer = await bench.http.post("/v1/read-mark", content=body)
        assert answer.status_code == 400, body
    with pytest.raises(ConsoleError, match="the id of an event"):
        await bench.client.mark_read(-5)


async def test_a_digest_since_an_event_and_since_an_instant(bench: Bench) -> None:
    read = bench.journal.record("engine.serving", "it serves")
    bench.wall.at_s = unix_s(read.at) or 0.0
    live_from_s = bench.wall.at_s
    live(bench.kept, bench.wall, 90)
    note = bench.journal.record("note.added", "pruning off")
    bench.journal.record("engine.ended", "killed", "error")
    told = await bench.client.digest(since_event=read.id)
    assert (told.since_event, told.until_event, told.errors) == (1, 3, 1)
    assert [note.text for note in told.notes] == ["pruning off"]
    assert told.since_s == live_from_s
    assert live_from_s - 60 <= told.counted_since_s <= live_from_s
    assert (number(told.generated_tokens), number(told.busy_s)) == (890, 90.0)
    assert number(told.usd_spent) == pytest.approx(0.009, abs=2e-4)
    assert told.peak_tokens_per_s == 10.0
    assert told.complete
    all_of_it = await bench.client.digest(since_s=-3600.0)
    assert all_of_it.errors == 1
    assert not all_of_it.complete, "nothing is known from before the first event"
    later = await bench.client.digest(since_event=read.id, since_s=live_from_s + 60)
    assert (later.since_event, later.errors) == (1, 1), "every event that was not read"
    assert later.since_s == unix_s(note.at), "and the time in which they happened"
    seen = await bench.client.digest(since_event=3, since_s=live_from_s + 60)
    assert seen.since_s == live_from_s + 60
    assert number(seen.generated_tokens) == pytest.approx(300, abs=15)
    nothing = await bench.client.digest(since_event=3)
    assert (nothing.errors, nothing.notes, nothing.findings) == (0, (), ())


@pytest.mark.parametrize("read", range(1, 6))
async def test_a_digest_tells_of_exactly_the_events_that_the_console_counts_as_new(
    bench: Bench, read: int
) -> None:
    """Also where somebody was here, without reading, after some of them had happened."""
    events = [bench.journal.record("note.added", f"note {number}") for number in range(5)]
    mark = await bench.client.mark_read(read)
    assert not isinstance(mark.at, Missing)
    told = await bench.client.digest(since_event=mark.event, since_s=unix_s(mark.at))
    unread = bench.journal.last_id - mark.event
    assert new_events(told) == unread == 5 - read
    assert [note.text for note in told.notes] == [event.text for event in events[read:]]
    assert all((unix_s(note.at) or 0.0) >= told.since_s for note in told.notes)


async def test_more_events_than_a_digest_reads_make_it_incomplete(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bench.journal.record("engine.serving", "it serves")
    bench.wall.at_s = unix_s(read.at) or 0.0
    live(bench.kept, bench.wall, 60)
    for _ in range(10):
        bench.journal.record("engine.ended", "killed", "error")
    assert (await bench.client.digest(since_event=read.id)).complete
    monkeypatch.setattr(past_api, "MOST_EVENTS", 10)
    assert not (await bench.client.digest(since_event=read.id)).complete


async def test_spending_by_the_hour(bench: Bench) -> None:
    live(bench.kept, bench.wall, 7200)
    report = await bench.client.spending()
    assert [hour.generated_tokens for hour in report.hours] == [35_980, 36_000, 10]
    assert number(report.usd) == pytest.approx(0.72)
    assert report.usd_per_hour == 0.44
    assert number(report.usd_per_million) == pytest.approx(10.0, rel=0.01)


async def test_no_start_yet(bench: Bench) -> None:
    assert await bench.client.starts() == ()
    told = await bench.client.digest(since_s=-60)
    assert isinstance(told.generated_tokens, Missing)


@pytest.mark.parametrize(
    "question",
    [
        "history?since=-1e308&until=-1e308",
        "history?since=1e308",
        "history?step=1e308",
        "digest?since=-1e308",
        "digest?since=-86399999913600",
        "digest?since=1e17",
        "spending?since=-1e308",
        "events?since_s=-1e308",
        f"events?since={'9' * 4000}",
        f"digest?since_event={'9' * 4000}",
    ],
)
async def test_an_absurd_instant_is_refused_or_answered(bench: Bench, question: str) -> None:
    live(bench.kept, bench.wall, 60)
    bench.journal.record("note", "here")
    answer = await bench.http.get(f"/v1/{question}")
    assert answer.status_code in (200, 400)
    if "1e308" in question:
        assert answer.status_code == 400
