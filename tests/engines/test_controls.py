"""The client of an engine's controls, against the simulated engine and against what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from a40console.engines.controls import ControlError, EngineControls, read_depth
from a40console.engines.plugin_folder import WORKER_EXTENSION
from a40console.errors import Exit
from a40console.model.engine import Endpoint
from tests.sim.engine_process import TOKEN, SimProcess, sim_process

READY = (
    *("--speculative-config", '{"method":"ngram","num_speculative_tokens":5}'),
    *("--worker-extension-cls", WORKER_EXTENSION),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[SimProcess]:
    with sim_process(*READY, "--enable-sleep-mode", "--speed", "20") as made:
        yield made


def endpoint_of(engine: SimProcess, token: str | None = TOKEN) -> Endpoint:
    return Endpoint("http://localhost", socket_path=str(engine.socket), plugin_token=token)


@pytest.fixture
async def controls(engine: SimProcess) -> AsyncIterator[EngineControls]:
    async with EngineControls(endpoint_of(engine), "sim") as opened:
        yield opened


def answering(status: int, body: Any = None, *, text: str | None = None) -> EngineControls:
    def answer(request: httpx.Request) -> httpx.Response:
        if text is not None:
            return httpx.Response(status, text=text)
        return httpx.Response(status, json=body)

    endpoint = Endpoint("http://localhost", plugin_token=TOKEN)
    return EngineControls(endpoint, "vllm", transport=httpx.MockTransport(answer))


async def test_the_depth_goes_down_and_up(controls: EngineControls) -> None:
    await controls.set_speculation(5)
    down = await controls.set_speculation(0)
    assert (down.before, down.after, down.deepest) == (5, 0, 5)
    up = await controls.set_speculation(3)
    assert (up.before, up.after) == (0, 3)
    assert up.effective_pass is not None
    able = await controls.capabilities()
    assert able.depth is not None
    assert (able.depth.tokens, able.depth.deepest, able.depth.method) == (3, 5, "ngram")
    assert able.why_not == {}
    assert able.paused is False


async def test_deeper_than_the_start_is_refused_with_the_reason(controls: EngineControls) -> None:
    with pytest.raises(ControlError) as refused:
        await controls.set_speculation(6)
    assert refused.value.evidence == "6 is deeper than the 5 that it was started with"
    assert refused.value.exit_code is Exit.REFUSED


async def test_a_pause_is_seen_and_ends(controls: EngineControls) -> None:
    await controls.pause()
    assert (await controls.capabilities()).paused is True
    await controls.resume()
    assert (await controls.capabilities()).paused is False


async def test_a_request_is_aborted_by_its_name(
    engine: SimProcess, controls: EngineControls
) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5000, "stream": True}
    body["vllm_xargs"] = {"answer_tokens": 5000}
    headers = {"x-request-id": "doomed"}
    with engine.http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert await controls.abort("chatcmpl-doomed") is True
        told = list(lines)
    assert any('"finish_reason": "abort"' in line or '"abort"' in line for line in told)
    assert await controls.abort("chatcmpl-doomed") is False


async def test_the_cache_is_forgotten(engine: SimProcess, controls: EngineControls) -> None:
    def cached() -> int:
        body = {"messages": [{"role": "user", "content": "word " * 200}], "max_tokens": 1}
        usage = engine.http.post("/v1/chat/completions", json=body).json()["usage"]
        return int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)

    cached()
    assert cached() > 0
    assert await controls.reset_prefix_cache() is True
    assert cached() == 0


async def test_sleep_and_wake(engine: SimProcess, controls: EngineControls) -> None:
    await controls.sleep(1)
    state = engine.http.get("/metrics").text
    assert 'sleep_state="weights_offloaded"} 1.0' in state
    await controls.wake()
    assert 'sleep_state="awake"} 1.0' in engine.http.get("/metrics").text
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3}
    assert engine.http.post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("vllm", "the engine runs without our plugin"),
        ("llamacpp", "llama.cpp's server has no such control"),
    ],
)
async def test_without_the_plugin_nothing_is_asked(kind: Any, reason: str) -> None:
    async with EngineControls(Endpoint("http://localhost:1"), kind) as controls:
        able = await controls.capabilities()
        assert set(able.why_not.values()) == {reason}
        with pytest.raises(ControlError) as refused:
            await controls.set_speculation(1)
        assert refused.value.evidence == reason


@pytest.mark.parametrize(
    ("controls", "evidence", "code"),
    [
        (answering(409, {"error": "no sleep mode"}), "no sleep mode", Exit.REFUSED),
        (answering(504, {"error": "no answer in 30 s"}), "no answer in 30 s", Exit.TIMED_OUT),
        (answering(404, text="Not Found"), "does not know it", Exit.REFUSED),
        (answering(401, {"error": "token"}), "refuses our token", Exit.REFUSED),
        (answering(500, text="<html>"), "HTTP 500", Exit.REFUSED),
        (answering(200, text="<html>"), "<html>", Exit.REFUSED),
        (answering(200, {"before": "x"}), "before", Exit.REFUSED),
    ],
)
async def test_what_goes_wrong_is_in_the_operators_words(
    controls: EngineControls, evidence: str, code: Exit
) -> None:
    async with controls:
        with pytest.raises(ControlError) as failed:
            await controls.set_speculation(1)
    assert evidence in failed.value.evidence
    assert failed.value.exit_code is code
    assert TOKEN not in str(failed.value.trouble)


async def test_an_engine_that_is_gone_is_not_serving() -> None:
    endpoint = Endpoint("http://localhost", socket_path="/nonexistent/a.sock", plugin_token=TOKEN)
    async with EngineControls(endpoint, "vllm") as controls:
        with pytest.raises(ControlError) as failed:
            await controls.pause()
    assert failed.value.exit_code is Exit.NOT_SERVING


async def test_a_plugin_from_before_its_controls_says_so() -> None:
    async with answering(200, {"version": 1}) as controls:
        able = await controls.capabilities()
    assert all("older than its controls" in reason for reason in able.why_not.values())


@pytest.mark.parametrize("told", [None, [], "x"])
def test_a_depth_that_is_not_told_is_none(told: Any) -> None:
    assert read_depth(told) is None


def test_a_depth_that_cannot_be_changed_says_why() -> None:
    depth = read_depth({"depth": None, "deepest": None, "method": None, "why_not": "no reason"})
    assert depth is not None
    assert (depth.tokens, depth.deepest, depth.why_not) == (None, 0, "no reason")


@pytest.mark.parametrize(
    ("request_id", "expected"),
    [
        ("a40-1f", ("chatcmpl-a40-1f-9c0d", "cmpl-a40-1f-1-77aa")),
        ("a40-1f-1", ("cmpl-a40-1f-1-77aa",)),
        ("chatcmpl-a40-1f-9c0d", ("chatcmpl-a40-1f-9c0d",)),
        ("a40-1", ()),
        ("", ()),
    ],
)
async def test_what_runs_of_a_request_is_found_by_any_of_its_ids(
    request_id: str, expected: tuple[str, ...]
) -> None:
    rows = [
        {"id": "chatcmpl-a40-1f-9c0d", "external_id": "chatcmpl-a40-1f"},
        {"id": "cmpl-a40-1f-1-77aa", "external_id": "cmpl-a40-1f-1"},
        {"id": "chatcmpl-a40-2e-0b1c", "external_id": "chatcmpl-a40-2e"},
    ]
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"running": rows}))
    endpoint = Endpoint("http://engine", plugin_token="t")
    async with EngineControls(endpoint, "vllm", transport=transport) as controls:
        assert await controls.running(request_id) == expected
