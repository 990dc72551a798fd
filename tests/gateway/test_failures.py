"""An engine's errors become the status and the words on which the client does right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.anthropic.failures import OverflowRefusal, refusal_of, told_late
from a40console.gateway.refusals import Refusal

VLLM_0_33 = (
    "This model's maximum context length is 32768 tokens. However, your prompt contains 40000 "
    "input tokens, which exceeds this limit even without any output tokens. Please reduce the "
    "length of the input prompt. (parameter=input_tokens, value=40000)"
)
VLLM_0_27 = (
    "This model's maximum context length is 32768 tokens. However, you requested 32000 output "
    "tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 "
    "tokens. Please reduce the length of the input prompt or the number of requested output tokens."
)
LLAMA = "request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it"


def openai(message: Any, code: int = 400, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, "type": "BadRequestError", **more}}).encode()


def anthropic(message: str) -> bytes:
    return json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    ).encode()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (anthropic(VLLM_0_33), "prompt is too long: 40000 tokens > 32768 maximum"),
        (openai(VLLM_0_33), "prompt is too long: 40000 tokens > 32768 maximum"),
        (openai(LLAMA, n_prompt_tokens=5031, n_ctx=2048),
         "prompt is too long: 5031 tokens > 2048 maximum"),
        (openai(LLAMA), "prompt is too long: 5031 tokens > 2048 maximum"),
        (openai("The decoder prompt (length 5000) is longer than the maximum model length of 4096. "
                "Make sure that `max_model_len` is no smaller than the number of text tokens."),
         "prompt is too long: 5000 tokens > 4096 maximum"),
        (openai("This model's maximum context length is 4096 tokens. However, your prompt contains "
                "99999 characters (more than 40960 characters, which is the upper bound for 4096 "
                "input tokens). Please reduce the length of the input prompt."),
         "prompt is too long: 24999 tokens > 4096 maximum"),
        (openai("The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
         "prompt is too long: 9000 tokens > 8192 maximum"),
        (anthropic("prompt is too long: 210000 tokens > 200000 maximum"),
         "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)  # fmt: skip
def test_42_a_prompt_that_does_not_fit_is_told_in_the_words_that_compact(
    body: bytes, told: str
) -> None:
    refusal = refusal_of(400, body, prompt_estimate=24999)
    assert isinstance(refusal, OverflowRefusal)
    assert (refusal.status, refusal.message) == (400, told)


@pytest.mark.parametrize(
    ("message", "estimate", "told"),
    [
        (("max_tokens=32000 cannot be greater than max_model_len=max_total_tokens=16384. Please "
         "request fewer output tokens."), 9000, "9000 + 32000 > 16384"),
        (VLLM_0_27, 9000, "9000 + 32000 > 32768"),
        (("This model's maximum context length is 32768 tokens. However, you requested "
         "41000 tokens (9000 in the messages, 32000 in the completion)."), 100,
         "9000 + 32000 > 32768"),
        (("'max_tokens' is too large: 32000. This model's maximum context length is 32768 tokens "
         "and your request has 9000 input tokens (32000 > 32768 - 9000)."), 100,
         "9000 + 32000 > 32768"),
    ],
)  # fmt: skip
def test_42_an_answer_that_does_not_fit_is_told_in_the_words_that_ask_for_less(
    message: str, estimate: int, told: str
) -> None:
    refusal = refusal_of(400, openai(message), prompt_estimate=estimate)
    assert refusal.message == (
        f"input length and `max_tokens` exceed context limit: {told}, decrease input length or "
        "`max_tokens` and try again"
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (openai("[{'loc': ('body', 'messages', 1, 'role'), 'msg': \"Input should be 'user'\"}]"),
         "[{'loc': ('body', 'messages', 1, 'role'), 'msg': \"Input should be 'user'\"}]"),
        (anthropic("messages.1.role: Unexpected role system"),
         "messages.1.role: Unexpected role system"),
        (b'{"detail": "max_tokens: field required"}', "max_tokens: field required"),
        (b'{"detail": [{"loc": ["body", "x"], "msg": "bad"}]}',
         '[{"loc": ["body", "x"], "msg": "bad"}]'),
        (b'{"object": "error", "message": "no", "code": 400}', "no"),
    ],
)  # fmt: skip
def test_04_what_a_validator_says_passes_in_its_own_words(body: bytes, words: str) -> None:
    refusal = refusal_of(422, body)
    assert (refusal.status, refusal.message, refusal.retry_after_s) == (400, words, None)


@pytest.mark.parametrize(
    ("status", "told", "retries"),
    [(400, 400, False), (401, 502, True), (403, 502, True), (404, 502, True), (405, 502, True),
     (408, 504, False), (413, 413, False), (418, 400, False), (422, 400, False), (429, 429, True),
     (500, 500, False), (501, 500, False), (502, 502, True), (503, 529, True), (504, 504, False),
     (529, 529, True), (599, 500, False), (302, 502, True), (200, 502, True)],
)  # fmt: skip
def test_46_no_status_makes_the_client_give_up_what_the_gateway_can_mend(
    status: int, told: int, retries: bool
) -> None:
    refusal = refusal_of(status, openai("why"))
    assert (refusal.status, refusal.retry_after_s is not None) == (told, retries)
    assert refusal.message.endswith("why")


def test_an_engine_that_is_busy_says_when_to_come_back() -> None:
    assert refusal_of(503, openai("busy"), retry_after="7").retry_after_s == 7
    assert refusal_of(503, openai("busy"), retry_after="soon").retry_after_s == 2


@pytest.mark.parametrize(
    "message",
    ["Expecting ',' delimiter: line 1 column 9 (char 8)",
     "1 error: Unterminated string starting at: line 1 column 2 (char 1)",
     "Extra data: line 1 column 3 (char 2)",
     "Invalid control character at: line 2 column 1 (char 9)",
     "Expecting value: line 1 column 1 (char 0)"],
)  # fmt: skip
def test_45_a_call_that_the_model_wrote_badly_is_no_fault_of_the_clients(message: str) -> None:
    refusal = refusal_of(400, anthropic(message))
    assert refusal.status == 500
    assert message in refusal.message


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [(524, b"<!DOCTYPE html>\n<html>timeout", 502), (500, b"Internal Server Error", 502),
     (400, b"\xff\xfe\x00", 502), (200, b"", 502), (503, b"<html>", 529), (400, b"[1]", 502),
     (400, b"[" * 5000, 502)],
)  # fmt: skip
def test_35_what_is_no_json_is_an_error_of_the_way_there(
    status: int, body: bytes, told: int
) -> None:
    refusal = refusal_of(status, body)
    assert (refusal.status, refusal.retry_after_s) == (told, 2)
    assert f"HTTP {status} and no JSON" in refusal.message
    assert len(refusal.message) < 300


def test_after_the_status_an_overflow_is_told_so_that_the_client_asks_without_a_stream() -> None:
    overflow = refusal_of(400, openai(LLAMA))
    assert told_late(overflow) == (
        "invalid_request_error",
        "prompt is too long: 5031 tokens > 2048 maximum",
    )
    assert told_late(refusal_of(500, openai("broken"))) == ("overloaded_error", "broken")
    assert told_late(Refusal(503, "starting")) == ("overloaded_error", "starting")
    assert told_late(refusal_of(400, openai("bad"))) == ("invalid_request_error", "bad")


@given(
    st.integers(100, 600),
    st.binary(max_size=50)
    | st.recursive(
        st.none() | st.text(max_size=20) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["error", "message", "detail", "n_ctx", "n_prompt_tokens", "type"]),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_every_body_is_some_refusal(status: int, body: bytes) -> None:
    refusal = refusal_of(status, body)
    assert 400 <= refusal.status < 600
    assert refusal.status not in (401, 403, 404)
    assert refusal.message
