"""Slots out of the plugin's rows: joined to the gateway's by id, seated, ended, timed."""

from __future__ import annotations

import pytest

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.instants import iso_utc
from a40console.model.request import SharedPrompt
from a40console.model.snapshot import Slot
from a40console.telemetry.view import EngineView
from tests.telemetry.engines import Events, Request, SimulatedEngine, poll, sampler_of
from tests.telemetry.makers import Clock, gateway_row


def engine_of(*requests: Request) -> SimulatedEngine:
    clock = Clock()
    return SimulatedEngine(clock, list(requests), born_s=clock.now_s)


def slots_of(view: EngineView) -> dict[str, Slot]:
    assert not isinstance(view.slots, Missing)
    return {slot.request_id: slot for slot in view.slots}


async def test_engine_rows_are_joined_to_the_gateways_by_the_id_we_sent() -> None:
    engine = engine_of(
        Request("chatcmpl-a40-0a-1f2e3d4c", 0.0, 0.4, 50.0, 5000, "chatcmpl-a40-0a"),
        Request("cmpl-a40-0b-0-1f2e3d4c", 0.0, 0.4, 50.0, 5000, "cmpl-a40-0b-0"),
        Request("cmpl-a40-0b-1-1f2e3d4c", 0.0, 0.4, 50.0, 5000, "cmpl-a40-0b-1"),
        Request("chatcmpl-other", 0.0, 0.4, 50.0, 5000, "chatcmpl-other", max_tokens=7),
    )
    sampler = sampler_of(engine, plugin=True)
    ours = {"received_at_s": 999.9, "sent_at_s": 999.9, "first_token_at_s": 1000.45}
    rows = [
        gateway_row("a40-0a", client="claude-code", session="7f3a", agent="main", **ours),
        gateway_row("a40-0b", route="completions", **ours),
        gateway_row("a40-0c", received_at_s=1002.0, sent_at_s=None),
        gateway_row("a40-0d", received_at_s=1002.9, sent_at_s=1002.95),
    ]
    for _ in range(3):
        engine.clock.now_s += 1
        await poll(sampler)
        view = sampler.view(rows, ())
    slots = slots_of(view)
    assert set(slots) == {"a40-0a", "a40-0b", "a40-0b-1", "a40-0c", "a40-0d", "chatcmpl-other"}
    chat, direct = slots["a40-0a"], slots["chatcmpl-other"]
    assert (chat.method, chat.direct, chat.session, chat.agent) == ("engine", False, "7f3a", "main")
    assert chat.ttft_s == pytest.approx(0.55)
    assert chat.age_s == pytest.approx(3.1)
    assert (direct.method, direct.direct, direct.max_tokens) == ("engine", True, 7)
    assert direct.session == Missing("not sent through the gateway")
    assert direct.ttft_s == pytest.approx(0.4)
    assert (slots["a40-0c"].phase, slots["a40-0d"].phase) == ("held", "queued")
    assert slots["a40-0c"].generated_tokens == 0
    assert slots["a40-0c"].tokens_per_s == Missing("held at the gateway")
    assert chat.reread_tokens == Missing("its prompt is not outlined")
    assert chat.prefill_ratio == Missing("not in prefill")


async def test_what_a_session_reads_again_is_told_of_its_slot() -> None:
    engine = engine_of(Request("chatcmpl-a40-0a-1f2e", 0.0, 0.1, 50.0, 5000, "chatcmpl-a40-0a"))
    sampler = sampler_of(engine, plugin=True)
    engine.clock.now_s += 1
    await poll(sampler)
    at = {"received_at_s": 999.9, "sent_at_s": 999.9, "first_token_at_s": 1000.2}

    def reread(shared: SharedPrompt | None) -> Figure:
        row = gateway_row("a40-0a", shared=shared, **at)
        slot = slots_of(sampler.view([row], ()))["a40-0a"]
        assert (slot.prompt_tokens, slot.cached_tokens) == (100, 0)
        return slot.reread_tokens

    assert reread(SharedPrompt(90.0, 0.0, exact=True)) == 90
    assert reread(SharedPrompt(90.4, 30.0, exact=False)) == Estimated(90)
    assert reread(SharedPrompt(500.0, 0.0, exact=True)) == 100
    assert reread(SharedPrompt(0.0, 0.0, exact=True)) == 0
    assert reread(None) == Missing("its prompt is not outlined")


