"""While an experiment measures the engine, nobody but it changes what it measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import RefusedError, UsageError
from a40console.model.calls import CALLABLE
from a40console.model.profile import Profile, Speculation
from a40console.model.run import Intrusion, RunSpec, RunTarget
from a40console.operations.who import ask_as
from a40console.service.run_folder import RunFolder
from a40console.service.run_handlers import ENDING, GUARDED, RunHandlers
from tests.service import orders

RUN = "20261130-174501-sweep-1f3a"
SPECULATING = Profile(
    name="a", kind="sim", model="x/y", speculation=Speculation(enabled=True, tokens=24)
)


@dataclass
class Running:
    """The process of a run, as far as handlers look at it."""

    folder: RunFolder


@dataclass
class Queue:
    current: Running | None
    cancelled: list[tuple[str, str]] = field(default_factory=list)
    queued: tuple[RunFolder, ...] = ()

    def cancel(self, run_id: str, why: str) -> str:
        self.cancelled.append((run_id, why))
        return f"{run_id} is asked to end"

    async def released(self, timeout_s: float) -> bool:
        self.current = None
        return True


@dataclass
class Runs:
    queue: Queue
    target: RunTarget

    def running(self) -> Any:
        @dataclass
        class Seen:
            id: str
            spec: RunSpec

        if self.queue.current is None:
            return None
        return Seen(RUN, RunSpec(experiment="sweep", target=self.target))


class Operator:
    """Notes what it is told to let serve."""

    def __init__(self) -> None:
        self.served: list[tuple[str, Profile]] = []
        self.status = self
        self.rung = 0

    async def replace_with(self, what: str, profile: Profile, *, rung: int) -> dict[str, str]:
        self.served.append((what, profile))
        return {}


@dataclass
class Guarded:
    handlers: RunHandlers
    queue: Queue
    operator: Operator
    done: list[str] = field(default_factory=list)

    async def do(self, name: str, who: str = "alice@pod, pid 7", **arguments: str) -> None:
        async def carry_out(given: Mapping[str, str]) -> dict[str, str]:
            self.done.append(name)
            return {}

        names = (*GUARDED, *ENDING, "service.stop", "note.add")
        table = self.handlers.guarded(dict.fromkeys(names, carry_out))
        ask_as(who)
        await table[name](arguments)


def guarded(
    path: Path,
    *,
    runs: bool = True,
    kind: str = "engine",
    intrusion: Intrusion = "restarts",
) -> Guarded:
    folder = RunFolder(path / RUN)
    folder.write_order(orders.order(RUN, intrusion=intrusion))
    folder.write_before(SPECULATING)
    queue = Queue(Running(folder) if runs else None)
    operator: Any = Operator()
    target = RunTarget(kind=kind)  # type: ignore[arg-type]
    every: Any = Runs(queue, target)
    return Guarded(RunHandlers(every, operator, path / "turned.json"), queue, operator)


def test_every_guarded_command_exists() -> None:
    assert set(GUARDED) | set(ENDING) <= CALLABLE.keys()


@pytest.mark.parametrize("name", GUARDED)
async def test_what_would_spoil_it_is_refused_with_the_run_named(tmp_path: Path, name: str) -> None:
    service = guarded(tmp_path)
    with pytest.raises(RefusedError) as refused:
        await service.do(name)
    assert refused.value.evidence == RUN
    assert f"run cancel {RUN}" in refused.value.remedy
    assert service.done == []


@pytest.mark.parametrize("name", GUARDED)
async def test_the_run_itself_may(tmp_path: Path, name: str) -> None:
    service = guarded(tmp_path)
    await service.do(name, who=f"root@pod without a terminal, run {RUN}, pid 8")
    assert service.done == [name]


@pytest.mark.parametrize("name", ["engine.restart", "engine.stop", "note.add"])
async def test_nothing_is_in_the_way_where_nothing_measures_our_engine(
    tmp_path: Path, name: str
) -> None:
    for service in (guarded(tmp_path, runs=False), guarded(tmp_path, kind="url")):
        await service.do(name)
        assert service.done == [name]
        assert service.queue.cancelled == []


@pytest.mark.parametrize("name", ENDING)
async def test_a_stop_of_the_engine_ends_the_run_first(tmp_path: Path, name: str) -> None:
    service = guarded(tmp_path)
    await service.do(name)
    assert service.queue.cancelled == [(RUN, "its engine was stopped by alice@pod")]
    assert service.done == [name]


async def test_a_stop_of_the_service_alone_leaves_the_run_to_go_on(tmp_path: Path) -> None:
    service = guarded(tmp_path)
    await service.do("service.stop")
    assert service.queue.cancelled == []
    await service.do("service.stop", engine="yes")
    assert [run_id for run_id, _ in service.queue.cancelled] == [RUN]


async def test_an_arm_without_speculation_is_an_engine_that_is_started_without(
    tmp_path: Path,
) -> None:
    service = guarded(tmp_path)
    restart = service.handlers.table()["run.restart"]
    await restart({"id": RUN, "speculation": "off"})
    await restart({"id": RUN, "speculation": "as-was"})
    without, before = [profile for _, profile in service.operator.served]
    assert without.speculation is not None
    assert not without.speculation.ready
    assert before == SPECULATING


async def test_a_restart_that_was_not_planned_is_refused(tmp_path: Path) -> None:
    restart = guarded(tmp_path, intrusion="shares").handlers.table()["run.restart"]
    with pytest.raises(RefusedError, match="not planned"):
        await restart({"id": RUN, "speculation": "off"})
    restart = guarded(tmp_path).handlers.table()["run.restart"]
    with pytest.raises(RefusedError, match="does not run"):
        await restart({"id": "another", "speculation": "off"})
    with pytest.raises(UsageError):
        await restart({"id": RUN, "speculation": "deeper"})
