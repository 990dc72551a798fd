"""A process that answers like `vllm serve`, and goes wrong like it when told to.

Standard library only: the tests copy it under a first line that names their interpreter. How it
behaves stands in the JSON file that FAKE_VLLM_CONTROL names, and is read again and again, so that
a test can change it under a running engine. Its keys, with what they are without one:

start       `ready`, or `waits` for an engine core for ever, or `nccl`: hangs in NCCL for ever, or
            `fails` with `code`
ready_s     0.2: seconds until it serves
code        1: exit code of a start that fails
exit        null: a number ends the server alone, at once, with that code
abort       false: all of it crashes with SIGABRT while it answers a request
oom         false: the server takes memory until the kernel ends it
deaf        []: who ignores SIGTERM: `server`, `core`, `worker`
workers     0: a chain of so many processes below the core, each in a session of its own
health      200: status of /health; `never` does not answer
rate        40.0: tokens a second while a request runs, of its own or pretended
running     0: requests that are pretended to run, beside the real ones
waiting     0: requests that are pretended to wait
frozen      false: no token comes out any more
epoch       0: a change lets every counter begin again
burn        false: the core keeps a CPU busy
metrics     `ok`, `empty`, `error`, `html`, `json`, `cut`, `moved`, `abroad`, `locked`, `slow`
names       `new`, `old`, `both` or `none`: how the prefix cache's counters are called
created     true: the `_created` series that vLLM exposes
odd         {}: the value of series, by the beginning of their names: `NaN`, `+Inf`
hit         0.75: share of a prompt's tokens that the prefix cache holds
ttft        [0.03]: first tokens take these seconds, in equal shares
log_rates   []: what each API server logs as its throughput, every five seconds
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socketserver
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

PR_SET_NAME = 15  # linux/prctl.h
TICK_S = 0.05
PROMPT_TOKENS = 40
BOUNDS = ("0.01", "0.05", "0.1", "1.0", "+Inf")
TTFT_BOUNDS = ("0.1", "0.25", "0.5", "0.75", "1.0", "5.0", "20.0", "80.0", "+Inf")
LOGGED_EVERY_S = 5.2
STARTED_UNIX_S = time.time()
ARGUMENTS = sys.argv[1:]


def control() -> dict[str, Any]:
    """What the test wants now; a file that is not there yet is no wish."""
    try:
        wishes: dict[str, Any] = json.loads(Path(os.environ["FAKE_VLLM_CONTROL"]).read_text())
    except (OSError, ValueError):
        return {}
    return wishes


def say(process: str, place: str, text: str, level: str = "INFO") -> None:
    """A line as vLLM's logger writes it; a full disk costs the line, as with any logger."""
    at = time.strftime("%m-%d %H:%M:%S")
    line = f"({process} pid={os.getpid()}) {level} {at} [{place}] {text}\n"
    with suppress(OSError):
        os.write(1, line.encode())


CORE = "VLLM::EngineCore"
DEAF: list[str] = control().get("deaf", [])


def option(name: str, default: str = "") -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else default


# --- The processes below the server ---------------------------------------------------------


def below(name: str, *, deaf: bool, workers: int) -> int:
    """Fork one process as vLLM names them; it outlives the server, as a busy core does."""
    pid = os.fork()
    if pid:
        return pid
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else signal.SIG_DFL)
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


# --- What it counts ---------------------------------------------------------------------------


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


