"""Slots add up to the engine's counter over the same window, whatever the requests do."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.model.figures import Missing, number
from a40console.model.request import GatewayRow
from a40console.model.snapshot import Slot
from a40console.telemetry.view import EngineView
from tests.telemetry.engines import Request, SimulatedEngine, poll, sampler_of
from tests.telemetry.makers import Clock, gateway_row, json_answer, steady

requests = st.lists(
    st.builds(
        Request,
        id=st.uuids().map(str),
        arrives_s=st.floats(min_value=0, max_value=20),
        prefill_s=st.floats(min_value=0, max_value=4),
        rate=st.floats(min_value=1, max_value=300),
        tokens=st.integers(min_value=2, max_value=900),
        pass_tokens=st.integers(min_value=1, max_value=18),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda request: request.id,
)
pauses = st.lists(st.floats(min_value=0.1, max_value=2.5), min_size=3, max_size=20)


def slots_of(view: EngineView) -> tuple[Slot, ...]:
    assert not isinstance(view.slots, Missing)
    return view.slots


def slots_sum(view: EngineView) -> float:
    return sum(number(slot.window_tokens_per_s) or 0.0 for slot in slots_of(view))


@settings(max_examples=60, deadline=None)
@given(requests, pauses)
def test_with_the_plugin_slots_and_ended_requests_are_the_counters_rate(
    simulated: list[Request], waits: list[float]
) -> None:
    async def run() -> None:
        clock = Clock()
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        sampler = sampler_of(engine, plugin=True)
        for wait_s in waits:
            clock.now_s += wait_s
            await poll(sampler)
            view = sampler.view((), ())
            rate = number(view.throughput.generation_tokens_per_s)
            if rate is None:
                continue
            whole = slots_sum(view) + (number(view.ended_tokens_per_s) or 0.0)
            assert whole == pytest.approx(rate, abs=1e-6)
            for slot in slots_of(view):
                own = (slot.tokens_per_s, slot.passes_per_s, slot.tokens_per_pass)
                fast, passes, each = map(number, own)
                if fast is not None and passes and each is not None:
                    assert passes * each == pytest.approx(fast)
                assert (fast is None) or (slot.phase == "decode" and fast >= 0)

    asyncio.run(run())


def test_a_steady_load_is_within_one_percent_of_the_counter_over_ten_seconds() -> None:
    async def run() -> None:
        clock = Clock()
        simulated = [
            Request("a", 0.0, 0.5, 97.3, 100_000, pass_tokens=4),
            Request("b", 1.3, 0.7, 41.9, 100_000),
            Request("c", 2.1, 1.9, 133.0, 100_000, pass_tokens=7),
        ]
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        sampler = sampler_of(engine, plugin=True)
        sums = []
        for _ in range(20):
            clock.now_s += 1.0
            await poll(sampler)
            sums.append(slots_sum(sampler.view((), ())))
        counted = engine.generated(20.0) - engine.generated(10.0)
        assert (sums[14] + sums[19]) / 2 == pytest.approx(counted / 10, rel=0.01)
        for slot, request in zip(slots_of(sampler.view((), ())), simulated, strict=True):
            assert number(slot.tokens_per_s) == pytest.approx(request.rate, rel=0.02)
            assert number(slot.tokens_per_pass) == pytest.approx(request.pass_tokens, rel=0.01)

    asyncio.run(run())


@pytest.mark.parametrize("plugin", [True, False])
@settings(max_examples=40, deadline=None)
@given(simulated=requests, waits=pauses, read=st.lists(st.booleans(), min_size=20, max_size=20))
def test_what_each_view_adds_is_the_tokens_since_the_view_before(
    plugin: bool, simulated: list[Request], waits: list[float], read: list[bool]
) -> None:
    async def run() -> None:
        clock = Clock()
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        sampler = sampler_of(engine, plugin=plugin)
        await poll(sampler)
        sampler.view((), ())
        added = 0.0
        for wait_s, is_read in zip(waits, read, strict=False):
            clock.now_s += wait_s
            if is_read:
                await poll(sampler)
            latest = sampler.view((), ()).latest_throughput
            assert latest.window_s > 0 if is_read else latest.window_s == 0
            added += (number(latest.generation_tokens_per_s) or 0.0) * latest.window_s
            if is_read:
                assert added == pytest.approx(engine.generated(engine.now_s()), abs=1e-6)

    asyncio.run(run())


class GatewayOf:
    """The gateway's rows of simulated requests, at an instant."""

    def __init__(self, engine: SimulatedEngine, *, exact: set[str], streamed: set[str]) -> None:
        self.engine, self.exact, self.streamed = engine, exact, streamed

    def rows(self, *, ended: bool) -> list[GatewayRow]:
        now_s, born_s = self.engine.now_s(), self.engine.born_s
        rows = []
        for request in self.engine.requests:
            known = request.id in self.exact | self.streamed
            over = request.ends_s <= now_s
            if not known or request.arrives_s > now_s or over is not ended:
                continue
            emitted = request.emitted(now_s)
            first_s = born_s + request.first_s if emitted else None
            if request.id in self.exact and emitted:
                row = steady(
                    request.id,
                    rate=request.rate,
                    since_s=born_s + request.first_s,
                    now_s=min(born_s + request.ends_s, born_s + now_s),
                )
            else:
                row = gateway_row(
                    request.id,
                    received_at_s=born_s + request.arrives_s,
                    sent_at_s=born_s + request.arrives_s,
                    first_token_at_s=first_s,
                    characters=4 * emitted,
                )
            rows.append(row)
        return rows


