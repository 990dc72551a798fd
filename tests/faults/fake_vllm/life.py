"""The stand-in's life: its start, the processes below it, its end."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

from tests.faults.fake_vllm.answers import bind
from tests.faults.fake_vllm.counts import ENGINE
from tests.faults.fake_vllm.wishes import DEAF, TICK_S, control, say

PR_SET_NAME = 15  # linux/prctl.h
LOGGED_EVERY_S = 5.2
CORE = "VLLM::EngineCore"


def below(name: str, *, deaf: bool, workers: int) -> int:
    """Fork one process as vLLM names them; it outlives the server, as a busy core does."""
    pid = os.fork()
    if pid:
        return pid
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else leave_slowly)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if name.startswith("VLLM::Worker"):
        os.setsid()
    if workers:
        below(f"VLLM::Worker_TP{workers - 1}", deaf="worker" in DEAF, workers=workers - 1)
    while True:
        until_s = time.monotonic() + 1
        while control().get("burn") and name == CORE and time.monotonic() < until_s:
            sum(range(100_000))
        time.sleep(0 if control().get("burn") else 0.5)


def leave_slowly(number: int, frame: object) -> None:
    time.sleep(float(control().get("stop_s", 0)))
    os._exit(0)


def leave(number: int, frame: object) -> None:
    """The orderly end: the core is asked to go, and is not waited for very long."""
    say("APIServer", "launcher.py:140", "[shutdown] API server: shutdown triggered")
    if ENGINE.core_pid:
        with suppress(ProcessLookupError):
            os.kill(ENGINE.core_pid, signal.SIGTERM)
    leave_slowly(number, frame)


def take_memory() -> None:
    """Until the kernel ends us."""
    taken = []
    while True:
        taken.append(bytearray(os.urandom(4096)) * 2048)


def load(wishes: dict[str, Any]) -> None:
    """The phases of a start, in vLLM's words."""
    say("APIServer", "model.py:733", "Resolved architecture: LlamaForCausalLM")
    say("EngineCore", "core.py:133", "Initializing a V1 LLM engine (v0.32.0) with config: fake")
    if wishes.get("start") == "waits":
        while True:
            say("APIServer", "utils.py:600", "Waiting for 1 core engine proc(s) to start.")
            time.sleep(0.3)
    if wishes.get("start") == "nccl":
        say("Worker", "parallel_state.py:1906", "world_size=2 rank=0 local_rank=0 backend=nccl")
        say("Worker", "pynccl.py:148", "vLLM is using nccl==2.27.5")
        time.sleep(600)
    say("Worker", "cpu_model_runner.py:68", "Starting to load model fake...")
    time.sleep(float(wishes.get("ready_s", 0.2)))
    if wishes.get("start") == "fails":
        say("EngineCore", "core.py:900", "EngineCore failed to start.", "ERROR")
        os._exit(int(wishes.get("code", 1)))
    say("Worker", "default_loader.py:501", "Loading weights took 0.21 seconds")


def follow_core() -> None:
    """End as the API server does that finds its core dead."""
    while ENGINE.core_lives():
        time.sleep(TICK_S)
    say("APIServer", "core_client.py:668", "Engine core proc EngineCore_DP0 died.", "ERROR")
    os._exit(1)


def log_speed() -> None:
    """Each API server's line, of what passed through it."""
    while True:
        time.sleep(LOGGED_EVERY_S)
        for number, rate in enumerate(control().get("log_rates", [])):
            say(
                f"APIServer_{number}",
                "loggers.py:335",
                f"Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
                f"{rate:.1f} tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: "
                "25.0%, Prefix cache hit rate: 75.0%",
            )


def main() -> None:
    wishes = control()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "server" in DEAF else leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN if "server" in DEAF else leave)
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"vllm", 0, 0, 0)
    server = bind()
    ENGINE.core_pid = below(CORE, deaf="core" in DEAF, workers=int(wishes.get("workers", 0)))
    if wishes.get("dies_with_core"):
        threading.Thread(target=follow_core, daemon=True).start()
    load(wishes)
    threading.Thread(target=ENGINE.run, daemon=True).start()
    threading.Thread(target=log_speed, daemon=True).start()
    server.server_activate()
    say("APIServer", "launcher.py:47", "Application startup complete.")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(TICK_S)
        if control().get("oom"):
            take_memory()