# --- What it answers --------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """vLLM's routes."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Nothing: the access log is off for polled routes."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/health":
            self._health(control().get("health", 200))
        elif path == "/version":
            self._json({"version": "0.32.0"})
        elif path == "/v1/models":
            name = option("--served-model-name", "fake")
            self._json({"object": "list", "data": [{"id": name, "max_model_len": 4096}]})
        elif path in ("/metrics", "/metrics/"):
            self._metrics(path, control())
        else:
            self._json({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path != "/v1/chat/completions":
            self._json({"detail": "Not Found"}, 404)
            return
        ENGINE.admit()
        try:
            self._chat(body)
        except OSError:
            say("APIServer", "serving.py:1", "the client left")
        finally:
            ENGINE.leave()

    def _health(self, status: Any) -> None:
        if status == "never":
            time.sleep(600)
        self._send(int(status), b"", "text/plain")

    def _metrics(self, path: str, wishes: dict[str, Any]) -> None:
        mode = wishes.get("metrics", "ok")
        if mode == "slow":
            time.sleep(600)
        if mode == "abroad" or (mode == "moved" and path == "/metrics"):
            target = "http://metrics.invalid/metrics" if mode == "abroad" else "/metrics/"
            self._send(307, b"", "text/plain", {"location": target})
            return
        text = Exposition(wishes).text(wishes)
        plain = "text/plain; version=0.0.4; charset=utf-8"
        status, kind, text = {
            "empty": (200, plain, ""),
            "error": (500, plain, "Internal Server Error"),
            "html": (200, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>\n"),
            "json": (200, "application/json", '{"status": "ok"}\n'),
            "cut": (200, plain, text[: len(text) // 2]),
            "locked": (401, "application/json", '{"error": "Unauthorized"}'),
        }.get(mode, (200, plain, text))
        self._send(status, text.encode(), kind)

    def _chat(self, body: dict[str, Any]) -> None:
        count = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        options = body.get("stream_options") or {}
        usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 0, "total_tokens": 0}
        if not body.get("stream"):
            time.sleep(count / ENGINE.rate)
            ENGINE.count(count, first=True)
            usage.update(completion_tokens=count, total_tokens=PROMPT_TOKENS + count)
            message = {"role": "assistant", "content": "wave " * count}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            self._json({**self._envelope("chat.completion"), "choices": [choice], "usage": usage})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(1, count + 1):
            while control().get("frozen"):
                time.sleep(TICK_S)
            time.sleep(1 / ENGINE.rate)
            ENGINE.count(1, first=number == 1)
            usage.update(completion_tokens=number, total_tokens=PROMPT_TOKENS + number)
            last = "length" if number == count else None
            choice = {"index": 0, "delta": {"content": "wave "}, "finish_reason": last}
            chunk = {**self._envelope("chat.completion.chunk"), "choices": [choice]}
            if options.get("continuous_usage_stats"):
                chunk["usage"] = usage
            self._event(json.dumps(chunk))
        if options.get("include_usage"):
            end = {**self._envelope("chat.completion.chunk"), "choices": [], "usage": usage}
            self._event(json.dumps(end))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _envelope(self, kind: str) -> dict[str, Any]:
        name = option("--served-model-name", "fake")
        return {"id": "chatcmpl-1", "object": kind, "created": int(time.time()), "model": name}

    def _event(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(
        self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None
    ) -> None:
        try:
            self.send_response(status)
            headers = {"content-type": kind, "content-length": str(len(body)), **(more or {})}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


class Threads(socketserver.ThreadingMixIn):
    """A thread a connection; none of them keeps the process."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = False  # as servers do that then meet TIME_WAIT

    def get_request(self) -> tuple[Any, Any]:
        connection, address = self.socket.accept()  # type: ignore[attr-defined]
        return connection, address or ("local", 0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no news."""


class SocketServer(Threads, socketserver.UnixStreamServer):
    """On `--uds`."""


class PortServer(Threads, socketserver.TCPServer):
    """On `--host` and `--port`."""


def bind() -> SocketServer | PortServer:
    """Bind before the engine loads, as vLLM does, and listen once it serves."""
    server: SocketServer | PortServer
    if path := option("--uds"):
        Path(path).unlink(missing_ok=True)
        server = SocketServer(path, Handler, bind_and_activate=False)
    else:
        address = (option("--host", "127.0.0.1"), int(option("--port", "8000")))
        server = PortServer(address, Handler, bind_and_activate=False)
    server.server_bind()
    return server


# --- Its life -----------------------------------------------------------------------------------


def leave(number: int, frame: object) -> None:
    """The orderly end: the core is asked to go, and is not waited for very long."""
    say("APIServer", "launcher.py:140", "[shutdown] API server: shutdown triggered")
    if ENGINE.core_pid:
        os.kill(ENGINE.core_pid, signal.SIGTERM)
    os._exit(0)


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


if __name__ == "__main__":
    main()
