"""The simulated engine's HTTP surface, as vLLM's clients and the console's telemetry meet it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import httpx
import pytest

from a40console.telemetry.aliases import WANTED, read_samples
from a40console.telemetry.exposition import parse_exposition
from tests.sim.engine_process import TOKEN, SimProcess, sim_process

ASK = {"messages": [{"role": "user", "content": "a question of some length " * 20}]}
LIKE_CLAUDE = {**ASK, "max_tokens": 200, "stream": True}


@pytest.fixture(scope="module")
def engine() -> Iterator[SimProcess]:
    with sim_process("--served-model-name", "sim", "--speed", "20") as made:
        yield made


def messages_events(http: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    with http.stream("POST", "/v1/messages", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = list(answer.iter_lines())
    named = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert named == [event["type"] for event in data]
    return data


def test_a_message_streams_as_the_protocol_wants_it(engine: SimProcess) -> None:
    body = {**LIKE_CLAUDE, "vllm_xargs": {"answer_tokens": 37}}
    events = messages_events(engine.http, body)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    start, end = events[0]["message"], events[-2]
    assert end["delta"]["stop_reason"] == "end_turn"
    assert end["usage"]["output_tokens"] == 37
    whole = end["usage"]["input_tokens"] + end["usage"]["cache_read_input_tokens"]
    assert start["usage"]["input_tokens"] == whole
    counted = engine.http.post("/v1/messages/count_tokens", json=ASK).json()
    assert counted["input_tokens"] == whole


def test_a_tool_is_called_only_where_that_was_asked_for(engine: SimProcess) -> None:
    tools = [{"name": "Bash", "description": "", "input_schema": {"type": "object"}}]
    plain = messages_events(engine.http, {**LIKE_CLAUDE, "tools": tools})
    assert plain[1]["content_block"]["type"] == "text"
    asked = {**LIKE_CLAUDE, "tools": tools, "vllm_xargs": {"answer_tokens": 30, "tool": "Bash"}}
    called = messages_events(engine.http, asked)
    assert called[1]["content_block"]["name"] == "Bash"
    pieces = [e["delta"]["partial_json"] for e in called if e["type"] == "content_block_delta"]
    assert json.loads("".join(pieces))["command"]
    assert called[-2]["delta"]["stop_reason"] == "tool_use"


def test_chat_counts_on_every_chunk_that_asks_for_it(engine: SimProcess) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = {**ASK, "max_tokens": 25, "ignore_eos": True, "stream": True, "stream_options": options}
    with engine.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[-1] == 25
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"


def test_whole_answers_say_the_same_as_streams(engine: SimProcess) -> None:
    body = {**ASK, "max_tokens": 20, "seed": 5, "vllm_xargs": {"answer_tokens": 20}}
    chat = engine.http.post("/v1/chat/completions", json=body).json()
    message = engine.http.post("/v1/messages", json=body).json()
    plain = engine.http.post("/v1/completions", json={"prompt": "abc", "max_tokens": 9}).json()
    assert chat["choices"][0]["message"]["content"] == message["content"][0]["text"]
    assert chat["usage"]["completion_tokens"] == message["usage"]["output_tokens"] == 20
    assert plain["usage"]["completion_tokens"] == 9


def test_refusals_have_the_words_and_the_form_of_each_protocol(engine: SimProcess) -> None:
    post = engine.http.post
    unknown = post("/v1/messages", json={**ASK, "model": "nope", "max_tokens": 5})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["type"] == "not_found_error"
    long = {"messages": [{"role": "user", "content": "word " * 270_000}], "max_tokens": 5}
    for route, kind in (("messages", "invalid_request_error"), ("chat/completions", "BadRequest")):
        refused = post(f"/v1/{route}", json=long)
        assert refused.status_code == 400
        assert "maximum context length is 262144" in refused.json()["error"]["message"]
        assert refused.json()["error"]["type"].startswith(kind)
    assert post("/v1/messages", json={"messages": []}).status_code == 400
    assert post("/v1/chat/completions", content=b"{not json").status_code == 400


def test_nobody_can_take_it_for_a_real_engine(engine: SimProcess) -> None:
    answer = engine.http.get("/version")
    assert answer.headers["server"] == "a40console-sim"
    assert answer.json() == {"version": "0.33.0+sim", "simulated": True}
    assert engine.http.get("/v1/models").json()["data"][0]["owned_by"] == "a40console-sim"
    assert "SIMULATED" in engine.output.read_text()
    assert "(sim)" in engine.http.get("/sim/v1/gpus").json()["gpus"][0]["name"]


def test_its_metrics_read_as_vllms_do(engine: SimProcess) -> None:
    body = {**ASK, "max_tokens": 10, "ignore_eos": True}
    engine.http.post("/v1/chat/completions", json=body)
    text = engine.http.get("/metrics").text
    reading = read_samples(parse_exposition(text, families=WANTED), source="vllm.metrics", at_s=0)
    counted = reading.counters
    assert counted["generated_tokens"] >= 10
    assert counted["prompt_tokens"] == (
        counted["computed_prompt_tokens"] + counted["cached_prompt_tokens"]
    )
    assert counted["sequence_passes"] <= counted["generated_tokens"]
    assert reading.gauges["kv_capacity_tokens"] == 450_112
    assert reading.speculating is False
    assert {"pass_s", "queue_s", "ttft_s"} <= reading.histograms.keys()


def test_the_plugins_answer_is_for_its_token_alone(engine: SimProcess) -> None:
    path = "/a40console/v1/state"
    assert engine.http.get(path).status_code == 401
    wrong = {"authorization": "Bearer wrong"}
    assert engine.http.get(path, headers=wrong).status_code == 401
    right = {"authorization": f"Bearer {TOKEN}"}
    state = engine.http.get(path, headers=right).json()
    assert state["sequence"] == len(state["finished"]) + state["lost"]
    newest = engine.http.get(path, headers=right, params={"since": state["sequence"]}).json()
    assert newest["finished"] == []


def test_a_client_that_leaves_ends_its_request() -> None:
    with sim_process() as engine:
        body = {**ASK, "max_tokens": 5000, "ignore_eos": True, "stream": True}
        with engine.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            next(answer.iter_lines())
        headers = {"authorization": f"Bearer {TOKEN}"}
        deadline_s = time.monotonic() + 5
        while True:
            state = engine.http.get("/a40console/v1/state", headers=headers).json()
            if state["totals"]["aborted"] == 1 and not state["running"]:
                break
            assert time.monotonic() < deadline_s, state
            time.sleep(0.05)
        assert state["finished"][0]["finish_reason"] == "abort"


def test_faults_come_and_go_while_it_runs() -> None:
    with sim_process("--speed", "50", "--fault", "garble=3") as engine:
        headers = {"authorization": f"Bearer {TOKEN}"}
        body = {**LIKE_CLAUDE, "vllm_xargs": {"answer_tokens": 40}}
        with engine.http.stream("POST", "/v1/messages", json=body) as answer:
            lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
        with pytest.raises(json.JSONDecodeError):
            [json.loads(line) for line in lines]
        assert engine.http.post("/sim/v1/faults", json={}).status_code == 401
        wanted = {"garble": None, "metrics": "html"}
        told = engine.http.post("/sim/v1/faults", json=wanted, headers=headers)
        assert told.json() == {"metrics": "html"}
        assert messages_events(engine.http, body)
        assert engine.http.get("/metrics").text.startswith("<html>")
        unknown = engine.http.post("/sim/v1/faults", json={"nope": ""}, headers=headers)
        assert unknown.status_code == 400


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--fault", "crash=load"], 1, "CUDA out of memory"),
        (["--no-such-flag"], 2, "unrecognized arguments: --no-such-flag"),
        (["--fault", "nope"], 2, "there is no fault 'nope'"),
        (
            ["--enable-auto-tool-choice", "--tool-call-parser", "qwen3_codr"],
            1,
            "KeyError: 'invalid tool call parser: qwen3_codr (chose from { apertus,",
        ),
        (
            ["--max-model-len", "600000"],
            1,
            "(600000) is greater than the derived max_model_len (max_position_embeddings=262144.0",
        ),
        (
            ["--max-model-len", "262144", "--num-gpu-blocks-override", "100"],
            1,
            "the estimated maximum model length is 1600",
        ),
    ],
)
def test_a_start_that_fails_says_why_in_vllms_words(words: list[str], code: int, told: str) -> None:
    with sim_process(*words, ready=False) as engine:
        assert engine.process.wait(20) == code
        assert told in engine.output.read_text()


def test_a_model_of_which_nothing_was_measured_is_refused() -> None:
    words = [sys.executable, "-m", "a40console.sim", "serve", "someone/other-model"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "nothing was measured" in done.stderr


def test_what_vllm_takes_is_not_refused() -> None:
    """A parser without `--enable-auto-tool-choice` is not looked at, by vLLM neither."""
    with sim_process("--tool-call-parser", "qwen3_codr") as engine:
        assert engine.http.get("/health").status_code == 200


LONG = {**LIKE_CLAUDE, "max_tokens": 30_000, "vllm_xargs": {"answer_tokens": 30_000}}


def test_what_runs_is_aborted_on_a_signal_in_vllms_words() -> None:
    """As vLLM without a time to drain: in well under the 10 s after which it would be killed."""
    said: dict[str, tuple[int, str]] = {}

    def ask(engine: SimProcess, route: str, *, stream: bool) -> None:
        transport = httpx.HTTPTransport(uds=str(engine.socket))
        with httpx.Client(transport=transport, base_url="http://engine", timeout=30) as http:
            answer = http.post(route, json={**LONG, "stream": stream})
            said[f"{route} {stream}"] = (answer.status_code, answer.text)

    with sim_process("--speed", "4") as engine:
        asked = [("/v1/messages", True), ("/v1/chat/completions", True), ("/v1/messages", False)]
        threads = [
            Thread(target=ask, args=(engine, route), kwargs={"stream": stream})
            for route, stream in asked
        ]
        for thread in threads:
            thread.start()
        while "num_requests_running" in (told := engine.http.get("/metrics").text):
            if re.search(r"vllm:num_requests_running\{[^}]*\} 3", told):
                break
            time.sleep(0.02)
        began_s = time.monotonic()
        engine.process.send_signal(signal.SIGTERM)
        assert engine.process.wait(8) == 0
        assert time.monotonic() - began_s < 4
        for thread in threads:
            thread.join(10)
    code, text = said["/v1/messages True"]
    assert code == 200
    assert text.rstrip().rpartition("\n\n")[2].startswith('event: error\ndata: {"type": "error"')
    code, text = said["/v1/chat/completions True"]
    assert code == 200
    error, done = text.strip().split("\n\n")[-2:]
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == 500
    assert done == "data: [DONE]"
    assert said["/v1/messages False"][0] == 500


def test_it_ends_at_once_on_a_signal() -> None:
    with sim_process() as engine:
        engine.process.send_signal(signal.SIGTERM)
        assert engine.process.wait(5) == 0
        assert "shutdown triggered" in engine.output.read_text()
