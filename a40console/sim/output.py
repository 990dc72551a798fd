"""The process's output: lines as vLLM's logger writes them, and its report every ten seconds."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

from a40console.sim.core import Core
from a40console.sim.starting import Line

PERIOD_S = 10.0
REHEARSED_PID, REHEARSED_AT = 900, "11-30 10:00:00"

_CRASHES = {
    "starting": "ValidationError: 1 validation error for ModelConfig\n"
    "  Value error, the simulation was asked to crash here",
    "download": "OSError: [Errno 28] No space left on device",
    "load": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a "
    "total capacity of 44.43 GiB of which 512.00 MiB is free.",
    "compile": "ValueError: No available memory for the cache blocks. Try increasing "
    "`gpu_memory_utilization` when initializing the engine.",
    "capture": "RuntimeError: CUDA out of memory occurred when warming up sampler with 64 dummy "
    "requests.",
}


class Output:
    """Writes to standard output, line by line.

    `rehearsed` writes the same process and time each time, so that a rehearsal repeats itself.
    """

    def __init__(self, *, rehearsed: bool = False) -> None:
        self._pid = REHEARSED_PID if rehearsed else os.getpid()
        self._at = REHEARSED_AT if rehearsed else None

    def say(self, process: str, place: str, text: str, level: str = "INFO") -> None:
        """One line of one process."""
        at = self._at or time.strftime("%m-%d %H:%M:%S")
        self.bare(f"({process} pid={self._pid}) {level} {at} [{place}] {text}")

    def line(self, line: Line) -> None:
        """One line of a start."""
        if line.process:
            self.say(line.process, line.place, line.text, line.level)
        else:
            self.bare(line.text)

    def bare(self, text: str) -> None:
        """A line without a prefix; a full disk costs the line."""
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except OSError:
            return

    def crash(self, phase: str) -> None:
        """The last words of a start that fails in a phase."""
        self.fail(_CRASHES[phase])

    def fail(self, words: str) -> None:
        """What the engine core ends with, and the server because of it."""
        for text in words.splitlines():
            self.say("EngineCore", "core.py:1100", text, "ERROR")
        self.bare(
            "RuntimeError: Engine core initialization failed. See root cause above. "
            "Failed core proc(s): {'EngineCore': 1}"
        )

    async def statistics(self, core: Core, now_s: Callable[[], float]) -> None:
        """VLLM's report, for as long as something happens and twice after that."""
        before, quiet = (now_s(), 0, 0), 0
        while True:
            await asyncio.sleep(PERIOD_S)
            counted = core.statistics
            now = (now_s(), counted.prompt_tokens, counted.generated_tokens)
            passed_s = now[0] - before[0]
            quiet = quiet + 1 if now[1:] == before[1:] and not core.running else 0
            if quiet <= 2 and passed_s > 0:
                self._report(core, (now[1] - before[1]) / passed_s, (now[2] - before[2]) / passed_s)
            before = now

    def _report(self, core: Core, prompt_rate: float, generation_rate: float) -> None:
        counted = core.statistics
        hit = counted.hit_tokens / counted.queried_tokens if counted.queried_tokens else 0.0
        self.say(
            "APIServer",
            "loggers.py:335",
            f"Engine 000: Avg prompt throughput: {prompt_rate:.1f} tokens/s, "
            f"Avg generation throughput: {generation_rate:.1f} tokens/s, "
            f"Running: {len(core.running)} reqs, Waiting: {len(core.waiting)} reqs, "
            f"GPU KV cache usage: {core.pool.held / core.pool.size:.1%}, "
            f"Prefix cache hit rate: {hit:.1%}",
        )
        if counted.drafts:
            self.say(
                "APIServer",
                "metrics.py:120",
                f"SpecDecoding metrics: Mean acceptance length: "
                f"{1 + counted.accepted_tokens / counted.drafts:.2f}, "
                f"Accepted: {counted.accepted_tokens} tokens, "
                f"Drafted: {counted.draft_tokens} tokens, "
                f"Avg Draft acceptance rate: {counted.accepted_tokens / counted.draft_tokens:.1%}",
            )
