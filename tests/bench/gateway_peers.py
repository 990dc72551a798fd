"""The gateway beside direct access and beside LiteLLM's proxy, the same load on each in one run.

    python -m tests.bench.gateway_peers [--seconds 6] [--litellm PROGRAM] [--markdown]

The engine is that of `gateway_engine`: it plays chat chunks and messages at one pass for all.
At 1, 8, 32 and 128 streams it prints tokens per second, the median time to first token and the CPU
of the process in between. LiteLLM is not ours to install: its `litellm` is named, or left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import uvloop

from tests.bench import gateway_engine
from tests.bench.gateway_load import CHAT, MESSAGES, Load, burst, closed_loop, free_port

STREAMS = (1, 8, 32, 128)
TOKENS_PER_S = 1200.0
"""All streams together; a single stream is held to what one stream of the engine makes."""

MOST_PASSES_PER_S = 100.0
WARMED_STREAMS = 8
START_TIMEOUT_S = 90.0
CONFIG = """
model_list:
  - model_name: m
    litellm_params:
      model: hosted_vllm/m
      api_base: http://127.0.0.1:{port}/v1
      api_key: none
litellm_settings:
  drop_params: true
  telemetry: false
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
"""


@dataclass(frozen=True)
class Row:
    """What one way came to at one number of streams."""

    way: str
    path: str
    streams: int
    tokens_per_s: float
    ttft_ms: float
    cpu_ratio: float
    """Of one core, of the process between client and engine."""


@contextmanager
def started(words: list[str], port: int, **environment: str) -> Iterator[psutil.Process]:
    """A server that answers on a port."""
    child = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert child.poll() is None, words
            assert time.monotonic() < deadline_s, words
            time.sleep(0.1)
        yield psutil.Process(child.pid)
    finally:
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(child.pid).children(recursive=True):
                process.terminate()
        child.terminate()
        child.wait(20)


def cpu_s(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    family = [process, *process.children(recursive=True)]
    return sum(used.user + used.system for used in (each.cpu_times() for each in family))


async def measure(
    way: str, port: int, process: psutil.Process | None, path: str, streams: int, seconds: float
) -> Row:
    await burst(port, Load(path=path), min(streams, WARMED_STREAMS))  # what is lazy is loaded
    before = cpu_s(process)
    began_s = time.perf_counter()
    load = await closed_loop(port, path, streams, seconds)
    spent_s = time.perf_counter() - began_s
    first = median(load.ttft_s) * 1000 if load.ttft_s else float("nan")
    used = (cpu_s(process) - before) / spent_s
    return Row(way, path, streams, load.tokens_per_s, first, used)


def engine(script: str, folder: str, port: int, streams: int) -> list[str]:
    passes = min(MOST_PASSES_PER_S, TOKENS_PER_S / streams)
    return [sys.executable, script, "engine", f"{folder}/engine.sock", str(port), str(passes)]


def run(litellm: str | None, seconds: float) -> Iterator[Row]:
    """Every way at every number of streams, one after the other."""
    script = gateway_engine.__file__
    folder = tempfile.mkdtemp(prefix="a40b-", dir="/tmp")
    direct, gateway, peer = free_port(), free_port(), free_port()
    config = Path(folder) / "litellm.yaml"
    config.write_text(CONFIG.format(port=direct))
    try:
        with ExitStack() as stack:
            words = [
                sys.executable,
                script,
                "gateway",
                f"{folder}/engine.sock",
                str(gateway),
                "plugin",
            ]
            ours = stack.enter_context(started(words, gateway))
            ways: list[tuple[str, int, psutil.Process | None]] = [
                ("direct", direct, None),
                ("a40console", gateway, ours),
            ]
            if litellm is not None:
                words = [litellm, "--config", str(config), "--port", str(peer)]
                offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
                theirs = stack.enter_context(started(words, peer, **offline))
                ways.append(("LiteLLM", peer, theirs))
            for streams in STREAMS:
                with started(engine(script, folder, direct, streams), direct):
                    for path in (CHAT, MESSAGES):
                        for way, port, process in ways:
                            yield uvloop.run(measure(way, port, process, path, streams, seconds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(rows: list[Row], *, markdown: bool) -> Iterator[str]:
    """The rows, each beside direct access of the same route and number of streams."""
    direct = {(row.path, row.streams): row for row in rows if row.way == "direct"}
    head = ("route", "streams", "way", "tok/s", "of direct", "TTFT p50", "added", "CPU")
    layout = "| {} |" if markdown else "{}"
    between = " | " if markdown else "  "
    widths = (20, 7, 10, 7, 9, 10, 9, 6)
    cells = [name.rjust(width) for name, width in zip(head, widths, strict=True)]
    yield layout.format(between.join(cells))
    if markdown:
        yield layout.format(between.join("-" * width for width in widths))
    for row in rows:
        base = direct[row.path, row.streams]
        figures = (
            row.path,
            str(row.streams),
            row.way,
            f"{row.tokens_per_s:.0f}",
            f"{row.tokens_per_s / base.tokens_per_s:.1%}",
            f"{row.ttft_ms:.1f} ms",
            f"{row.ttft_ms - base.ttft_ms:+.1f} ms",
            "–" if row.way == "direct" else f"{row.cpu_ratio:.0%}",
        )
        cells = [text.rjust(width) for text, width in zip(figures, widths, strict=True)]
        yield layout.format(between.join(cells))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--litellm", default=shutil.which("litellm"))
    parser.add_argument("--markdown", action="store_true")
    words = parser.parse_args()
    if words.litellm is None:
        print("LiteLLM is not here (pip install 'litellm[proxy]' in an environment of its own)")
    rows = list(run(words.litellm, words.seconds))
    for text in table(rows, markdown=words.markdown):
        print(text)


if __name__ == "__main__":
    main()
