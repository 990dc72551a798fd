"""The client of our plugin: clocks, restarts, and requests joined by id."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.telemetry.fetch import EngineHttp
from a40console.telemetry.reading import LiveDepth
from a40console.telemetry.vllm_plugin import PluginSource
from tests.telemetry.engines import Request, SimulatedEngine, poll, sampler_of
from tests.telemetry.makers import Clock, json_answer, routes


def state(**others: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "version": 1,
        "boot": "b",
        "at_monotonic_s": 1000.0,
        "at_unix_s": 5000.0,
        "sequence": 0,
        "running": [],
        "finished": [],
        "lost": 0,
        "totals": {"generated_tokens": 0},
        "scheduler": None,
        "paused": None,
        "disabled": None,
    }
    return known | others


def row(**others: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "id": "r1",
        "external_id": "chatcmpl-a40-0a",
        "prompt_tokens": 30,
        "cached_tokens": None,
        "max_tokens": 100,
        "generated_tokens": 0,
        "passes": 0,
        "phase": "queued",
        "arrival_unix_s": 4998.0,
        "first_token_s": None,
        "last_token_unix_s": None,
        "preemptions": None,
    }
    return known | others


def source_of(*answers: dict[str, Any], clock: Clock) -> tuple[PluginSource, list[str]]:
    asked: list[str] = []
    rest = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        asked.append(request.url.params["since"])
        return json_answer(rest.pop(0) if len(rest) > 1 else rest[0])

    http = EngineHttp(
        Endpoint("http://engine", api_key="not this one", plugin_token="secret"),
        clock=clock,
        transport=routes({"/a40console/v1/state": answer}),
    )
    return PluginSource(http, token="secret"), asked


async def test_times_are_those_of_our_clock() -> None:
    source, _ = source_of(
        state(running=[row(phase="decode", generated_tokens=5, passes=2, first_token_s=0.5)]),
        clock=Clock(1000.0),
    )
    reading = await source.read()
    assert reading.at_s == 1000.0
    assert reading.rows is not None
    (request,) = reading.rows
    assert request.arrived_at_s == 998.0
    assert request.first_token_at_s == 998.5
    assert request.ttft_s == 0.5


async def test_an_engine_with_another_clock_is_put_on_ours() -> None:
    source, _ = source_of(
        state(at_monotonic_s=77.0, running=[row()]),
        state(at_monotonic_s=78.0, at_unix_s=5001.0, running=[row()]),
        clock=Clock(1000.0),
    )
    first, second = await source.read(), await source.read()
    assert (first.at_s, second.at_s) == (1000.0, 1001.0)
    for reading in (first, second):
        assert reading.rows is not None
        assert reading.rows[0].arrived_at_s == 998.0


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (
            {"depth": 0, "deepest": 5, "method": "ngram", "why_not": None},
            LiveDepth(tokens=0, deepest=5, method="ngram", changeable=True),
        ),
        (
            {"depth": 5, "deepest": 5, "method": "EagleProposer", "why_not": "not proven"},
            LiveDepth(tokens=5, deepest=5, method="EagleProposer", changeable=False),
        ),
        ({"depth": None, "deepest": 0, "method": None, "why_not": "no extension"}, None),
        (None, None),
    ],
)
async def test_the_depth_is_the_workers_word(told: Any, read: LiveDepth | None) -> None:
    source, _ = source_of(state(speculation=told), clock=Clock(1000.0))
    assert (await source.read()).live_depth == read


async def test_finished_requests_are_asked_for_once() -> None:
    ended = row(
        generated_tokens=10,
        passes=4,
        phase=None,
        sequence=7,
        finish_reason="length",
        ended_unix_s=4999.5,
    )
    source, asked = source_of(
        state(sequence=7, finished=[ended]), state(sequence=7), clock=Clock(1000.0)
    )
    first, second = await source.read(), await source.read()
    assert asked == ["0", "7"]
    (request,) = first.ended
    assert (request.finish_reason, request.generated_tokens) == ("length", 10)
    assert request.ended_at_s == 999.5
    assert request.ended_at == "1970-01-01T01:23:19.500Z"
    assert second.ended == ()
    assert first.counters["sequence_passes"] == second.counters["sequence_passes"] == 4


async def test_after_a_restart_the_list_is_asked_for_from_its_beginning() -> None:
    source, asked = source_of(
        state(sequence=7),
        state(boot="c", sequence=2),
        state(boot="c", sequence=2, finished=[]),
        clock=Clock(1000.0),
    )
    assert (await source.read()).boot == "b"
    assert (await source.read()).boot == "c"
    assert asked == ["0", "7", "0"]


async def test_what_the_plugin_does_not_know_is_absent() -> None:
    source, _ = source_of(
        state(
            totals={"generated_tokens": 5, "steps": None, "drafts": None},
            running=[row(phase=None), row(id="r2", phase=None, generated_tokens=3)],
        ),
        clock=Clock(1000.0),
    )
    reading = await source.read()
    assert reading.counters["generated_tokens"] == 5
    assert "passes" not in reading.counters
    assert {"passes", "drafts"} <= reading.unreadable
    assert reading.gauges == {}
    assert reading.rows is not None
    assert [request.phase for request in reading.rows] == ["prefill", "decode"]


def engine_of(*requests: Request) -> SimulatedEngine:
    clock = Clock()
    return SimulatedEngine(clock, list(requests), born_s=clock.now_s)


async def test_a_paused_engine_counts_its_queue_from_the_rows() -> None:
    engine = engine_of(Request("r", 0.0, 0.1, 50.0, 100_000))
    sampler = sampler_of(engine, plugin=True)
    engine.clock.now_s += 1
    told = engine.state(1.0, 0) | {
        "paused": True,
        "running": [row(id=f"q{index}", external_id=None) for index in range(3)],
        "scheduler": {"running": 0, "waiting": 0, "kv_cache_usage_ratio": 0.0},
    }
    engine.overrides["/a40console/v1/state"] = json_answer(told)
    await poll(sampler)
    view = sampler.view((), ())
    assert view.paused is True
    assert (view.requests.running, view.requests.waiting) == (0, 3)
