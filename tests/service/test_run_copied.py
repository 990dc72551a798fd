"""What another machine is said to have, it is said to have as it was when it was copied."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import UsageError
from a40console.service.run_handlers import RunHandlers
from a40console.service.run_ledger import RunLedger
from tests import make_runs


@dataclass
class Kept:
    """The runs of a service, as far as what is kept goes."""

    ledger: RunLedger

    def handlers(self, folder: Path) -> RunHandlers:
        runs: Any = self
        operator: Any = None
        return RunHandlers(runs, operator, folder / "turned.json")

    async def add(self, *ids: str) -> None:
        for name in ids:
            run = make_runs.run(id=name)
            await self.ledger.take(lambda ledger, run=run: ledger.add(run))  # type: ignore[misc]

    async def revision(self, name: str) -> int:
        document: Any = await self.ledger.ask(lambda ledger: ledger.document(name))
        return int(document["revision"])

    async def not_copied(self) -> set[str]:
        return set(await self.ledger.ask(lambda ledger: ledger.not_copied()))


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    ledger = RunLedger(tmp_path / "ledger.sqlite")
    yield Kept(ledger)
    await ledger.close()


async def test_a_note_that_came_after_the_copy_is_still_to_be_copied(
    kept: Kept, tmp_path: Path
) -> None:
    """The laptop fetched both; before it could say so, one of them got a note here."""
    await kept.add("run-1", "run-2")
    offered = {name: await kept.revision(name) for name in ("run-1", "run-2")}
    await kept.ledger.ask(lambda ledger: ledger.note("run-2", "watch the heat", "2026-11-30"))
    ids = ",".join(f"{name}@{revision}" for name, revision in offered.items())
    await kept.handlers(tmp_path).table()["runs.copied"]({"ids": ids, "machine": "laptop"})
    assert await kept.not_copied() == {"run-2"}
    ids = f"run-2@{await kept.revision('run-2')}"
    await kept.handlers(tmp_path).table()["runs.copied"]({"ids": ids, "machine": "laptop"})
    assert await kept.not_copied() == set()


async def test_without_a_revision_it_is_the_present_one(kept: Kept, tmp_path: Path) -> None:
    await kept.add("run-1")
    await kept.handlers(tmp_path).table()["runs.copied"]({"ids": "run-1", "machine": "laptop"})
    assert await kept.not_copied() == set()


@pytest.mark.parametrize("revision", ["", "new", "0", "-1", "1.5", "9" * 30, "²"])
async def test_what_is_no_revision_marks_nothing(kept: Kept, tmp_path: Path, revision: str) -> None:
    await kept.add("run-1", "run-2")
    copied = kept.handlers(tmp_path).table()["runs.copied"]
    with pytest.raises(UsageError):
        await copied({"ids": f"run-1@1,run-2@{revision}", "machine": "laptop"})
    assert await kept.not_copied() == {"run-1", "run-2"}
