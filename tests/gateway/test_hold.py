"""The gate's queue: first come, first served, and never more, larger or longer than it may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.hold import KEPT_BODY_BYTES, SPACING_S, AdmissionGate, HoldLimits
from a40console.gateway.refusals import Refusal
from tests.gateway.test_commitment import ScriptedLoop

LIMITS = HoldLimits(requests=3, bytes=100, seconds=60.0)


def scripted(test: Coroutine[Any, Any, None]) -> None:
    """Run it on a clock that stands while anything is to be done."""
    loop = ScriptedLoop()
    try:
        loop.run_until_complete(test)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
    finally:
        loop.close()


@dataclass
class Crowd:
    """Requests at a gate: who waits, who passed in which order, who was refused, who came back."""

    gate: AdmissionGate
    passed: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    waiting: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    back: set[int] = field(default_factory=set)
    overtook: list[int] = field(default_factory=list)

    def come(self, size: int) -> int:
        number = self.gate.number()
        self.sizes[number] = size
        self.waiting[number] = asyncio.create_task(self._enter(number))
        return number

    def lose(self, which: int) -> None:
        """One that has passed is lost with its engine, and comes again."""
        number = self.passed.pop(which % len(self.passed))
        self.gate.leave()
        self.back.add(number)
        self.waiting[number] = asyncio.create_task(self._enter(number))

    async def _enter(self, number: int) -> None:
        try:
            await self.gate.enter(self.sizes[number], number, is_back=number in self.back)
        except Refusal:
            self.refused.append(number)
        else:
            self.passed.append(number)
            if number > min(self.waiting):
                self.overtook.append(number)
        finally:
            del self.waiting[number]

    async def leave(self, number: int) -> None:
        task = self.waiting[number]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.integers(0, 60)),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("close"), st.just(0)),
        st.tuples(st.just("open"), st.just(0)),
        st.tuples(st.just("over"), st.just(0)),
        st.tuples(st.just("lose"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(1, 30)),
    ),
    max_size=40,
)


async def do(gate: AdmissionGate, crowd: Crowd, what: str, value: int) -> None:
    match what:
        case "come":
            crowd.come(value)
        case "leave" if crowd.waiting:
            await crowd.leave(sorted(crowd.waiting)[value % len(crowd.waiting)])
        case "close":
            gate.close("it is tested")
        case "open":
            gate.open()
        case "over" if crowd.passed:
            crowd.passed.pop()
            gate.leave()
        case "lose" if crowd.passed:
            crowd.lose(value)
        case "wait":
            await asyncio.sleep(value)


def check(gate: AdmissionGate, crowd: Crowd) -> None:
    new = [crowd.sizes[number] for number in crowd.waiting if number not in crowd.back]
    assert gate.held_bytes <= LIMITS.bytes
    if gate.closed is not None:
        assert (gate.waiting, gate.held_bytes) == (len(crowd.waiting), sum(new))
        assert len(new) <= LIMITS.requests
    if gate.is_free:
        assert (gate.closed, gate.waiting) == (None, 0)
    assert gate.under_way == len(crowd.passed)
    assert not crowd.overtook


@given(STEPS)
def test_43_whatever_comes_the_queue_is_bounded_and_in_order(steps: list[Step]) -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        for what, value in steps:
            await do(gate, crowd, what, value)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            check(gate, crowd)
        gate.open()
        await asyncio.sleep(1)
        assert gate.is_free
        assert (gate.waiting, gate.held_bytes) == (0, 0)
        assert not crowd.waiting

    scripted(play())


def test_who_comes_back_finds_room_before_the_others_and_takes_none_of_theirs() -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        first, second = crowd.come(90), crowd.come(90)
        await asyncio.sleep(0)
        gate.close("the engine is started again")
        later = [crowd.come(30) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(2):
            crowd.lose(-1)
        await asyncio.sleep(0)
        assert (gate.waiting, gate.held_bytes, gate.under_way, crowd.refused) == (5, 90, 0, [])
        with pytest.raises(Refusal, match="3 requests"):
            gate.check_room(1)
        gate.open()
        await asyncio.sleep(1)
        assert crowd.passed == [first, second, *later]

    scripted(play())


def test_what_is_kept_for_a_second_sending_is_bounded_as_what_is_held() -> None:
    gate = AdmissionGate(LIMITS)
    assert gate.keep(60)
    assert not gate.keep(41)
    assert gate.keep(40)
    gate.let_body_go(60)
    assert gate.keep(60)
    assert not AdmissionGate().keep(KEPT_BODY_BYTES + 1)


def test_who_waits_goes_in_order_a_moment_apart_and_nobody_overtakes() -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        gate.close("the engine is switched")
        for _ in range(3):
            crowd.come(10)
        await asyncio.sleep(40)
        assert (gate.waiting, gate.held_bytes, gate.under_way) == (3, 30, 0)
        now = asyncio.get_running_loop().time
        began_s = now()
        gate.open()
        await asyncio.sleep(0)
        assert crowd.passed == [0]
        late = crowd.come(10)
        await asyncio.gather(*crowd.waiting.values())
        assert crowd.passed == [0, 1, 2, late]
        assert now() - began_s == pytest.approx(3 * SPACING_S, abs=SPACING_S / 5)
        assert gate.is_free
        assert gate.under_way == 4

    scripted(play())


def test_a_gate_that_closes_again_keeps_those_who_have_not_gone_yet() -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        gate.close("one")
        for _ in range(3):
            crowd.come(10)
        await asyncio.sleep(1)
        gate.open()
        await asyncio.sleep(0)
        gate.close("two")
        await asyncio.sleep(30)
        assert (crowd.passed, sorted(crowd.waiting), gate.closed) == ([0], [1, 2], "two")
        gate.open()
        await asyncio.sleep(1)
        assert crowd.passed == [0, 1, 2]

    scripted(play())


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (60, 41)])
def test_who_finds_no_room_is_told_at_once(sizes: tuple[int, ...]) -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        gate.close("the engine is switched to b")
        for size in sizes:
            crowd.come(size)
        await asyncio.sleep(0)
        assert crowd.refused == [len(sizes) - 1]
        with pytest.raises(Refusal, match=r"holds requests while the engine is switched to b, as"):
            gate.check_room(sizes[-1])
        with pytest.raises(Refusal) as refused:
            await gate.enter(sizes[-1])
        assert (refused.value.status, refused.value.retry_after_s) == (529, 10)
        await crowd.leave(0)
        gate.check_room(sizes[-1])

    scripted(play())


def test_nobody_waits_longer_than_may_be() -> None:
    async def play() -> None:
        gate = AdmissionGate(LIMITS)
        crowd = Crowd(gate)
        gate.close("it is tested")
        crowd.come(10)
        await asyncio.sleep(30)
        crowd.come(10)
        await asyncio.sleep(31)
        assert crowd.refused == [0]
        assert (gate.waiting, gate.held_bytes) == (1, 10)

    scripted(play())


def test_without_room_for_any_nothing_is_held() -> None:
    async def play() -> None:
        gate = AdmissionGate(HoldLimits(requests=0))
        gate.close("it is tested")
        for is_back in (False, True):
            with pytest.raises(Refusal):
                await gate.enter(1, is_back=is_back)

    scripted(play())


def test_drained_when_the_last_one_is_over_or_the_time_is_up() -> None:
    async def play() -> None:
        now = asyncio.get_running_loop().time
        gate = AdmissionGate(LIMITS)
        assert await gate.drained(5) == 0
        await gate.enter(1)
        await gate.enter(1)
        gate.close("the engine is switched")
        crowd = Crowd(gate)
        crowd.come(5)
        asyncio.get_running_loop().call_later(2, gate.leave)
        began_s = now()
        assert await gate.drained(5) == 1
        assert now() - began_s == 5
        asyncio.get_running_loop().call_later(2, gate.leave)
        assert await gate.drained(60) == 0
        assert now() - began_s == 7
        gate.open()
        await asyncio.sleep(1)
        assert (crowd.passed, gate.under_way) == ([0], 1)

    scripted(play())