def test_without_the_plugin_characters_share_what_exact_rows_leave() -> None:
    async def run() -> None:
        clock = Clock()
        simulated = [
            Request("exact", 0.0, 0.5, 60.0, 100_000),
            Request("slow", 0.0, 0.5, 20.0, 100_000),
            Request("fast", 0.0, 0.5, 80.0, 100_000),
        ]
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        gateway = GatewayOf(engine, exact={"exact"}, streamed={"slow", "fast"})
        sampler = sampler_of(engine)
        for _ in range(12):
            clock.now_s += 1.0
            await poll(sampler)
            view = sampler.view(gateway.rows(ended=False), ())
        by_id = {slot.request_id: slot for slot in slots_of(view)}
        assert set(by_id) == {"exact", "slow", "fast"}
        assert by_id["exact"].method == "usage"
        assert by_id["slow"].method == by_id["fast"].method == "apportioned"
        for name, rate in (("exact", 60), ("slow", 20), ("fast", 80)):
            assert number(by_id[name].tokens_per_s) == pytest.approx(rate, rel=0.03)
            assert not by_id[name].direct
        assert slots_sum(view) == pytest.approx(
            number(view.throughput.generation_tokens_per_s), rel=0.01
        )
        assert number(by_id["fast"].generated_tokens) == pytest.approx(
            engine.requests[2].emitted(12.0), rel=0.05
        )

    asyncio.run(run())


def test_what_no_gateway_row_explains_is_one_direct_row() -> None:
    async def run() -> None:
        clock = Clock()
        simulated = [
            Request("ours", 0.0, 0.5, 60.0, 100_000),
            Request("theirs", 0.0, 0.5, 40.0, 100_000),
            Request("also theirs", 0.0, 0.5, 30.0, 100_000),
        ]
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        gateway = GatewayOf(engine, exact={"ours"}, streamed=set())
        sampler = sampler_of(engine)
        for _ in range(12):
            clock.now_s += 1.0
            await poll(sampler)
            view = sampler.view(gateway.rows(ended=False), ())
        ours, rest = slots_of(view)
        assert (ours.request_id, ours.direct, rest.direct) == ("ours", False, True)
        assert number(rest.tokens_per_s) == pytest.approx(70, rel=0.02)
        assert rest.method == "apportioned"
        assert isinstance(rest.generated_tokens, Missing)
        assert slots_sum(view) == pytest.approx(
            number(view.throughput.generation_tokens_per_s), rel=0.001
        )

    asyncio.run(run())


