"""What the stand-in answers, and where."""

from __future__ import annotations

import json
import socketserver
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.faults.fake_vllm.counts import ENGINE, PROMPT_TOKENS, Exposition
from tests.faults.fake_vllm.wishes import TICK_S, control, option, say


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