async def test_before_the_engine_tells_what_must_be_read_again_is_an_estimate() -> None:
    engine = engine_of()
    sampler = sampler_of(engine, plugin=True)
    await poll(sampler)
    lost = gateway_row("a40-0a", sent_at_s=999.0, shared=SharedPrompt(9000.0, 4000.4, exact=False))
    none = gateway_row("a40-0b", sent_at_s=999.0, shared=SharedPrompt(9000.0, 0.0, exact=True))
    slots = slots_of(sampler.view([lost, none], ()))
    assert slots["a40-0a"].reread_tokens == Estimated(4000)
    assert slots["a40-0b"].reread_tokens == Missing("known with the first token")


async def test_the_engines_own_rows_go_by_our_request_ids() -> None:
    engine = engine_of(
        Request("chatcmpl-a40-0a-1f2e", 0.0, 0.1, 50.0, 5000, "chatcmpl-a40-0a"),
        Request("chatcmpl-other", 0.0, 0.1, 50.0, 5000, "chatcmpl-other"),
    )
    sampler = sampler_of(engine, plugin=True)
    engine.clock.now_s += 1
    await poll(sampler)
    told = sampler.view([gateway_row("a40-0a", sent_at_s=999.9)], ()).told
    assert set(told) == {"a40-0a"}
    assert told["a40-0a"].prompt_tokens == 100


async def test_a_token_that_the_gateway_saw_after_the_reading_ends_the_prefill() -> None:
    engine = engine_of(Request("r", 0.0, 1.05, 50.0, 5000, "chatcmpl-a40-0a"))
    sampler = sampler_of(engine, plugin=True)
    for second in (0.5, 1.0):
        engine.clock.now_s = 1000.0 + second
        await poll(sampler)
    engine.clock.now_s = 1001.2
    row = gateway_row("a40-0a", received_at_s=1000.0, first_token_at_s=1001.1)
    slot = slots_of(sampler.view([row], ()))["a40-0a"]
    assert slot.phase == "decode"
    assert slot.tokens_per_s == Missing("just began")
    assert slot.window_tokens_per_s == 0


async def test_a_request_keeps_its_seat_while_it_lives() -> None:
    engine = engine_of(
        Request("a", 0.0, 0.1, 50.0, 60),
        Request("b", 0.1, 0.1, 50.0, 5000),
        Request("c", 2.5, 0.1, 50.0, 5000),
    )
    sampler = sampler_of(engine, plugin=True)
    seats = []
    for _ in range(4):
        engine.clock.now_s += 1
        await poll(sampler)
        seats.append({name: slot.slot for name, slot in slots_of(sampler.view((), ())).items()})
    assert seats == [{"a": 0, "b": 1}, {"b": 1}, {"b": 1, "c": 0}, {"b": 1, "c": 0}]


async def test_finished_requests_move_to_recent_newest_first_and_at_most_twenty() -> None:
    engine = engine_of(
        *(
            Request(f"r{number}", 0.2 * number, 0.1, 100.0, 11, f"chatcmpl-a40-{number:02x}")
            for number in range(30)
        )
    )
    sampler = sampler_of(engine, plugin=True)
    for _ in range(8):
        engine.clock.now_s += 1
        await poll(sampler)
        sampler.view((), ())
    finished = [
        gateway_row(
            f"a40-{number:02x}",
            ended_at_s=1000.4 + 0.2 * number,
            ended_at=iso_utc(engine.unix_apart_s + 1000.4 + 0.2 * number),
            received_at_s=1000.0 + 0.2 * number,
            first_token_at_s=1000.1 + 0.2 * number,
            generated_tokens=11,
            method="usage",
            finish_reason="tool_use",
            session="7f3a",
        )
        for number in range(29)
    ]
    recent = sampler.view((), finished).recent
    assert len(recent) == 20
    assert [request.ended_at for request in recent] == sorted(
        (request.ended_at for request in recent), reverse=True
    )
    ours = next(request for request in recent if request.request_id == "a40-1c")
    assert (ours.finish_reason, ours.generated_tokens, ours.session) == ("tool_use", 11, "7f3a")
    assert ours.ttft_s == pytest.approx(0.1)
    assert number(ours.tokens_per_s) == pytest.approx(100)
    assert len({request.request_id for request in recent}) == 20
    (lost,) = (request for request in recent if request.request_id == "chatcmpl-a40-1d")
    assert lost.session == Missing("sent through the gateway, which has no record of it any more")


