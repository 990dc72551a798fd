"""An endpoint somewhere else behind our gateway: started, paid by the token, switched to."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.console import Console

pytestmark = pytest.mark.slow

KEY = "sk-nobody-else-93"
WRONG = "sk-wrong-94"
WORDS = ("one", " two", " three")
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 400},
}
PROFILE = """
kind = "attached"
base_url = "{url}"
model = "theirs"
messages_route = "translated"
start_timeout_s = 30
{key}
[price]
input = 3
cached_input = 0.3
output = 15
"""
USD = (600 * 3 + 400 * 0.3 + 10 * 15) / 1e6
"""Of one answer."""


class Handler(BaseHTTPRequestHandler):
    """Answers as OpenAI's servers do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        pass

    def _json(self, body: Any, status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _refused(self) -> bool:
        refused = self.headers.get("Authorization") != f"Bearer {KEY}"
        if refused:
            self._json({"error": {"message": "no such key"}}, 401)
        return refused

    def do_GET(self) -> None:
        if not self._refused():
            self._json({"data": [{"id": "theirs"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused():
            return
        assert body["model"] == "theirs"
        message = {"role": "assistant", "content": "".join(WORDS)}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._json({"id": "x", "choices": [choice], "usage": USAGE})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        deltas = [{"index": 0, "delta": {"content": word}} for word in WORDS]
        end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunks: list[dict[str, Any]] = [{"choices": [choice]} for choice in (*deltas, end)]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"choices": [], "usage": USAGE})
        for chunk in chunks:
            self.wfile.write(b"data: " + json.dumps({"id": "x", **chunk}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


@contextmanager
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    home = Path(tempfile.mkdtemp(prefix="a40e-", dir="/tmp"))
    made = Console(home, ENDPOINT_API_KEY=KEY)
    try:
        with endpoint() as url:
            made.configure("[gateway]\nport = 0\n[service]\ninterval_s = 0.3\n")
            key = 'api_key_variable = "ENDPOINT_API_KEY"'
            made.profile("there", PROFILE.format(url=url, key=key))
            wrong = home / "wrong.key"
            wrong.write_text(WRONG)
            wrong.chmod(0o600)
            made.profile("refused", PROFILE.format(url=url, key=f'api_key_file = "{wrong}"'))
            made.serve("--profile", "there")
            made.succeed("wait", "ready", "--timeout", "60")
            yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


def ask_both(console: Console) -> None:
    """One question by each API."""
    question = {"model": "there", "messages": [{"role": "user", "content": "count"}]}
    url = console.gateway
    chat = httpx.post(f"{url}/v1/chat/completions", json=question, trust_env=False).json()
    assert chat["choices"][0]["message"]["content"] == "one two three"
    streamed = {**question, "max_tokens": 50, "stream": True}
    text = httpx.post(f"{url}/v1/messages", json=streamed, trust_env=False).text
    events = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta["text"] for delta in deltas) == "one two three"
    usage = next(event["usage"] for event in events if event["type"] == "message_delta")
    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (600, 400)
    assert usage["output_tokens"] == 10


def test_both_apis_reach_it_and_its_dollars_are_counted(console: Console) -> None:
    before = console.status()["cost"]["usd_so_far"]
    ask_both(console)
    console.wait_for(lambda: console.status()["cost"]["usd_so_far"] > before + USD, 10)
    status = console.status()
    assert status["engine"]["kind"] == "attached"
    cost = status["cost"]
    assert (cost["kind"], cost["counted"]) == ("per_token", "all")
    assert cost["usd_so_far"] == pytest.approx(before + 2 * USD)
    assert "token" in cost["usd_per_hour"]["missing"]
    prices = cost["usd_per_million"]
    assert prices["now"] == pytest.approx(USD / 10 * 1e6)  # each answer wrote ten tokens
    assert prices["since_rent"] == pytest.approx(USD / 10 * 1e6)
    assert "does not tell" in status["throughput"]["generation_tokens_per_s"]["missing"]
    assert [found["code"] for found in status["findings"]] == []


def test_it_is_switched_to_and_a_key_that_is_refused_rolls_back(console: Console) -> None:
    console.succeed("engine", "switch", "sim-a40-qwen3-coder-30b", "--yes")
    told = console.succeed("engine", "switch", "there", "--yes")
    assert "canary" in told
    refused = console.run("engine", "switch", "refused", "--yes")
    assert refused.returncode != 0
    assert "the endpoint refused the key (HTTP 401)" in refused.stdout + refused.stderr
    status = console.status()
    assert (status["engine"]["state"], status["engine"]["profile"]) == ("serving", "there")
    ask_both(console)


def test_its_key_is_written_nowhere(console: Console) -> None:
    shown = [console.succeed("status", "--json"), console.succeed("profiles", "show", "there")]
    shown.append(console.succeed("engine", "logs"))
    files = [path for path in console.home.rglob("*") if path.is_file() and path.suffix != ".key"]
    assert len(files) > 5
    for secret in (KEY, WRONG):
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
        assert secret not in "".join(shown)
