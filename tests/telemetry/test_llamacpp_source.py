"""llama.cpp: a recording of a real server replayed, the sleep trap, the shapes of answers."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.model.figures import Estimated, Missing, number
from a40console.model.request import GatewayRow, TokenMark
from a40console.telemetry.fetch import Answer, EngineHttp, SourceError
from a40console.telemetry.llamacpp import LlamaCppSource, decode_slots
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.engines import Events, poll
from tests.telemetry.llamacpp_replay import (
    RECORDING,
    Replay,
    Server,
    at,
    counter,
    metrics_text,
    slots_of,
)
from tests.telemetry.makers import Clock, gateway_row, json_answer, metrics_answer, routes, text_of


async def test_the_live_counter_never_falls_and_slots_add_up_to_its_rate() -> None:
    replay = Replay()
    for index in range(len(RECORDING)):
        await replay.to(index)
        view = replay.view()
        assert view.generated_tokens == counter(index)
        rate = number(view.throughput.generation_tokens_per_s)
        if rate is None:
            continue
        whole = sum(number(slot.window_tokens_per_s) or 0.0 for slot in slots_of(view))
        assert whole + (number(view.ended_tokens_per_s) or 0.0) == pytest.approx(rate, abs=1e-9)
    assert view.generated_tokens == 743
    assert replay.events == []


async def test_over_ten_seconds_the_rates_are_the_counters() -> None:
    replay = Replay()
    windows: dict[int, float] = {}
    for index in range(len(RECORDING)):
        await replay.to(index)
        windows[index] = number(replay.view().throughput.generation_tokens_per_s) or 0.0
    middle, end = at(8.0), at(13.0)
    begin_s = RECORDING[middle]["at_s"] - 5
    counted = counter(end) - counter(at(begin_s))
    span_s = RECORDING[end]["at_s"] - begin_s
    assert (windows[middle] + windows[end]) / 2 == pytest.approx(counted / span_s, rel=0.01)


async def test_phases_prompts_and_passes_as_the_slots_tell_them() -> None:
    replay = Replay()
    for index in range(at(5.0) + 1):
        await replay.to(index)
    prefill = slots_of(replay.view())
    assert [slot.phase for slot in prefill] == ["prefill"] * 3
    assert [slot.slot for slot in prefill] == [1, 2, 3]
    assert all(slot.tokens_per_s == Missing("in prefill") for slot in prefill)
    assert prefill[1].prompt_tokens == Missing("known with the first token")
    for index in range(at(5.0) + 1, at(10.0) + 1):
        await replay.to(index)
    view = replay.view()
    slots = slots_of(view)
    assert [slot.prompt_tokens for slot in slots] == [84, 1124, 44]
    assert [slot.cached_tokens for slot in slots] == [38, 0, 43]
    assert [slot.max_tokens for slot in slots] == [120, 150, 200]
    for slot in slots:
        assert slot.direct
        assert slot.method == "engine"
        assert isinstance(slot.passes_per_s, Estimated)
        assert number(slot.tokens_per_pass) == pytest.approx(1.0, rel=0.02)
    assert view.throughput.sequences_per_pass == pytest.approx(3, rel=0.1)
    assert (view.requests.running, view.requests.waiting, view.requests.max_running) == (3, 0, 4)


async def test_waiting_requests_are_counted_by_the_server() -> None:
    replay = Replay()
    for index in range(at(13.7) + 1):
        await replay.to(index)
    assert replay.view().requests.waiting == 2
    queued = gateway_row("a40-1", sent_at_s=13.2, received_at_s=13.2, max_tokens=90)
    younger = gateway_row("a40-2", sent_at_s=13.3, received_at_s=13.3, max_tokens=91)
    phases = {slot.request_id: slot.phase for slot in slots_of(replay.view(queued, younger))}
    assert phases["a40-1"] == phases["a40-2"] == "queued"


def chat_row(
    request_id: str, *, sent_s: float, first_s: float, tokens: int, limit: int, now_s: float
) -> GatewayRow:
    """A chat that its own timings count exactly."""
    return gateway_row(
        request_id,
        method="usage",
        received_at_s=sent_s,
        sent_at_s=sent_s,
        first_token_at_s=first_s,
        max_tokens=limit,
        generated_tokens=tokens,
        marks=(TokenMark(first_s, 1), TokenMark(now_s, tokens)),
    )


async def test_gateway_rows_find_their_slots_by_order_limit_and_progress() -> None:
    replay = Replay()
    index = 0
    sent = {"sent_at_s": 2.31, "received_at_s": 2.31}
    while index <= at(10.0):
        await replay.to(index)
        now_s = replay.clock.now_s
        rows = []
        if 2.4 < now_s < 8.0:
            rows = [
                gateway_row("a40-aa", max_tokens=150, **sent),
                gateway_row("a40-bb", route="messages", max_tokens=120, **sent),
            ]
        elif now_s >= 8.0:
            long = next(slot for slot in RECORDING[index]["slots"] if slot["id"] == 2)
            rows = [
                chat_row(
                    "a40-aa",
                    sent_s=2.31,
                    first_s=8.02,
                    tokens=long["next_token"][0]["n_decoded"],
                    limit=150,
                    now_s=now_s,
                ),
                gateway_row(
                    "a40-bb",
                    route="messages",
                    max_tokens=120,
                    prompt_tokens=84,
                    first_token_at_s=8.02,
                    characters=50,
                    **sent,
                ),
            ]
        slots = {slot.request_id: slot for slot in slots_of(replay.view(*rows))}
        index += 1
    assert set(slots) == {"a40-aa", "a40-bb", "3/126"}
    exact, matched, direct = slots["a40-aa"], slots["a40-bb"], slots["3/126"]
    assert (exact.slot, exact.method, exact.direct) == (2, "usage", False)
    assert exact.generated_tokens == 55
    assert isinstance(exact.tokens_per_s, float)
    assert (matched.slot, matched.method, matched.direct) == (1, "engine", False)
    assert matched.generated_tokens == Estimated(55)
    assert isinstance(matched.tokens_per_s, Estimated)
    assert (direct.slot, direct.method, direct.direct) == (3, "engine", True)
    assert direct.generated_tokens == 55
    assert exact.ttft_s == pytest.approx(5.71)


async def test_ended_requests_get_the_servers_final_counts() -> None:
    replay = Replay()
    for index in range(len(RECORDING)):
        await replay.to(index)
    ended = {row.request_id: row for row in replay.view().recent}
    # Clients were told 100, 150 and 120; one left while its 61st token came.
    assert ended["3/10"].generated_tokens == 100
    assert ended["3/126"].generated_tokens == 61
    assert ended["1/127"].generated_tokens == 120
    assert ended["2/125"].generated_tokens == 150
    assert sum(number(row.generated_tokens) or 0 for row in ended.values()) == 743


async def test_cache_is_held_by_running_slots_and_reusable_in_idle_ones() -> None:
    replay = Replay(kv_unified=False)
    for index in range(at(11.0) + 1):
        await replay.to(index)
    cache = replay.view().kv_cache
    running = [slot for slot in RECORDING[at(11.0)]["slots"] if slot["is_processing"]]
    assert cache.capacity_tokens == 4 * 2048
    assert cache.held_tokens == sum(slot["n_prompt_tokens"] for slot in running)
    assert cache.reusable_tokens == 104
    assert cache.free_tokens == 8192 - number(cache.held_tokens) - 104  # type: ignore[operator]
    assert number(cache.fits_more) == 2  # two slots are idle, whatever room is left
    unknown = Replay()
    await unknown.to(at(11.0))
    shared = unknown.view().kv_cache
    assert isinstance(shared.capacity_tokens, Missing)
    assert shared.held_tokens == cache.held_tokens


async def test_prefix_cache_counts_cached_prompt_tokens() -> None:
    replay = Replay()
    for index in range(len(RECORDING)):
        await replay.to(index)
    cache = replay.view().prefix_cache
    assert (cache.hit_tokens, cache.queried_tokens) == (359, 1261 + 359)
    assert cache.prompts == Missing("the engine does not count prompts")


async def test_slots_are_not_read_while_idle_nor_ever_while_asleep() -> None:
    server = Server(RECORDING[-1])
    clock = Clock()
    http = EngineHttp(Endpoint("http://engine"), clock=clock, transport=server.transport())
    source = LlamaCppSource(http, kv_unified=False)
    await source.read()
    assert "/slots" in server.seen  # once, to know the slots
    server.seen.clear()
    for _ in range(5):
        await source.read()
    assert "/slots" not in server.seen
    server.asleep = True
    asleep = await source.read()
    assert "/slots" not in server.seen
    assert asleep.gauges["awake"] == 0
    assert asleep.counters["generated_tokens"] == 743
    assert asleep.gauges["kv_reusable_tokens"] == 0


async def test_a_request_that_ends_between_the_reads_is_not_counted_twice() -> None:
    """/slots still shows a request of 150 tokens that /metrics has counted already."""
    before, after = RECORDING[at(12.45)], RECORDING[at(12.65)]
    assert before["metrics"]["tokens_predicted_total"] == 281
    assert after["metrics"]["tokens_predicted_total"] == 431
    scrapes = iter([before, after, after, after])
    slots = iter([before, after, after])
    transport = routes(
        {
            "/props": json_answer({}),
            "/metrics": lambda _: metrics_answer(metrics_text(next(scrapes)["metrics"])),
            "/slots": lambda _: json_answer(next(slots)["slots"]),
        }
    )
    http = EngineHttp(Endpoint("http://engine"), clock=Clock(), transport=transport)
    reading = await LlamaCppSource(http, kv_unified=None).read()
    assert reading.counters["generated_tokens"] == 431
    assert reading.rows == ()


def slots_answer(text: str) -> Answer:
    return Answer("/slots", 200, text, "application/json", "llama.cpp", None, 0.0, 0.0)


def test_next_token_is_an_object_or_a_list_of_one() -> None:
    slot = {"id": 0, "n_ctx": 8, "is_processing": True, "id_task": 1}
    for token in ({"n_decoded": 7}, [{"n_decoded": 7}]):
        (decoded,) = decode_slots(slots_answer(json.dumps([{**slot, "next_token": token}])))
        assert decoded.decoded_tokens == 7
    (never_used,) = decode_slots(
        slots_answer('[{"id": 0, "n_ctx": 8, "speculative": true, "is_processing": false}]')
    )
    assert (never_used.decoded_tokens, never_used.speculative) == (0, True)
    for text in ("[1]", '{"error": 1}', "nonsense", '[{"id": 0}]'):
        with pytest.raises(SourceError, match="/slots is not understood"):
            decode_slots(slots_answer(text))


async def test_features_that_are_off_are_named_with_their_remedy() -> None:
    off = httpx.Response(501, text='{"error": {"message": "off"}}')
    clock = Clock()
    for path, remedy in (("/metrics", "--metrics"), ("/slots", "--no-slots")):
        table = {
            "/props": json_answer({}),
            "/metrics": metrics_answer(text_of("llamacpp-after")),
            "/slots": json_answer([]),
        }
        sampler = EngineSampler(
            kind="llamacpp",
            endpoint=Endpoint("http://engine"),
            on_event=Events(),
            clock=clock,
            transport=routes({**table, path: off}),
        )
        await poll(sampler)
        view = sampler.view((), ())
        source = next(s for s in view.sources if s.name == f"llamacpp.{path[1:]}")
        assert source.state == "absent"
        assert remedy in (source.reason or "")
        assert isinstance(view.throughput.generation_tokens_per_s, Missing)


async def test_a_router_is_not_mistaken_for_an_engine() -> None:
    server = Server(RECORDING[0], props={"role": "router"})
    http = EngineHttp(Endpoint("http://engine"), clock=Clock(), transport=server.transport())
    with pytest.raises(SourceError, match="router of several models"):
        await LlamaCppSource(http, kv_unified=None).read()


async def test_the_means_between_scrapes_are_never_read() -> None:
    """Those gauges belong to whoever scrapes: nothing may change with them."""
    views = []
    for value in (0.0, 999.0):
        replay = Replay()
        for index in range(at(10.0)):
            await replay.to(index, predicted_tokens_seconds=value, prompt_tokens_seconds=value)
        views.append(replace(replay.view(), recent=()))
    assert views[0] == views[1]


async def test_drafts_are_counted_when_a_request_ends() -> None:
    poll_ = json.loads(json.dumps(RECORDING[at(10.0)]))
    drafts = {
        "spec_decode_num_drafts_total": 0,
        "spec_decode_num_draft_tokens_total": 0,
        "spec_decode_num_accepted_tokens_total": 0,
    }
    poll_["metrics"] |= drafts
    for slot in poll_["slots"]:
        slot["speculative"] = True
    replay = Replay()
    for second in range(3):
        replay.server.poll, replay.clock.now_s = poll_, 100.0 + second
        await poll(replay.sampler)
    shown = replay.view().speculation
    assert shown.mode == "on"
    assert shown.drafts == Missing("llama.cpp counts drafts when a request ends")
    assert shown.acceptance_ratio == shown.drafts
    off = Replay()
    for index in range(at(10.0)):
        await off.to(index)
    assert off.view().speculation.mode == "off"
    assert off.view().speculation.drafts == Missing("speculation is off")
