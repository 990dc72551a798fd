"""What the stand-in counts, and the text of its metrics."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from typing import Any

from tests.faults.fake_vllm.wishes import TICK_S, control, option

PROMPT_TOKENS = 40
BOUNDS = ("0.01", "0.05", "0.1", "1.0", "+Inf")
TTFT_BOUNDS = ("0.1", "0.25", "0.5", "0.75", "1.0", "5.0", "20.0", "80.0", "+Inf")
STARTED_UNIX_S = time.time()


class Engine:
    """Requests and counters."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.streams = 0
        self.generated_now = False
        self.core_pid = 0
        self.epoch = 0
        self.rate = 40.0
        self.hit_ratio = 0.75
        self.clear()

    def clear(self) -> None:
        self.generated = self.prompt = self.first_tokens = self.hit = self.passes = 0.0
        self.waited: dict[float, float] = {}
        self.began_unix_s = time.time()

    def admit(self) -> None:
        with self.lock:
            self.streams += 1
            self.prompt += PROMPT_TOKENS
            self.hit += PROMPT_TOKENS * self.hit_ratio

    def count(self, tokens: int, *, first: bool) -> None:
        with self.lock:
            self.generated += tokens
            self.generated_now = True
            self.first_tokens += first
            if first:
                self.wait({}, 1)

    def wait(self, wishes: dict[str, Any], first_tokens: float) -> None:
        """First tokens, in equal shares after each of the seconds that were wished for."""
        waits = wishes.get("ttft", [0.03])
        for seconds in waits:
            known = self.waited.get(seconds, 0.0)
            self.waited[seconds] = known + first_tokens / len(waits)

    def leave(self) -> None:
        with self.lock:
            self.streams -= 1

    def run(self) -> None:
        """Advance the counters as time passes."""
        last_s = time.monotonic()
        while True:
            time.sleep(TICK_S)
            wishes, now_s = control(), time.monotonic()
            with self.lock:
                self._advance(wishes, now_s - last_s)
            last_s = now_s
            if wishes.get("abort") and self.generated_now:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                os.kill(self.core_pid, signal.SIGKILL)
                os.abort()
            if wishes.get("exit") is not None:
                os._exit(int(wishes["exit"]))

    def _advance(self, wishes: dict[str, Any], elapsed_s: float) -> None:
        self.rate = float(wishes.get("rate", 40.0))
        self.hit_ratio = float(wishes.get("hit", 0.75))
        if wishes.get("epoch", self.epoch) != self.epoch:
            self.epoch = wishes["epoch"]
            self.clear()
        pretended = int(wishes.get("running", 0))
        open_now = pretended + self.streams
        if wishes.get("frozen") or not open_now or not self.core_lives():
            return
        self.generated += self.rate * elapsed_s * pretended  # real ones count their own
        self.passes += self.rate * elapsed_s
        # Pretended requests come and go once a second, each with its prompt.
        self.prompt += pretended * PROMPT_TOKENS * elapsed_s
        self.hit += pretended * PROMPT_TOKENS * self.hit_ratio * elapsed_s
        self.first_tokens += pretended * elapsed_s
        self.wait(wishes, pretended * elapsed_s)

    def core_lives(self) -> bool:
        try:
            return os.waitpid(self.core_pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False


ENGINE = Engine()


class Exposition:
    """The text of `/metrics` in vLLM's form."""

    def __init__(self, wishes: dict[str, Any]) -> None:
        self._odd: dict[str, str] = wishes.get("odd", {})
        self._created = bool(wishes.get("created", True))
        self._names = wishes.get("names", "new")
        self._labels = f'engine="0",model_name="{option("--served-model-name", "fake")}"'
        self._lines: list[str] = []

    def text(self, wishes: dict[str, Any]) -> str:
        with ENGINE.lock:
            self._gauges(wishes)
            self._counters()
        return "\n".join([*self._lines, ""])

    def _gauges(self, wishes: dict[str, Any]) -> None:
        self._lines += [
            "# HELP process_start_time_seconds Start time of the process since unix epoch.",
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {STARTED_UNIX_S}",
        ]
        self._scalar("num_requests_running", "gauge", wishes.get("running", 0) + ENGINE.streams)
        self._scalar("num_requests_waiting", "gauge", wishes.get("waiting", 0))
        self._scalar("kv_cache_usage_perc", "gauge", 0.25)
        pool = 'block_size="16",num_gpu_blocks="2912",enable_prefix_caching="True"'
        self._scalar("cache_config_info", "gauge", 1.0, pool)

    def _counters(self) -> None:
        prompt, hit = int(ENGINE.prompt), int(ENGINE.hit)
        generated, first = int(ENGINE.generated), int(ENGINE.first_tokens)
        prefixes = {"new": ("",), "old": ("gpu_",), "both": ("", "gpu_"), "none": ()}
        for prefix in prefixes[self._names]:
            self._counter(f"{prefix}prefix_cache_queries", prompt)
            self._counter(f"{prefix}prefix_cache_hits", hit)
        self._counter("prompt_tokens", prompt)
        self._counter("prompt_tokens_cached", hit)
        self._counter("generation_tokens", generated)
        self._counter("num_preemptions", 0)
        self._histogram("iteration_tokens_total", int(ENGINE.passes))
        self._histogram("inter_token_latency_seconds", max(0, generated - first))
        self._first_tokens()
        self._histogram("request_queue_time_seconds", first)

    def _scalar(self, name: str, kind: str, value: float, more: str = "") -> None:
        labels = f"{self._labels},{more}" if more else self._labels
        self._lines += [
            f"# HELP vllm:{name} As the engine counts it.",
            f"# TYPE vllm:{name} {kind}",
            self._sample(name, labels, value),
        ]

    def _counter(self, name: str, value: float) -> None:
        self._scalar(f"{name}_total", "counter", value)
        if self._created:
            self._scalar(f"{name}_created", "gauge", ENGINE.began_unix_s)

    def _histogram(self, name: str, count: int) -> None:
        self._lines += [f"# HELP vllm:{name} As measured.", f"# TYPE vllm:{name} histogram"]
        for bound in BOUNDS:
            below_bound = 0 if bound == "0.01" else count
            self._lines.append(
                self._sample(f"{name}_bucket", f'{self._labels},le="{bound}"', below_bound)
            )
        self._lines.append(self._sample(f"{name}_count", self._labels, count))
        self._lines.append(self._sample(f"{name}_sum", self._labels, count * 0.03))

    def _first_tokens(self) -> None:
        name, waited = "time_to_first_token_seconds", ENGINE.waited
        self._lines += [f"# HELP vllm:{name} As measured.", f"# TYPE vllm:{name} histogram"]
        for bound in TTFT_BOUNDS:
            below_bound = int(sum(n for wait, n in waited.items() if wait <= float(bound)))
            self._lines.append(
                self._sample(f"{name}_bucket", f'{self._labels},le="{bound}"', below_bound)
            )
        self._lines.append(self._sample(f"{name}_count", self._labels, int(sum(waited.values()))))
        total = sum(wait * n for wait, n in waited.items())
        self._lines.append(self._sample(f"{name}_sum", self._labels, total))

    def _sample(self, name: str, labels: str, value: float) -> str:
        odd = [text for start, text in self._odd.items() if name.startswith(start)]
        return f"vllm:{name}{{{labels}}} {odd[0] if odd else float(value)}"
