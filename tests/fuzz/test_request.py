"""The request parser against bodies of every kind: understood or refused in words, nothing else."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.request_target import once
from tests.gateway.asking import RECORDED

SECONDS = 10

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text(alphabet=st.characters(), max_size=20)
    | st.sampled_from(["text", "user", "assistant", "system", "tool_use", "tool_result", "image"])
)
NAMES = (
    "model", "messages", "system", "tools", "tool_choice", "metadata", "max_tokens", "thinking",
    "context_management", "output_config", "stream", "safeguards", "temperature", "top_p", "top_k",
    "stop_sequences", "role", "content", "type", "text", "source", "data", "id", "tool_use_id",
    "name", "input", "is_error", "input_schema", "description", "defer_loading", "effort", "format",
    "schema", "budget_tokens", "user_id", "session_id", "cache_control", "thinking", "signature",
    "tool", "definition", "title", "url", "media_type",
)  # fmt: skip
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)
blocks = st.dictionaries(st.sampled_from(NAMES), anything, max_size=5) | st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking",
                "document", "search_result", "server_tool_use", "web_search_tool_result",
                "compaction", "container_upload", "tool_reference", "tool_addition",
                "tool_removal",
            ]
        )
    },
    optional={name: anything for name in NAMES if name != "type"},
)  # fmt: skip
messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]) | anything,
            "content": st.lists(blocks, max_size=4) | anything,
        },
        optional={"output_config": anything},
    ),
    max_size=5,
)
bodies = st.fixed_dictionaries(
    {"max_tokens": st.integers(1, 100_000) | anything, "messages": messages | anything},
    optional={name: anything for name in NAMES if name not in ("max_tokens", "messages")},
)


def encoded(said: str) -> bytes:
    return said.encode("utf-8", "replace")


def written(body: Any) -> bytes:
    return json.dumps(body).encode()


@settings(max_examples=200)
@given(bodies)
def test_bodies_of_wrong_types_anywhere(body: Any) -> None:
    once(written(body))


@settings(max_examples=200)
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda said: said.encode("utf-8", "replace"))
)
@example(b"\xef\xbb\xbf{}")
@example(b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}], "max_tokens": 1}')
@example(b'{"max_tokens": 1, "messages": [{"role": "user", "content": "\\udc00"}]}')
@example(b'{"max_tokens": -Infinity, "messages": []}')
@example(b'{"a": ' + b'{"a": ' * 3000 + b"1" + b"}" * 3001)
def test_bytes_that_may_be_anything(data: bytes) -> None:
    once(data)


RECORDINGS = sorted(RECORDED.glob("*_p_*.json"))


@settings(max_examples=150)
@given(
    st.sampled_from(RECORDINGS),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 6)), max_size=4),
    st.floats(0, 1),
)
def test_recorded_bodies_torn_and_cut(
    path: Path, wounds: list[tuple[float, bytes, int]], cut: float
) -> None:
    """Characters replaced and taken out anywhere, the end missing, UTF-8 split."""
    raw = written(json.loads(path.read_text())["body"])
    for place, put, gone in wounds:
        at = int(place * len(raw))
        raw = raw[:at] + put + raw[at + gone :]
    once(raw)
    once(raw[: int(cut * len(raw))])


@settings(max_examples=60)
@given(st.data())
def test_recorded_bodies_with_one_value_of_another_kind(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(RECORDINGS))
    body = json.loads(path.read_text())["body"]
    at: Any = body
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        below = at[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        at = below
    at[key] = data.draw(anything)
    once(written(body))


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed here"
)
def test_what_coverage_leads_to(tmp_path: Path) -> None:
    """Bounded: some seconds from the recorded requests on."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in RECORDINGS:
        (corpus / path.stem).write_bytes(written(json.loads(path.read_text())["body"]))
    command = [
        sys.executable, "-m", "tests.fuzz.run_atheris", "tests.fuzz.request_target", str(corpus),
        f"-max_total_time={SECONDS}", "-max_len=6000", f"-artifact_prefix={tmp_path}/",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS + 120, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
