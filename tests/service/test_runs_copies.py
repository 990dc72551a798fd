"""Runs on their way: offered to others, taken in, and kept a second time on a volume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from a40console.config import RunsSettings
from a40console.ledger.store import Ledger
from a40console.link.pulled import PulledRuns
from a40console.service.run_ledger import RunLedger
from a40console.service.runs_arriving import RunsArriving
from a40console.service.runs_home import FOLDER, RunsHome, home_of_runs
from a40console.service.runs_leaving import RunsLeaving, is_passing, reached_by
from tests.make_runs import reference, run, running, sweep

POD = {"RUNPOD_POD_ID": "abc", "RUNPOD_PUBLIC_IP": "203.0.113.7", "RUNPOD_TCP_PORT_22": "22022"}


class Machine:
    """One machine's ledger, and what its journal says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.shelf = RunLedger(folder / "ledger.sqlite")
        self.kept = Ledger.open(folder / "ledger.sqlite")
        self.pulled = PulledRuns(folder / "pulled")
        self.told: list[tuple[str, str]] = []

    def record(
        self, kind: str, text: str, severity: str = "info", data: dict[str, str] | None = None
    ) -> None:
        self.told.append((kind, text))

    def arriving(self) -> RunsArriving:
        return RunsArriving(self.pulled, self.shelf, self.record)

    def home(self, folder: Path, *, outlives: bool = True) -> RunsHome:
        return RunsHome(folder, outlives=outlives, ledger=self.shelf, record=self.record)

    def leaving_api(self, settings: RunsSettings | None = None, volume: str = "") -> Starlette:
        api = RunsLeaving(
            ledger=self.shelf,
            folders=self.folder / "runs",
            settings=settings or RunsSettings(),
            volume=lambda: volume,
            environment=POD,
        )
        return Starlette(routes=[Route(path, answer) for path, answer in api.reads().items()])

    def limit_disk(self, pages: int) -> None:
        """Let the ledger's file grow to so many pages and no further."""
        limit = f"PRAGMA max_page_count = {pages}"
        asyncio.run(self.shelf.ask(lambda ledger: ledger._connection.execute(limit)))

    def close(self) -> None:
        self.kept.close()
        asyncio.run(self.shelf.close())


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "pod")
    yield made
    made.close()


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "laptop")
    yield made
    made.close()


def bring(pod: Machine, laptop: Machine, run_id: str) -> None:
    """What a pull does with one run."""
    document = json.dumps(pod.kept.document(run_id)).encode()
    laptop.pulled.keep(run_id, "1", document, origin="root@pod")


async def ask(app: Starlette, path: str, **query: str) -> Any:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        return (await client.get(path, params=query)).json()


def test_what_came_goes_into_the_ledger_with_where_it_is_from(
    pod: Machine, laptop: Machine
) -> None:
    pod.kept.add(run())
    bring(pod, laptop, run().id)
    assert asyncio.run(laptop.arriving().look()) == 1
    assert laptop.kept.run(run().id).origin == "root@pod"
    assert laptop.kept.run(run().id).result == run().result
    assert laptop.pulled.waiting() == []
    assert laptop.told == [("runs.arrived", "1 run copied here from root@pod")]
    assert laptop.kept.not_copied() == ()  # it is there, too


def test_a_run_that_comes_again_with_a_note_is_one_run_with_the_note(
    pod: Machine, laptop: Machine
) -> None:
    pod.kept.add(run())
    for note in ("first", "second"):
        pod.kept.note(run().id, note, "2026-11-30T12:00:00Z")
        bring(pod, laptop, run().id)
        asyncio.run(laptop.arriving().look())
    assert len(laptop.kept.runs()) == 1
    assert [note.text for note in laptop.kept.run(run().id).notes] == ["first", "second"]


def test_a_full_disk_keeps_it_waiting_and_is_told_once(pod: Machine, laptop: Machine) -> None:
    pod.kept.add(run())
    bring(pod, laptop, run().id)
    laptop.limit_disk(1)
    arriving = laptop.arriving()
    for _ in range(3):
        assert asyncio.run(arriving.look()) == 0
    assert [kind for kind, _ in laptop.told] == ["runs.waiting"]
    assert len(laptop.pulled.waiting()) == 1
    laptop.limit_disk(1_000_000)
    assert asyncio.run(arriving.look()) == 1
    assert laptop.kept.has(run().id)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"origin": "pod"}', '{"origin": "pod", "document": {"format": "x"}}']
)
def test_what_is_no_run_is_laid_aside_and_stops_nothing(
    pod: Machine, laptop: Machine, text: str
) -> None:
    pod.kept.add(run())
    bring(pod, laptop, run().id)
    (laptop.pulled.inbox / "20200101-odd.json").write_text(text)
    assert asyncio.run(laptop.arriving().look()) == 1
    assert [file.name for file in laptop.pulled.refused.iterdir()] == ["20200101-odd.json"]
    assert laptop.told[0][0] == "runs.refused"
    assert laptop.pulled.waiting() == []


