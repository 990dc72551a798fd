"""llama.cpp with more requests than slots: nothing is counted twice, and what waits is queued."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing, number
from a40console.model.request import EngineRow, GatewayRow, TokenMark
from a40console.telemetry.matching import Pair, make_room, match_by_order, pair_by_order
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.engines import Events, poll
from tests.telemetry.llamacpp_replay import Server, slots_of
from tests.telemetry.makers import Clock, engine_row, gateway_row

SLOTS = 4


def pairs_of(
    engine: list[EngineRow], live: list[GatewayRow], known: dict[str, str], at_s: float
) -> tuple[dict[str, str], tuple[Pair, ...]]:
    matches = match_by_order(engine, live, known, read_at_s=at_s)
    return matches, pair_by_order(engine, live, matches)


def test_a_token_takes_the_slot_that_decodes_from_a_guess() -> None:
    slots = [engine_row("0/1", arrived_at_s=1.0), engine_row("1/2", arrived_at_s=1.0)]
    live = [gateway_row(name, sent_at_s=0.5) for name in "abc"]
    known = match_by_order(slots, live, {}, read_at_s=1.0)
    assert known == {"a": "0/1", "b": "1/2"}
    slots[0] = replace(slots[0], phase="decode", generated_tokens=3)
    live[2] = replace(live[2], first_token_at_s=1.8)
    assert match_by_order(slots, live, known, read_at_s=2.0) == {"c": "0/1", "b": "1/2"}


def test_a_token_of_a_request_guessed_into_a_prefill_changes_places() -> None:
    slots = [
        engine_row("0/1", 3, arrived_at_s=1.0),
        engine_row("1/2", arrived_at_s=1.0),
    ]
    live = [gateway_row("a", sent_at_s=0.5), gateway_row("b", sent_at_s=0.5, first_token_at_s=1.5)]
    known = {"a": "0/1", "b": "1/2"}
    assert match_by_order(slots, live, known, read_at_s=2.0) == {"b": "0/1", "a": "1/2"}


def test_a_request_that_does_not_stream_keeps_its_slot() -> None:
    slots = [engine_row("0/1", 30, arrived_at_s=1.0), engine_row("1/2", arrived_at_s=2.0)]
    live = [gateway_row("whole", sent_at_s=0.5), gateway_row("next", sent_at_s=1.5)]
    known = {"whole": "0/1"}
    expected = {"whole": "0/1", "next": "1/2"}
    assert match_by_order(slots, live, known, read_at_s=2.0) == expected


@given(
    st.permutations(range(6)),
    st.lists(st.integers(min_value=0, max_value=SLOTS - 1), min_size=1, max_size=40),
)
def test_whatever_order_the_engine_takes_them_in_every_request_is_one_row(
    order: list[int], turns: list[int]
) -> None:
    """Requests are sent together and queued in any order; slots move on in any order."""
    waiting = [f"r{n}" for n in order]
    live = {f"r{n}": gateway_row(f"r{n}", sent_at_s=0.0) for n in range(6)}
    held: dict[int, tuple[str, EngineRow]] = {}
    known: dict[str, str] = {}
    for step, turn in enumerate([None, *turns], start=1):
        at_s = float(step)
        if turn in held:
            name, row = held[turn]
            if row.generated_tokens < 3:
                tokens = row.generated_tokens + 1
                held[turn] = (name, replace(row, phase="decode", generated_tokens=tokens))
                first_s = live[name].first_token_at_s or at_s - 0.4
                live[name] = replace(live[name], first_token_at_s=first_s)
            else:
                del held[turn], live[name]
        for place in range(SLOTS):
            if place not in held and waiting:
                row = engine_row(f"{place}/{step}", slot=place, arrived_at_s=at_s)
                held[place] = (waiting.pop(0), row)
        engine = [row for _, row in held.values()]
        known, pairs = pairs_of(engine, list(live.values()), known, at_s)
        kinds = Counter((pair.engine is not None, pair.gateway is not None) for pair in pairs)
        assert kinds[True, False] == 0, "a request of ours is shown as somebody else's as well"
        assert kinds[True, True] == len(held)
        assert kinds[False, True] == len(live) - len(held)
        for pair in pairs:
            if pair.gateway is not None and pair.gateway.first_token_at_s is not None:
                assert pair.engine is not None
                assert pair.engine.generated_tokens > 0


def slot(number: int, task: int, decoded: int) -> dict[str, object]:
    return {
        "id": number,
        "id_task": task,
        "is_processing": True,
        "n_ctx": 512,
        "n_prompt_tokens_processed": 100,
        "next_token": [{"n_decoded": decoded}],
        "params": {"max_tokens": 50},
    }


async def test_those_without_a_slot_are_queued_though_the_gauge_does_not_say_so_yet() -> None:
    """Six on four: the slots decode, and the engine's count of deferred ones still stands at 0."""
    figures = {
        "requests_processing": 4.0,
        "requests_deferred": 0.0,
        "tokens_predicted_total": 0.0,
    }
    clock = Clock(10.0)
    server = Server({"metrics": figures, "slots": [slot(n, n, 0) for n in range(SLOTS)]})
    sampler = EngineSampler(
        kind="llamacpp",
        endpoint=Endpoint("http://engine"),
        on_event=Events(),
        clock=clock,
        transport=server.transport(),
    )
    live = [gateway_row(f"r{n}", sent_at_s=9.0, max_tokens=50) for n in range(6)]
    await poll(sampler)
    view = sampler.view(live, ())
    assert Counter(row.phase for row in slots_of(view)) == {"prefill": 4, "queued": 2}
    server.poll = {"metrics": figures, "slots": [slot(n, n, 5) for n in range(SLOTS)]}
    clock.now_s = 11.0
    marks = tuple(TokenMark(10.5 + 0.1 * n, 1 + n) for n in range(5))
    live[2:] = [
        replace(row, first_token_at_s=10.5, method="usage", generated_tokens=5, marks=marks)
        for row in live[2:]
    ]
    await poll(sampler)
    view = sampler.view(live, ())
    assert Counter((row.phase, row.direct) for row in slots_of(view)) == {
        ("decode", False): 4,
        ("queued", False): 2,
    }
    assert {row.request_id for row in slots_of(view) if row.phase == "queued"} == {"r0", "r1"}


