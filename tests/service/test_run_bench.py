"""How far a run is, as its process tells it."""

from __future__ import annotations

from typing import Any, Self

import pytest

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.run import RunProgress, RunTarget
from a40console.model.run_record import Progressed, Record
from a40console.service import run_bench
from a40console.service.run_bench import Around, Job, RunBench
from a40console.service.run_stop import Limits, RunStop


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def bench(clock: Clock, records: list[Record], around: Around | None = None) -> RunBench:
    unused: Any = None
    target = RunTarget()
    return RunBench(
        client=unused,
        engine=unused,
        around=around or unused,
        append=records.append,
        stop=RunStop(asked=lambda: None, limits=Limits(), clock=clock),
        job=Job(target=target, model="m", settled={}, seed=1, usd_per_h=3.6),
    )


def progress(records: list[Record]) -> RunProgress:
    last = records[-1]
    assert isinstance(last, Progressed)
    return last.progress


async def test_what_is_left_is_told_by_the_steps_and_not_by_the_warm_up(clock: Clock) -> None:
    records: list[Record] = []
    made = bench(clock, records)
    clock.now_s += 120  # warming up, which is no step
    await made.step("block", 0, 30, "turn 1 of 30")
    assert progress(records).eta_s == Missing("no step is done yet")
    clock.now_s += 10
    await made.step("block", 2, 30, "turn 3 of 30")
    assert progress(records).eta_s == Estimated(140.0)
    assert progress(records).elapsed_s == 130.0
    assert progress(records).usd == pytest.approx(0.13)
    clock.now_s += 140
    await made.step("block", 30, 30, "ended")
    assert progress(records).eta_s == Estimated(0.0)


async def test_steps_within_a_moment_are_told_once_but_an_arms_first_and_the_last(
    clock: Clock,
) -> None:
    records: list[Record] = []
    made = bench(clock, records)
    for arm, done in (("a", 0), ("a", 1), ("a", 2), ("b", 3), ("b", 4)):
        clock.now_s += 0.01
        await made.step(arm, done, 4, "turn")
    told = [record.progress.done for record in records if isinstance(record, Progressed)]
    assert told == [0, 3, 4]


class Looks:
    """Counters, machine and the client's own load: notes when each is looked at."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def settled(self) -> dict[str, Figure]:
        self.seen.append("counters")
        return {}

    def mark(self) -> None:
        self.seen.append("machine")

    def figures(self) -> dict[str, Figure]:
        return {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        pass


async def test_the_clients_load_is_watched_during_the_arm_alone(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds until the counters rest are idle ones: with them any client looks at ease."""
    looks: Any = Looks()

    class Load(Looks):
        async def __aenter__(self) -> Self:
            looks.seen.append("load begins")
            return self

        async def __aexit__(self, *unused: object) -> None:
            looks.seen.append("load ends")

    monkeypatch.setattr(run_bench, "LoadHealth", Load)
    made = bench(clock, [], Around(counters=lambda: looks, machine=looks))
    async with made.arm("a", 0):
        looks.seen.append("arm")
    assert looks.seen == ["counters", "load begins", "machine", "arm", "load ends", "counters"]
