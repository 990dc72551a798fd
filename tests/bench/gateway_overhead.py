"""What the gateway costs, beside the same load sent straight to the engine, in one run.

    python -m tests.bench.gateway_overhead [--seconds 8]

Engine and gateway are those of `gateway_engine`, each a process of its own; this one is the load
generator. Prints the ratio of tokens per second at 32 streams and 1,200 tokens/s, the added time to
first token (median) at 8 and 32 streams, the CPU per chunk, and the chunks per second that one core
carries.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import uvloop

from tests.bench import gateway_engine
from tests.bench.gateway_load import (
    CHAT,
    MESSAGES,
    SPREAD_S,
    Load,
    TooShortError,
    blast,
    burst,
    closed_loop,
    free_port,
)

ROUNDS = 20


@contextmanager
def process(port: int, *arguments: object) -> Iterator[psutil.Process]:
    child = subprocess.Popen([sys.executable, gateway_engine.__file__, *map(str, arguments)])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(10)


def cpu_s(child: psutil.Process) -> float:
    used = child.cpu_times()
    return float(used.user + used.system)


async def compare(
    direct: int, gateway: int, path: str, child: psutil.Process, seconds: float
) -> None:
    await burst(gateway, Load(path=path), 8)
    for streams in (8, 32):
        straight, through = Load(path=path), Load(path=path)
        for _ in range(ROUNDS):
            await burst(direct, straight, streams)
            await burst(gateway, through, streams)
        added_ms = through.ttft_ms - straight.ttft_ms
        print(
            f"  {streams:2} streams starting at once: added TTFT p50 {added_ms:5.2f} ms "
            f"({straight.ttft_ms:.1f} direct)"
        )
    for streams in (8, 32):
        straight = await closed_loop(direct, path, streams, seconds)
        used_s = cpu_s(child)
        through = await closed_loop(gateway, path, streams, seconds)
        used_s = cpu_s(child) - used_s
        added_ms = through.ttft_ms - straight.ttft_ms
        used_us = used_s * 1e6 / (through.tokens * (1 + SPREAD_S / seconds))
        ratio = through.tokens_per_s / straight.tokens_per_s
        print(
            f"  {streams:2} streams, one request after another: {straight.tokens_per_s:5.0f} tok/s "
            f"direct, ratio {ratio:.4f}, added TTFT p50 {added_ms:5.2f} ms, "
            f"CPU {used_us:5.1f} µs a chunk"
        )
    used_s = cpu_s(child)
    load = await blast(gateway, path)
    used_s = cpu_s(child) - used_s
    print(
        f"  ceiling: {load.tokens / used_s:6.0f} chunks/s a core, "
        f"{load.tokens_per_s:6.0f}/s here (CPU {used_s / load.took_s:.0%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--passes", type=float, default=37.5, help="passes per second")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gwb", dir="/tmp"))
    path, direct = folder / "e.sock", free_port()
    try:
        with process(direct, "engine", path, direct, chosen.passes):
            for title, route, plugin in (
                ("pass-through", CHAT, "plugin"),
                ("usage added and cut", CHAT, "metered"),
                ("messages, guarded", MESSAGES, "plugin"),
            ):
                print(title)
                port = free_port()
                with process(port, "gateway", path, port, plugin) as child:
                    uvloop.run(compare(direct, port, route, child, chosen.seconds))
    except TooShortError as error:
        sys.exit(f"--seconds {chosen.seconds:g}: {error}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
