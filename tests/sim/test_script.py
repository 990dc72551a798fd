"""A scripted model: what a rule says comes out, in pieces, on both routes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.sim.script import Piece, Reader, Rule, Script, tokens_of
from a40console.sim.text import tokenize
from tests.sim.engine_process import sim_process

RULES = [
    {
        "when": "list the files",
        "say": [
            {"thinking": "a tool will do"},
            {"text": "I look."},
            {"tool": "Bash", "input": {"command": "ls -l", "timeout": 5}},
            {"tool": "Now", "input": {}},
        ],
        "times": 1,
    },
    {"when": "list", "say": [{"text": "There are two."}]},
]


@given(
    st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_pieces_come_out_whole_however_the_tokens_come(texts: list[str], cuts: list[int]) -> None:
    pieces = [Piece("text", tuple(tokenize(text))) for text in texts]
    pieces = [piece for piece in pieces if piece.tokens]
    tokens, reader = list(tokens_of(pieces)), Reader(pieces)
    said: dict[int, str] = {}
    firsts, lasts = [], []
    turn = 0
    while tokens:
        size = cuts[turn % len(cuts)]
        turn += 1
        for part in reader.parts(tokens[:size]):
            said[part.index] = said.get(part.index, "") + part.text
            firsts += [part.index] * part.first
            lasts += [part.index] * part.last
        tokens = tokens[size:]
    whole = list(range(len(pieces)))
    assert [said[index] for index in whole] == ["".join(piece.tokens) for piece in pieces]
    assert firsts == lasts == whole


def test_a_rule_speaks_as_often_as_it_may_then_the_next() -> None:
    first, second = (Piece("text", (word,)) for word in ("one", "two"))
    script = Script([Rule("go", (first,), left=2), Rule("go", (second,))])
    said = [script.answer("go on") for _ in range(3)]
    assert said == [(first,), (first,), (second,)]
    assert script.answer("stop") == ()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"say": []}]', '[{"when": "a", "say": [3]}]'])
def test_a_script_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(argparse.ArgumentTypeError, match="is no script"):
        Script.read(path)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(RULES))
    with sim_process("--script", str(path), "--speed", "20") as made:
        yield made.http


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"max_tokens": 500, "messages": [{"role": "user", "content": text}], **more}


def test_a_whole_answer_has_every_piece_and_a_rule_ends(http: httpx.Client) -> None:
    message = http.post("/v1/messages", json=asked("list the files")).json()
    kinds = [block["type"] for block in message["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert message["content"][2]["input"] == {"command": "ls -l", "timeout": 5}
    assert message["content"][3]["input"] == {}
    assert message["stop_reason"] == "tool_use"
    again = http.post("/v1/chat/completions", json=asked("list the files")).json()
    assert again["choices"][0]["message"]["content"] == "There are two."
    assert again["choices"][0]["finish_reason"] == "stop"


def test_a_streamed_answer_has_a_block_for_each_piece(http: httpx.Client) -> None:
    with http.stream("POST", "/v1/messages", json=asked("list the files", stream=True)) as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    blocks: dict[int, str] = {}
    for event in events:
        if event["type"] == "content_block_delta":
            piece = next(value for name, value in event["delta"].items() if name != "type")
            blocks[event["index"]] = blocks.get(event["index"], "") + piece
    assert blocks[0] == "a tool will do"
    assert blocks[1] == "I look."
    assert json.loads(blocks[2]) == {"command": "ls -l", "timeout": 5}
    assert json.loads(blocks[3]) == {}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert [event["type"] for event in events].count("content_block_stop") == 4


def test_a_streamed_chat_names_its_calls_by_number(http: httpx.Client) -> None:
    body = asked("list the files", stream=True)
    with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: {")]
    deltas = [json.loads(line)["choices"][0] for line in lines]
    calls: dict[int, str] = {}
    names: dict[int, str] = {}
    for choice in deltas:
        for call in choice["delta"].get("tool_calls", ()):
            names |= {call["index"]: call["function"]["name"]} if "id" in call else {}
            calls[call["index"]] = calls.get(call["index"], "") + call["function"]["arguments"]
    assert names == {0: "Bash", 1: "Now"}
    assert json.loads(calls[0]) == {"command": "ls -l", "timeout": 5}
    assert json.loads(calls[1]) == {}
    assert "".join(choice["delta"].get("content") or "" for choice in deltas) == "I look."
    assert deltas[-1]["finish_reason"] == "tool_calls"


def test_a_limit_cuts_the_last_piece_and_still_closes_it(http: httpx.Client) -> None:
    body = asked("list the files", stream=True) | {"max_tokens": 6}
    with http.stream("POST", "/v1/messages", json=body) as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    kinds = [event["type"] for event in events]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"
