"""What an engine must stand before clients reach it, on answers that are written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.model.own_request import own_request
from a40console.model.profile import Profile
from a40console.operations.asking import Answer, EngineAsk, Route
from a40console.operations.canary import CanaryReport, run_canary
from a40console.operations.damage import broken_code, damage

PROFILE = Profile(
    name="coder", kind="vllm", model="m", tool_call_parser="hermes", prefix_caching=True
)
CODE = """, factor: float = 12.5) -> list[float]:
    return [value * factor for value in values if value > 12]


def scaled_13(values: list[fl"""
CALL = json.dumps({"path": "src/parser.py", "line": 42})


SOUND_CODE = Answer(status=200, text=CODE, generated_tokens=64, prompt_tokens=900)
SOUND_CALL = Answer(status=200, tool="open_file", tool_arguments=CALL)
SOUND_AGAIN = Answer(status=200, text="x", cached_tokens=896, prompt_tokens=900)


@dataclass
class Engine:
    """Answers as a sound engine does, but for what a test changes."""

    code: Answer = SOUND_CODE
    call: Answer = SOUND_CALL
    again: Answer = SOUND_AGAIN
    block: int | None = 16
    asked: list[tuple[Route, Mapping[str, Any]]] = field(default_factory=list)

    async def __call__(self, route: Route, body: Mapping[str, Any]) -> Answer:
        self.asked.append((route, body))
        if route == "chat/completions":
            return self.call
        return self.again if body["max_tokens"] == 1 else self.code

    async def block_tokens(self) -> int | None:
        return self.block


def verdicts(report: CanaryReport) -> dict[str, str]:
    return {check.name: check.verdict for check in report.checks}


async def test_a_sound_engine_stands_it() -> None:
    engine = Engine()
    report = await run_canary(engine, PROFILE)
    assert report.passed
    assert verdicts(report) == {
        "completion": "passed",
        "tool call": "passed",
        "prefix cache": "passed",
    }
    assert "896 of 900 tokens" in report.describe()
    first, again = (body["prompt"] for route, body in engine.asked if route == "completions")
    assert first == again


@pytest.mark.parametrize(
    ("changed", "check", "evidence"),
    [
        ({"code": Answer(status=200, text="")}, "completion", "it wrote nothing"),
        ({"code": Answer(status=200, text="!" * 64)}, "completion", "64 times '!' in a row"),
        ({"code": Answer(error="the connection broke")}, "completion", "the connection broke"),
        (
            {"call": Answer(status=200, tool="open_file", tool_arguments='{"path": "src')},
            "tool call",
            'open_file({"path": "src)',
        ),
        ({"call": Answer(status=500, error="no")}, "tool call", "no"),
        (
            {"again": Answer(status=200, text="x", cached_tokens=0, prompt_tokens=900)},
            "prefix cache",
            "0 of 900 tokens at the second asking, with blocks of 16",
        ),
    ],
)
async def test_an_engine_that_is_not_sound_does_not(
    changed: dict[str, Any], check: str, evidence: str
) -> None:
    report = await run_canary(replace(Engine(), **changed), PROFILE)
    assert not report.passed
    (failed,) = [each for each in report.checks if each.passed is False]
    assert failed.name == check
    assert evidence in failed.evidence


@pytest.mark.parametrize(
    ("changed", "profile", "check", "why"),
    [
        ({}, {"tool_call_parser": None}, "tool call", "the profile has no tool parser"),
        ({"call": Answer(status=400, error="no")}, {}, "tool call", "takes no forced call: no"),
        ({"call": Answer(status=200, text="Sure!")}, {}, "tool call", "answered in words"),
        ({}, {"prefix_caching": False}, "prefix cache", "prefix caching is off"),
        (
            {"code": Answer(status=404, error="Not Found")},
            {"prefix_caching": False},
            "completion",
            "the engine takes no completions: Not Found",
        ),
        (
            {"again": Answer(status=200, text="x")},
            {},
            "prefix cache",
            "the engine does not say what it had cached",
        ),
        (
            {"again": Answer(status=200, cached_tokens=0, prompt_tokens=900), "block": 784},
            {},
            "prefix cache",
            "too few for a block of 784",
        ),
    ],
)
async def test_what_cannot_be_judged_is_skipped_and_fails_nothing(
    changed: dict[str, Any], profile: dict[str, Any], check: str, why: str
) -> None:
    report = await run_canary(replace(Engine(), **changed), replace(PROFILE, **profile))
    assert report.passed
    skipped = {each.name: each.evidence for each in report.checks if each.passed is None}
    assert why in skipped[check]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(status=200, text="ok", generated_tokens=2), "passed"),
        (Answer(status=402, error="no credit is left"), "failed"),
    ],
)
async def test_an_endpoint_that_is_paid_by_the_token_is_asked_one_short_question(
    answer: Answer, verdict: str
) -> None:
    engine = Engine(call=answer)
    report = await run_canary(engine, replace(PROFILE, kind="attached"))
    assert verdicts(report) == {"answer": verdict}
    assert report.passed is (verdict == "passed")
    [(route, body)] = engine.asked
    assert (route, body["max_tokens"]) == ("chat/completions", 16)


async def test_the_prompt_takes_half_of_a_small_window_at_the_most() -> None:
    engine = Engine()
    await run_canary(engine, replace(PROFILE, max_model_len=512))
    prompts = [body["prompt"] for route, body in engine.asked if route == "completions"]
    assert all(len(prompt) < 512 * 3 // 2 + 100 for prompt in prompts)


# --- Damage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        "the same line again\n" * 20,
        "-" * 80 + "\n" + " " * 60 + "# " + "=" * 40,
        "I think that I think that I am",
        "1 1 1 2 2 2",
        "Il était une fois, 很久以前, жил-был",
    ],
)
def test_what_a_weak_model_writes_is_no_damage(text: str) -> None:
    assert damage(text) == ""
    assert broken_code(text, "def f(a") == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" \n", "it wrote nothing"),
        ("caf\ufffd\ufffd", "2 characters that are no text"),
        ("the " * 30, "more than 10 times 'the' in a row"),
        (
            "a cat sat a cat sat on the mat on the mat and then he and then he left",
            "3 fragments come out twice",
        ),
    ],
)
def test_damage_is_named_with_its_evidence(text: str, told: str) -> None:
    assert told in damage(text)


@pytest.mark.parametrize(
    "code",
    [
        "): \n    return fibonacci(n-1) + fibonacci(n-2(n-)\n\n\nx = 1\ny = 2\n",
        "):\n    if row.phaseif row. == 'decode':\n        total += 1\n    return total\n",
    ],
)
def test_code_whose_fragments_lie_in_the_wrong_place_is_broken(code: str) -> None:
    assert "Python that cannot be read" in broken_code(code, "def f(a")


# --- Asking ----------------------------------------------------------------------------------


async def test_an_answer_is_put_together_from_its_events() -> None:
    def deltas(*pieces: dict[str, Any]) -> str:
        chunks = [{"choices": [{"delta": piece, "finish_reason": None}]} for piece in pieces]
        return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)

    def call(**function: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "function": function}]}

    usage = {
        "choices": [],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 8},
        },
    }
    body = deltas({"reasoning": "hm "}, {"content": "yes"}, call(name="f", arguments='{"a"'))
    body += deltas(call(arguments=": 1}")) + f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n"
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, text=body)

    endpoint = Endpoint("http://engine", api_key="secret")
    async with EngineAsk(endpoint, transport=httpx.MockTransport(answer)) as ask:
        found = await ask("chat/completions", {"model": "m"})
    assert found == Answer(
        status=200,
        text="hm yes",
        tool="f",
        tool_arguments='{"a": 1}',
        prompt_tokens=9,
        generated_tokens=4,
        cached_tokens=8,
    )
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert own_request(f"cmpl-{seen[0].headers['x-request-id']}-0") == "canary"
    assert json.loads(seen[0].content)["stream"] is True


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (httpx.Response(200, text='data: {"choices": []}\n\n'), "the stream ended before its end"),
        (httpx.Response(200, text="data: {oh\n\ndata: [DONE]\n\n"), "an event that is not JSON"),
        (httpx.Response(400, json={"error": {"message": "no such model"}}), "no such model"),
    ],
)
async def test_what_goes_wrong_is_in_the_answer(response: httpx.Response, error: str) -> None:
    transport = httpx.MockTransport(lambda request: response)
    async with EngineAsk(Endpoint("http://engine"), transport=transport) as ask:
        assert error in (await ask("completions", {})).error


async def test_the_size_of_a_block_is_read_from_the_metrics() -> None:
    text = 'vllm:cache_config_info{block_size="784",cache_dtype="auto"} 1.0\n'
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=text))
    async with EngineAsk(Endpoint("http://engine"), transport=transport) as ask:
        assert await ask.block_tokens() == 784
