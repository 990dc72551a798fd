"""Chat answers and every way in which an engine may cut them into chunks, for property tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Chunk = dict[str, Any]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
BROKEN_ARGUMENTS = st.sampled_from(["", "null", '{"a": ', "[1]", '"{\\"a\\": 1}"', "{}}", "  "])
USAGES = st.fixed_dictionaries(
    {"prompt_tokens": st.integers(20, 90), "completion_tokens": st.integers(0, 90)},
    optional={
        "prompt_tokens_details": st.none()
        | st.fixed_dictionaries({"cached_tokens": st.none() | st.integers(0, 20)})
    },
)

ODD: st.SearchStrategy[Any] = st.sampled_from(
    (None, True, 0, -1, 2.5, "", "x", "{}", [], ["x"], {}, {"x": 1}, [{}])
)
_FUNCTIONS = ODD | st.fixed_dictionaries({}, optional={"name": ODD, "arguments": ODD})
_CALLS = ODD | st.lists(
    ODD | st.fixed_dictionaries({}, optional={"index": ODD, "id": ODD, "function": _FUNCTIONS}),
    max_size=3,
)
_DELTAS = ODD | st.fixed_dictionaries(
    {}, optional={"content": ODD, "reasoning": ODD, "refusal": ODD, "tool_calls": _CALLS}
)
_CHOICES = ODD | st.lists(
    ODD
    | st.fixed_dictionaries(
        {}, optional={"delta": _DELTAS, "message": _DELTAS, "finish_reason": ODD, "index": ODD}
    ),
    max_size=2,
)
GARBAGE = st.fixed_dictionaries(
    {}, optional={"choices": _CHOICES, "usage": ODD, "timings": ODD, "error": ODD}
)
"""Chunks that are objects, and otherwise whatever an engine may send by mistake."""


@st.composite
def answers(draw: st.DrawFn, arguments: st.SearchStrategy[str] = ARGUMENTS) -> Chunk:
    """A whole chat answer: thoughts, text and calls, in every combination."""
    calls = draw(st.lists(st.tuples(st.sampled_from(("Bash", "Read")), arguments), max_size=4))
    message: dict[str, Any] = {
        "role": "assistant",
        "content": draw(st.none() | TEXTS | st.sampled_from(["\n", " \n\n", "a\n"])),
        draw(st.sampled_from(("reasoning", "reasoning_content"))): draw(st.none() | TEXTS),
        "tool_calls": [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": text}}
            for n, (name, text) in enumerate(calls)
        ],
    }
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": draw(st.sampled_from(("stop", "length", "tool_calls", "content_filter"))),
        "stop_reason": draw(st.sampled_from((None, 2, "END"))),
    }
    return {"id": "chatcmpl-1", "model": "smollm2", "choices": [choice], "usage": draw(USAGES)}


@st.composite
def chunkings(draw: st.DrawFn, answer: Chunk) -> list[Chunk]:
    """The answer as a stream: cut anywhere, pieces joined into one delta, calls interleaved."""
    choice = answer["choices"][0]
    pieces = _words(draw, choice["message"]) + _calls(draw, choice["message"]["tool_calls"])
    prompt = {"prompt_tokens": answer["usage"]["prompt_tokens"], "completion_tokens": 0}
    chunks: list[Chunk] = [{"choices": [_delta({"role": "assistant", "content": ""})]}]
    if draw(st.booleans()):
        chunks[0]["usage"] = prompt
    while pieces:
        size = draw(st.integers(1, 3))
        taken, pieces = pieces[:size], pieces[size:]
        chunks += [{"choices": [_delta(delta)]} for delta in _joined(taken)]
    end = {"finish_reason": choice["finish_reason"], "stop_reason": choice["stop_reason"]}
    if draw(st.booleans()):
        chunks[-1]["choices"][0] |= end
    else:
        chunks.append({"choices": [{**_delta({"tool_calls": []}), **end}]})
    if draw(st.booleans()):
        chunks[-1]["usage"] = answer["usage"]
    else:
        chunks.append({"choices": [], "usage": answer["usage"]})
    return chunks


def _delta(delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def _words(draw: st.DrawFn, message: dict[str, Any]) -> list[tuple[str, Any]]:
    kinds = [name for name in message if name.startswith("reasoning")]
    return [
        (kind, part)
        for kind in (*kinds, "content")
        if message[kind] is not None
        for part in _cut(draw, message[kind])
    ]


def _calls(draw: st.DrawFn, calls: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The pieces of every call in their order, those of several calls shuffled together."""
    waiting: list[list[dict[str, Any]]] = []
    for index, call in enumerate(calls):
        function = call["function"]
        head = {"index": index, "id": call["id"], "type": "function"}
        parts = _cut(draw, function["arguments"])
        waiting.append(
            [
                {**head, "function": {"name": function["name"], "arguments": ""}},
                *({"index": index, "function": {"arguments": part}} for part in parts),
            ]
        )
    pieces: list[tuple[str, Any]] = []
    begun = 0
    while any(waiting):
        # A call begins after those before it have begun; then they may go on in any order.
        open_ones = [n for n, parts in enumerate(waiting) if parts and n <= begun]
        chosen = draw(st.sampled_from(open_ones))
        begun = max(begun, chosen + 1)
        pieces.append(("tool_calls", waiting[chosen].pop(0)))
    return pieces


def _joined(pieces: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """As few deltas as hold these pieces in their order: a thought, a text and several calls."""
    order = {"reasoning": 0, "reasoning_content": 0, "content": 1, "tool_calls": 2}
    deltas: list[dict[str, Any]] = [{}]
    last = 0
    for kind, value in pieces:
        if order[kind] < last:
            deltas.append({})
        last = order[kind]
        if kind == "tool_calls":
            deltas[-1].setdefault(kind, []).append(value)
        else:
            deltas[-1][kind] = deltas[-1].get(kind, "") + value
    return deltas