def test_without_a_counter_exact_rows_keep_their_speed_and_the_others_say_why() -> None:
    async def run() -> None:
        clock = Clock()
        simulated = [
            Request("exact", 0.0, 0.5, 60.0, 100_000),
            Request("rough", 0.0, 0.5, 20.0, 100_000),
        ]
        engine = SimulatedEngine(clock, simulated, born_s=clock.now_s)
        engine.overrides["/metrics"] = httpx.Response(500)
        gateway = GatewayOf(engine, exact={"exact"}, streamed={"rough"})
        sampler = sampler_of(engine)
        for _ in range(8):
            clock.now_s += 1.0
            await poll(sampler)
            view = sampler.view(gateway.rows(ended=False), ())
        exact, rough = slots_of(view)
        assert number(exact.tokens_per_s) == pytest.approx(60, rel=0.02)
        assert isinstance(exact.passes_per_s, Missing)
        assert isinstance(rough.tokens_per_s, Missing)
        assert "cannot be read" in rough.tokens_per_s.reason
        assert rough.window_tokens_per_s == rough.tokens_per_s
        assert isinstance(rough.generated_tokens, Missing)

    asyncio.run(run())


def test_what_ended_beside_the_gateway_belongs_to_no_slot() -> None:
    async def run() -> None:
        clock = Clock()
        engine = SimulatedEngine(
            clock,
            [Request("ours", 0.0, 0.5, 60.0, 100_000), Request("theirs", 0.0, 0.5, 60.0, 400)],
            born_s=clock.now_s,
        )
        gateway = GatewayOf(engine, exact={"ours"}, streamed=set())
        sampler = sampler_of(engine)
        for _ in range(9):
            clock.now_s += 1.0
            await poll(sampler)
            view = sampler.view(gateway.rows(ended=False), ())
        assert [slot.direct for slot in slots_of(view)] == [False]
        whole = slots_sum(view) + (number(view.ended_tokens_per_s) or 0.0)
        assert whole == pytest.approx(number(view.throughput.generation_tokens_per_s), rel=0.01)

    asyncio.run(run())


def test_without_direct_traffic_there_is_no_direct_row() -> None:
    async def run() -> None:
        clock = Clock()
        engine = SimulatedEngine(clock, [Request("ours", 0.0, 0.5, 60.0, 400)], born_s=clock.now_s)
        gateway = GatewayOf(engine, exact={"ours"}, streamed=set())
        sampler = sampler_of(engine)
        for _ in range(15):
            clock.now_s += 1.0
            await poll(sampler)
            view = sampler.view(gateway.rows(ended=False), gateway.rows(ended=True))
            assert not any(slot.direct for slot in slots_of(view))

    asyncio.run(run())


def test_a_failed_plugin_hands_over_to_the_gateways_counts() -> None:
    async def run() -> None:
        clock = Clock()
        engine = SimulatedEngine(
            clock,
            [Request("ours", 0.0, 0.5, 60.0, 100_000, external_id="chatcmpl-a40-0123")],
            born_s=clock.now_s,
        )
        sampler = sampler_of(engine, plugin=True)

        def row() -> GatewayRow:
            return steady("a40-0123", rate=60.0, since_s=1000.5, now_s=clock.now_s)

        for second in range(24):
            clock.now_s += 1.0
            if second == 12:
                state = engine.state(engine.now_s(), 0) | {"disabled": "vLLM changed"}
                engine.overrides["/a40console/v1/state"] = json_answer(state)
            await poll(sampler)
            view = sampler.view([row()], ())
            (slot,) = slots_of(view)
            assert not slot.direct
            assert slot.request_id == "a40-0123"
            assert slot.method == ("engine" if second < 12 else "usage")
            assert view.plugin_counts is (second < 12)
            if second >= 6:
                assert number(slot.tokens_per_s) == pytest.approx(60, rel=0.02)
        plugin = next(source for source in view.sources if source.name == "vllm.plugin")
        assert plugin.state == "failed"
        assert plugin.reason == "the plugin disabled itself: vLLM changed"

    asyncio.run(run())
