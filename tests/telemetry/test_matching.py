"""Which engine row belongs to which gateway row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.own_request import own_request_id
from a40console.telemetry.ended_requests import recent_requests
from a40console.telemetry.matching import (
    Pair,
    match_by_order,
    our_id,
    pair_by_id,
    pair_by_order,
)
from a40console.telemetry.request_cells import NOT_OURS
from tests.telemetry.makers import engine_row, gateway_row


def test_our_id_within_the_engines() -> None:
    assert our_id("chatcmpl-a40-0f3e") == "a40-0f3e"
    assert our_id("cmpl-a40-0f3e-0") == "a40-0f3e"
    assert our_id("cmpl-a40-1234-1") == "a40-1234"
    assert our_id("chatcmpl-9a4e6df8") is None
    assert our_id(None) is None


def test_several_completions_of_one_request_are_told_apart() -> None:
    gateway = gateway_row("a40-1234")
    for external_id, key in (
        ("chatcmpl-a40-1234", "a40-1234"),
        ("cmpl-a40-1234-0", "a40-1234"),
        ("cmpl-a40-1234-1", "a40-1234-1"),
    ):
        assert Pair(engine_row("r", external_id=external_id), gateway).key == key


def test_order_decides_among_equals() -> None:
    rows = [engine_row("1/7", arrived_at_s=5.0), engine_row("0/9", arrived_at_s=5.0)]
    gateway = [gateway_row("b", sent_at_s=4.2), gateway_row("a", sent_at_s=4.1)]
    assert match_by_order(rows, gateway, {}, read_at_s=5.0) == {"a": "1/7", "b": "0/9"}


def test_a_task_that_ran_before_the_request_was_sent_is_anothers() -> None:
    rows = [engine_row("0/1", arrived_at_s=3.0)]
    assert match_by_order(rows, [gateway_row("a", sent_at_s=4.0)], {}, read_at_s=5.0) == {}


def test_limits_and_prompt_lengths_must_agree() -> None:
    rows = [
        engine_row("0/1", 5, arrived_at_s=5.0, max_tokens=100, prompt_tokens=500),
        engine_row("1/2", 5, arrived_at_s=5.0, max_tokens=200, prompt_tokens=800),
    ]
    limited = gateway_row("a", sent_at_s=4.0, max_tokens=200)
    long = gateway_row("b", sent_at_s=4.0, prompt_tokens=503)
    assert match_by_order(rows, [limited], {}, read_at_s=5.0) == {"a": "1/2"}
    assert match_by_order(rows, [long], {}, read_at_s=5.0) == {"b": "0/1"}
    other = gateway_row("c", sent_at_s=4.0, prompt_tokens=900)
    assert match_by_order(rows, [other], {}, read_at_s=5.0) == {}


def test_a_match_is_kept_until_it_disagrees() -> None:
    rows = [engine_row("0/1", arrived_at_s=5.0), engine_row("1/2", arrived_at_s=5.0)]
    gateway = [gateway_row("a", sent_at_s=4.0)]
    assert match_by_order(rows, gateway, {"a": "1/2"}, read_at_s=5.0) == {"a": "1/2"}
    told = [gateway_row("a", sent_at_s=4.0, prompt_tokens=999)]
    assert match_by_order(rows, told, {"a": "1/2"}, read_at_s=5.0) == {}


def test_a_held_request_is_in_no_slot() -> None:
    rows = [engine_row("0/1", arrived_at_s=5.0)]
    assert match_by_order(rows, [gateway_row("a", sent_at_s=None)], {}, read_at_s=5.0) == {}


ids = st.lists(st.integers(min_value=0, max_value=40), unique=True, max_size=12)


@given(ids, ids, ids)
def test_joined_by_id_every_request_is_one_slot(
    engine_ids: list[int], gateway_ids: list[int], direct: list[int]
) -> None:
    engine = [
        *(engine_row(f"r{n}", 3, external_id=f"chatcmpl-a40-{n:x}") for n in engine_ids),
        *(engine_row(f"d{n}", 3, external_id=f"chatcmpl-{n}") for n in direct),
    ]
    gateway = [gateway_row(f"a40-{n:x}") for n in gateway_ids]
    pairs = pair_by_id(engine, [], gateway, [], read_at_s=0.0)
    keys = [pair.key for pair in pairs]
    assert len(keys) == len(set(keys)) == len(set(engine_ids) | set(gateway_ids)) + len(direct)
    assert {pair.gateway.request_id for pair in pairs if pair.gateway} == {
        row.request_id for row in gateway
    }
    assert {pair.engine.engine_id for pair in pairs if pair.engine} == {
        row.engine_id for row in engine
    }


@given(
    st.lists(st.floats(min_value=0, max_value=20), max_size=8),
    st.lists(st.floats(min_value=0, max_value=20), max_size=8),
    st.data(),
)
def test_joined_by_order_no_row_is_lost_or_used_twice(
    arrivals: list[float], sendings: list[float], data: st.DataObject
) -> None:
    limits = st.sampled_from([None, 100, 200])
    engine = [
        engine_row(f"{n}/{n}", arrived_at_s=at_s, max_tokens=data.draw(limits))
        for n, at_s in enumerate(arrivals)
    ]
    gateway = [
        gateway_row(f"a40-{n:x}", sent_at_s=at_s, max_tokens=data.draw(limits))
        for n, at_s in enumerate(sendings)
    ]
    matches = match_by_order(engine, gateway, {}, read_at_s=20.0)
    assert len(set(matches.values())) == len(matches)
    pairs = pair_by_order(engine, gateway, matches)
    assert len(pairs) == len(engine) + len(gateway) - len(matches)
    again = match_by_order(engine, gateway, matches, read_at_s=20.0)
    assert again == matches


@pytest.mark.parametrize("what", ["canary", "probe", "api"])
def test_the_consoles_own_requests_are_no_strangers(what: str) -> None:
    external = f"chatcmpl-{own_request_id(what)}"
    assert our_id(external) is None, "it did not come through the gateway"
    row = replace(engine_row("7"), external_id=external, ended_at="2026-11-29T14:07:31Z")
    (ended,) = recent_requests((), (row,))
    assert ended.client == f"a40console {what}"
    (stranger,) = recent_requests((), (replace(row, external_id="chatcmpl-9a4e6df8"),))
    assert stranger.client == NOT_OURS
