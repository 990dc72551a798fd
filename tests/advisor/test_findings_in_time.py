"""Findings over time: when they are told, how long they stay, and that they do not flap."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a40console.advisor.advice import FindingClock, advise
from a40console.advisor.evidence import Evidence
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.snapshot import SourceStatus
from tests.advisor.scenes import END, Scene


class Watch:
    """One clock that looks at scenes at given times."""

    def __init__(self, scene: Scene, **clock: float) -> None:
        self._scene = scene
        self._clock = FindingClock(**clock)

    def at(self, second: float, **blocks: object) -> list[Finding]:
        snapshot = replace(self._scene(**blocks), at=f"t{second:g}", monotonic_s=second)
        return list(advise(snapshot, Evidence(), self._clock)[1])


FULL = {"held_ratio": 0.99}
BROKEN = (SourceStatus(name="vllm.metrics", state="failed", age_s=40.0, reason="HTTP 500"),)


def test_a_finding_keeps_the_time_it_began(scene: Scene) -> None:
    watch = Watch(scene, forget_after_s=30.0)
    failed = {"state": EngineState.FAILED, "exit": END}

    def since(second: float, **blocks: object) -> list[str]:
        return [finding.since for finding in watch.at(second, **blocks)]

    assert since(100, engine=failed, gpus=()) == ["t100"], "a state is told at once"
    assert since(101, engine=failed, gpus=()) == ["t100"]
    assert since(102) == [], "and gone at once"
    assert since(110, engine=failed, gpus=()) == ["t100"], "it only flickered"
    assert since(139) == []
    assert since(141, engine=failed, gpus=()) == ["t141"], "this is another one"


def test_a_source_that_fails_for_a_second_or_two_is_no_finding(scene: Scene) -> None:
    watch = Watch(scene)
    for second in range(100, 160):
        blocks = {"sources": BROKEN} if second % 10 < 3 else {}
        assert watch.at(second, **blocks) == []
    told = [bool(watch.at(second, sources=BROKEN)) for second in range(200, 205)]
    assert told == [False, False, False, True, True]


def test_a_level_is_told_when_it_holds_and_stays_for_a_while(scene: Scene) -> None:
    watch = Watch(scene)
    assert watch.at(100, kv_cache=FULL) == []
    assert watch.at(102, kv_cache=FULL) == []
    [found] = watch.at(103, kv_cache=FULL)
    assert (found.code, found.since) == ("kv-full", "t100")
    assert found.evidence.startswith("99 % held")
    [kept] = watch.at(107)
    assert kept.evidence.endswith("last seen 4 s ago"), "it does not flap"
    [back] = watch.at(108, kv_cache=FULL)
    assert "last seen" not in back.evidence
    assert watch.at(119) == []
    assert watch.at(120, kv_cache=FULL) == [], "and must hold again"


def test_single_seconds_of_a_level_are_never_told(scene: Scene) -> None:
    watch = Watch(scene)
    for second in range(100, 160):
        blocks = {"kv_cache": FULL} if second % 5 == 0 else {}
        assert watch.at(second, **blocks) == []


def test_a_level_of_an_engine_that_ended_does_not_stay(scene: Scene) -> None:
    watch = Watch(scene)
    for second in range(100, 105):
        shown = watch.at(second, kv_cache=FULL)
    assert [finding.code for finding in shown] == ["kv-full"]
    assert watch.at(105, engine={"state": EngineState.STOPPED}) == []


@given(pattern=st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_level_never_changes_twice_within_its_delays(scene: Scene, pattern: list[bool]) -> None:
    watch = Watch(scene)
    told = [
        bool(watch.at(100 + second, kv_cache=FULL if full else {"held_ratio": 0.1}))
        for second, full in enumerate(pattern)
    ]
    edges = [i for i in range(1, len(told)) if told[i] is not told[i - 1]]
    for first, second in pairwise(edges):
        assert second - first >= 3


def test_advice_without_memory_dates_findings_now(scene: Scene) -> None:
    limit, [finding] = advise(scene(kv_cache={"held_ratio": 0.99}), Evidence())
    assert finding.since == "2026-11-29T14:07:31.120Z"
    assert limit.cause == "unknown"