async def test_a_request_that_ended_at_the_gateway_is_no_slot_any_more() -> None:
    engine = engine_of(Request("r", 0.0, 0.1, 50.0, 100_000, "chatcmpl-a40-0a"))
    sampler = sampler_of(engine, plugin=True)
    for _ in range(3):
        engine.clock.now_s += 1
        await poll(sampler)
    gone = gateway_row("a40-0a", ended_at_s=1003.1, finish_reason="aborted")
    assert slots_of(sampler.view((), [gone])) == {}
    for _ in range(5):  # the engine goes on for nobody: that must be seen
        engine.clock.now_s += 1
        await poll(sampler)
    left = slots_of(sampler.view((), [gone]))["a40-0a"]
    assert not left.direct
    assert number(left.tokens_per_s) == pytest.approx(50, rel=0.02)


async def test_tokens_of_the_plugin_are_shown_with_their_own_passes() -> None:
    engine = engine_of(Request("r", 0.0, 0.1, 90.0, 100_000, pass_tokens=18))
    sampler = sampler_of(engine, plugin=True, events=Events())
    for _ in range(8):
        engine.clock.now_s += 1
        await poll(sampler)
    view = sampler.view((), ())
    slot = slots_of(view)["r"]
    assert number(slot.passes_per_s) == pytest.approx(5, rel=0.05)
    assert slot.tokens_per_pass == pytest.approx(18)
    assert number(view.throughput.passes_per_s) == pytest.approx(5, rel=0.05)
    assert number(view.throughput.sequences_per_pass) == pytest.approx(1, rel=0.01)
    assert number(view.speculation.tokens_per_pass) == pytest.approx(18, rel=0.01)
    assert view.throughput.source == "vllm.plugin"


async def test_an_ended_request_tells_its_phases_as_the_engine_measured_them() -> None:
    engine = engine_of(Request("r", 0.0, 0.25, 50.0, 20, "chatcmpl-a40-0a"))
    sampler = sampler_of(engine, plugin=True)
    for _ in range(4):
        engine.clock.now_s += 1
        await poll(sampler)
    row = gateway_row(
        "a40-0a",
        received_at_s=999.5,
        sent_at_s=1000.0,
        first_token_at_s=1000.25,
        last_token_at_s=1000.65,
        ended_at_s=1000.7,
        ended_at=iso_utc(engine.unix_apart_s + 1000.7),
        client="claude-code",
        model="qwen",
    )
    [told] = sampler.view((), [row]).recent
    assert (told.client, told.model) == ("claude-code", "qwen")
    assert told.queue_s == pytest.approx(0.5 + 0.02), "held at the gateway, and in the engine"
    assert told.prefill_s == pytest.approx(0.23)
    assert number(told.decode_s) == pytest.approx(0.4, abs=0.03)


async def test_without_the_plugin_nobody_tells_when_a_request_was_begun() -> None:
    engine = engine_of(Request("r", 0.0, 0.25, 50.0, 20, "chatcmpl-a40-0a"))
    sampler = sampler_of(engine)
    engine.clock.now_s += 4
    await poll(sampler)
    sent = gateway_row(
        "a40-0a",
        received_at_s=999.5,
        sent_at_s=1000.0,
        first_token_at_s=1000.25,
        last_token_at_s=1000.65,
        ended_at_s=1000.7,
        ended_at="2026-11-29T14:00:02.000Z",
    )
    held = gateway_row(
        "a40-0b",
        received_at_s=999.5,
        sent_at_s=None,
        first_token_at_s=None,
        ended_at_s=1000.5,
        ended_at="2026-11-29T14:00:01.000Z",
    )
    told, given_up = sampler.view((), [sent, held]).recent
    unknown = Missing("only our plugin in vLLM tells when a request was begun")
    assert (told.queue_s, told.prefill_s) == (unknown, unknown)
    assert number(told.decode_s) == pytest.approx(0.4)
    assert given_up.queue_s == pytest.approx(1.0)
    assert given_up.prefill_s == Missing("it was never sent to the engine")
    assert isinstance(given_up.decode_s, Missing)
