"""What speculation costs is found once it was measured on and off, and only where it loses.

On the simulated engine; SIMULATED figures are compared with each other only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.live.console import Console, console

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536
max_running = 8
prefix_caching = true
start_timeout_s = 30
arguments = ["--start-s", "0.4"]

[speculation]
start = "off"
tokens = 24
max_batched_tokens = 16384
"""
SETTINGS = "[gateway]\nport = 0\n[service]\ninterval_s = 0.3\nrestart_engine = false\n"
TOKENS = 30_000


@pytest.fixture(scope="module")
def served() -> Iterator[Console]:
    with console() as made:
        made.configure(SETTINGS)
        made.profile("sim", PROFILE)
        made.serve("--no-engine")
        made.succeed("engine", "start", "sim")
        yield made


@contextmanager
def streaming(made: Console, count: int, regime: str) -> Iterator[None]:
    """Clients that stream inside the block."""
    url, stop = f"{made.gateway}/v1/chat/completions", threading.Event()

    def stream(number: int) -> None:
        body = {
            "max_tokens": TOKENS,
            "stream": True,
            "messages": [{"role": "user", "content": f"{number}: change this code " * 40}],
            "vllm_xargs": {"answer_tokens": TOKENS, "regime": regime},
        }
        with httpx.stream("POST", url, json=body, timeout=60, trust_env=False) as answer:
            for _ in answer.iter_lines():
                if stop.is_set():
                    return

    clients = [threading.Thread(target=stream, args=(n,), daemon=True) for n in range(count)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join(30)


def until(made: Console, holds: Callable[[Any], Any], timeout_s: float = 40) -> Any:
    deadline_s = time.monotonic() + timeout_s
    while not holds(snapshot := made.status()):
        assert time.monotonic() < deadline_s, json.dumps(snapshot["speculation"])
        time.sleep(0.2)
    return snapshot


def known(snapshot: Any) -> dict[int, Any]:
    """What was measured at this load, by depth."""
    block = snapshot["speculation"]["measured_at_this_load"]
    return {each["depth"]: each["tokens_per_s"] for each in block}


def speeds(snapshot: Any) -> dict[int, float]:
    return {
        depth: figure["value"] if isinstance(figure, dict) else figure
        for depth, figure in known(snapshot).items()
    }


def losses(snapshot: Any) -> list[Any]:
    return [found for found in snapshot["findings"] if found["code"] == "spec-loses-at-load"]


def turned_on(made: Console, depth: int) -> Any:
    """Both measured: off first, then the depth."""
    until(made, lambda now: 0 in speeds(now) and not losses(now))
    made.succeed("engine", "speculation", str(depth), "--yes")
    return until(made, lambda now: now["speculation"]["mode"] == "on" and depth in speeds(now))


def test_two_that_write_prose_lose_by_deep_drafts_and_it_is_found(served: Console) -> None:
    with streaming(served, 2, "prose"):
        now = turned_on(served, 24)
        both = speeds(now)
        assert now["speculation"]["off_tokens_per_s_at_this_load"] == known(now)[0]
        assert both[24] < both[0] / 2
        found = losses(until(served, losses))
        assert len(found) == 1
        why = served.succeed("why")
    assert found[0]["title"].startswith("Speculation costs ")
    assert " tok/s with it, " in found[0]["evidence"]
    assert " without (measured at this load, 2 requests, " in found[0]["evidence"]
    assert "speculation costs " in why
    assert "decode: " not in why


def test_one_that_edits_code_gains_and_nothing_is_found(served: Console) -> None:
    served.succeed("engine", "speculation", "off", "--yes")
    with streaming(served, 1, "code_edit"):
        both = speeds(turned_on(served, 5))
        assert both[5] > both[0]
        ended_s = time.monotonic() + 5
        while time.monotonic() < ended_s:
            assert losses(served.status()) == []
        assert "speculation costs" not in served.succeed("why")
