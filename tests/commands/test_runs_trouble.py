"""`runs list` while the ledger is not whole: what is known comes all the same, and what is not."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import pytest

from a40console import cli
from a40console.commands import runs
from a40console.commands.runs_named import run_id
from a40console.errors import ConsoleError, Exit, RefusedError, UsageError
from a40console.model.event import Event
from a40console.model.figures import Missing
from a40console.model.run import Run
from a40console.service.runs_client import RunCalls
from tests import make_runs as make

DROPPED = make.queued(
    id="20261130-160000-sweep-0001",
    state="failed",
    reason="cancelled by alice, before it began",
    result=Missing("it ended before it found anything"),
)


class Client:
    """A service whose ledger is as a test wants it."""

    def __init__(self, trouble: RefusedError | None = None, lost: str = "") -> None:
        self.trouble, self.lost = trouble, lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    async def runs(self, limit: int, *, only_live: bool = False) -> tuple[Run, ...]:
        if self.trouble is not None and not only_live:
            raise ConsoleError.from_trouble(self.trouble.trouble)  # as it comes over the wire
        return (make.queued(), DROPPED, make.run(id="20261130-094501-compaction-1f3a"))[:limit]

    async def run(self, name: str) -> Run:
        raise UsageError(f"There is no run {name!r}")

    async def events(self, **_asked: object) -> tuple[Event, ...]:
        data = {"evidence": self.lost}
        told = Event(
            id=1, at="", kind="ledger.damaged", text="it was damaged", severity="error", data=data
        )
        return (told,) if self.lost else ()

    async def runs_left(self) -> Any:
        raise RefusedError("nobody knows")


def told_with(client: Client, monkeypatch: pytest.MonkeyPatch) -> int:
    async def served(*_paths: object, **_how: object) -> Client:
        return client

    monkeypatch.setattr(runs, "ensure_service", served)
    return cli._run(["runs", "list"])


def test_a_ledger_that_cannot_be_opened_hides_no_run_that_lives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trouble = RefusedError("The disk is full", evidence="ledger.sqlite: database or disk is full")
    assert told_with(Client(trouble), monkeypatch) == Exit.REFUSED
    told = capsys.readouterr()
    assert make.queued().id in told.out
    assert "The disk is full" in told.err


def test_damage_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told_with(Client(lost="kept as ledger.sqlite.broken-1"), monkeypatch) == 0
    told = capsys.readouterr()
    assert told.err.count("ledger.sqlite.broken-1") == 1
    assert "NOT BEGUN" in told.out
    assert "nothing usable" not in told.out


async def test_the_last_one_neither_waits_nor_was_dropped() -> None:
    client: Any = Client()
    assert await run_id(client, "last") == "20261130-094501-compaction-1f3a"


class Calls(RunCalls):
    """A client that must not be asked."""

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        raise AssertionError(path)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ""])
async def test_a_path_names_no_run(name: str) -> None:
    with pytest.raises(UsageError, match="There is no run"):
        await Calls().run(name)
