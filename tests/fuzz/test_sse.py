"""The way of an answer against streams of every kind: the client's is valid, nothing fails."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.sse_target import once
from tests.gateway.stub import DATA

SECONDS = 10
RECORDINGS = sorted(DATA.glob("*.sse"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"\x00data: [DONE]\n\n")
@example(b"\x05data: {}\r\rdata\n\n")
@example(b"\x05data: \xef\xbb\xbf{}\n\n")
@example(b'\x05event: error\ndata: {"error": []}\n\n')
@example(b"\x3fdata: " + b'{"type":' * 2000)
def test_bytes_that_may_be_anything(data: bytes) -> None:
    once(data)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(RECORDINGS),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 60)), max_size=5),
    st.floats(0, 1),
    st.integers(0, 255),
)
def test_recorded_streams_torn_and_cut(
    path: Path, wounds: list[tuple[float, bytes, int]], cut: float, first: int
) -> None:
    """Characters replaced and taken out anywhere, the end missing, events half there."""
    raw = path.read_bytes()[:4000]
    for place, put, gone in wounds:
        at = int(place * len(raw))
        raw = raw[:at] + put + raw[at + gone :]
    once(bytes([first]) + raw)
    once(bytes([first]) + raw[: int(cut * len(raw))])


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed here"
)
def test_what_coverage_leads_to(tmp_path: Path) -> None:
    """Bounded: some seconds from the recorded streams on."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in RECORDINGS:
        (corpus / path.stem).write_bytes(b"\x20" + path.read_bytes()[:3000])
    command = [
        sys.executable, "-m", "tests.fuzz.run_atheris", "tests.fuzz.sse_target", str(corpus),
        f"-max_total_time={SECONDS}", "-max_len=4000", f"-artifact_prefix={tmp_path}/",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS + 120, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