def test_a_token_since_the_slots_were_read_takes_a_slot_from_the_newest_guess() -> None:
    slots = [engine_row(f"{n}/{n}", arrived_at_s=1.0) for n in range(SLOTS)]
    live = [gateway_row(f"r{n}", sent_at_s=0.1 * n) for n in range(6)]
    known = match_by_order(slots, live, {}, read_at_s=2.0)
    assert known == {"r0": "0/0", "r1": "1/1", "r2": "2/2", "r3": "3/3"}
    live[5] = replace(live[5], first_token_at_s=2.1)
    room = make_room(slots, live, known, slots=4.0, read_at_s=2.0)
    assert room == {"r0": "0/0", "r1": "1/1", "r2": "2/2", "r5": "3/3"}
    assert make_room(slots, live, known, slots=5.0, read_at_s=2.0) == known
    gone = live[1:]
    assert make_room(slots, gone, known, slots=4.0, read_at_s=2.0) == known, "r0's slot is free"


async def test_a_request_that_has_its_first_token_alone_has_no_speed_yet() -> None:
    """Another's prompt is read meanwhile: `≈0` beside a header of 0.2 tok/s would be two truths."""
    figures = {"requests_processing": 2.0, "tokens_predicted_total": 0.0}
    clock = Clock(10.0)
    server = Server({"metrics": figures, "slots": [slot(0, 0, 0), slot(1, 1, 0)]})
    sampler = EngineSampler(
        kind="llamacpp",
        endpoint=Endpoint("http://engine"),
        on_event=Events(),
        clock=clock,
        transport=server.transport(),
    )
    row = gateway_row("r0", sent_at_s=9.0)
    await poll(sampler)
    for at_s in (12.0, 15.0):
        clock.now_s = at_s
        server.poll = {"metrics": figures, "slots": [slot(0, 0, 1), slot(1, 1, 0)]}
        await poll(sampler)
        [ours] = [
            each
            for each in slots_of(sampler.view([replace(row, first_token_at_s=11.0)], ()))
            if not each.direct
        ]
        assert ours.phase == "decode"
        assert ours.tokens_per_s == Missing("no whole token in the window beyond its first")
    assert number(ours.window_tokens_per_s) == pytest.approx(0.2)