def test_runs_that_have_ended_are_offered_and_nothing_again_while_nothing_changes(
    pod: Machine,
) -> None:
    for one in (run(), sweep(), running(), reference()):
        pod.kept.add(one)
    app = pod.leaving_api()
    told = asyncio.run(ask(app, "/v1/runs/leaving", machine="laptop"))
    assert {each["id"] for each in told["runs"]} == {run().id, sweep().id}
    assert not any(each["copied"] for each in told["runs"])
    again = asyncio.run(ask(app, "/v1/runs/leaving", machine="laptop", known=told["mark"]))
    assert again == {"mark": told["mark"], "runs": None, "unended": []}
    (first, *_) = told["runs"]
    pod.kept.mark_copied(first["id"], "laptop", revision=int(first["version"]))
    later = asyncio.run(ask(app, "/v1/runs/leaving", machine="laptop", known=told["mark"]))
    assert [each["copied"] for each in later["runs"] if each["id"] == first["id"]] == [True]
    other = asyncio.run(ask(app, "/v1/runs/leaving", machine="desk"))
    assert not any(each["copied"] for each in other["runs"])


def test_a_note_makes_a_copied_run_one_that_is_to_be_copied(pod: Machine) -> None:
    pod.kept.add(run())
    app = pod.leaving_api()

    def not_copied() -> list[str]:
        ids: list[str] = asyncio.run(ask(app, "/v1/runs/not-copied"))["ids"]
        return ids

    assert not_copied() == [run().id]
    pod.kept.mark_copied(run().id, "laptop")
    assert not_copied() == []
    pod.kept.note(run().id, "one more line", "2026-11-30T12:00:00Z")
    assert not_copied() == [run().id]


def test_a_pod_tells_how_it_is_reached_and_that_it_will_be_gone(pod: Machine) -> None:
    told = asyncio.run(ask(pod.leaving_api(volume="/workspace/x"), "/v1/runs/not-copied"))
    assert told["passing"] is True
    assert told["volume"] == "/workspace/x"
    assert told["pull"].endswith("@203.0.113.7:22022")
    assert is_passing(RunsSettings(passing="no"), POD) is False
    assert is_passing(RunsSettings(), {}) is False
    assert is_passing(RunsSettings(passing="yes"), {}) is True
    assert reached_by({"USER": "alice"}) == "alice@THIS-HOST"


def test_a_volume_has_every_run_and_gives_them_to_the_next_pod(
    pod: Machine, tmp_path: Path
) -> None:
    volume = tmp_path / "volume" / FOLDER
    pod.kept.add(run())
    home = pod.home(volume)
    assert asyncio.run(home.keep_up()) == 1
    assert asyncio.run(home.keep_up()) == 0
    assert pod.kept.run(run().id).copied_to == (home.name,)
    pod.kept.note(run().id, "a line", "2026-11-30T12:00:00Z")
    pod.kept.add(sweep())
    assert asyncio.run(home.keep_up()) == 2
    assert asyncio.run(pod.home(volume).take_back()) == 0  # a service that came back
    following = Machine(tmp_path / "next")
    later = following.home(volume)
    assert asyncio.run(later.take_back()) == 2
    assert [note.text for note in following.kept.run(run().id).notes] == ["a line"]
    assert following.kept.not_copied() == ()
    following.close()


def test_a_volume_that_was_only_found_does_not_count_as_elsewhere(
    pod: Machine, tmp_path: Path
) -> None:
    pod.kept.add(run())
    assert asyncio.run(pod.home(tmp_path / FOLDER, outlives=False).keep_up()) == 1
    assert pod.kept.not_copied() == (run().id,)


def test_a_volume_that_is_full_is_told_once_and_written_to_later(
    pod: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    pod.kept.add(run())
    home = pod.home(tmp_path / FOLDER)
    with monkeypatch.context() as patched:
        patched.setattr("a40console.service.runs_home.write_private", full)
        assert [asyncio.run(home.keep_up()) for _ in range(2)] == [0, 0]
    assert [kind for kind, _ in pod.told] == ["runs.waiting"]
    assert pod.kept.not_copied() == (run().id,)
    assert asyncio.run(home.keep_up()) == 1
    assert pod.kept.not_copied() == ()


def test_odd_files_on_a_volume_stop_nothing(pod: Machine, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    pod.kept.add(run())
    asyncio.run(pod.home(folder).keep_up())
    (folder / "20200101-odd.json").write_text("{")
    (folder / "20200102-odd.json").write_text("[]")
    (folder / "index.json").write_text("[1]")
    following = Machine(tmp_path / "next")
    assert asyncio.run(following.home(folder).take_back()) == 1
    following.close()


def test_a_home_is_where_the_operator_says_or_on_a_volume_of_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    named = RunsSettings(home=str(tmp_path / "kept"))
    assert home_of_runs(named, {}, state) == tmp_path / "kept"
    assert home_of_runs(RunsSettings(home="off"), POD, state) is None
    assert home_of_runs(RunsSettings(), {}, state) is None
    mounted = Path("/proc")  # another device than the test's folder
    monkeypatch.setattr("a40console.service.runs_home.VOLUMES", (tmp_path, mounted))
    monkeypatch.setattr("os.access", lambda path, mode: True)
    assert home_of_runs(RunsSettings(), POD, state) == mounted / FOLDER
    assert home_of_runs(RunsSettings(), POD, mounted) is None  # the ledger lies there itself
