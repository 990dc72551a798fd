"""A server at a URL that answers completions in its own way: without usage, or with errors."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class OddServer:
    """Streams a few words to whoever asks.

    Args:
        usage: Whether it tells tokens.
        error_every: Every so many requests are refused with HTTP 500; 0 for none.
        cut_every: Every so many streams end without their end; 0 for none.
    """

    def __init__(self, *, usage: bool = True, error_every: int = 0, cut_every: int = 0) -> None:
        self._usage, self._error_every, self._cut_every = usage, error_every, cut_every
        self._count = itertools.count(1)
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (_Handler,), {"odd": self})
        )
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: dict[str, Any]) -> tuple[int, list[dict[str, Any]], bool]:
        """Status, the stream's chunks, and whether it comes to its end."""
        number = next(self._count)
        if self._error_every and number % self._error_every == 0:
            return 500, [], True
        wanted = int(body.get("max_tokens") or body.get("max_completion_tokens") or 8)
        chunks = [{"choices": [{"index": 0, "text": "a ", "delta": {"content": "a "}}]}] * wanted
        ends = not (self._cut_every and number % self._cut_every == 0)
        last: dict[str, Any] = {
            "choices": [{"index": 0, "text": "", "delta": {}, "finish_reason": "length"}]
        }
        told = {"prompt_tokens": 32, "completion_tokens": wanted, "total_tokens": 32 + wanted}
        usage = [{"choices": [], "usage": told}] if self._usage else []
        return 200, [*chunks, last, *usage] if ends else chunks[: wanted // 2], ends


class _Handler(BaseHTTPRequestHandler):
    odd: OddServer

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._say(200, {"data": [{"id": "odd", "max_model_len": 4096}]})
        else:
            self._say(404, {"error": {"message": "no such path"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("completions"):
            self._stream(*self.odd.answer(body))
        else:
            self._say(404, {"error": {"message": "no such path"}})

    def _stream(self, status: int, chunks: list[dict[str, Any]], ends: bool) -> None:
        if status != HTTPStatus.OK:
            self._say(status, {"error": {"message": "odd"}})
            return
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        lines = [json.dumps({"id": "x", **chunk}) for chunk in chunks]
        for line in [*lines, "[DONE]"] if ends else lines:
            self.wfile.write(f"data: {line}\n\n".encode())

    def _say(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        return


@contextmanager
def odd_server(**ways: Any) -> Iterator[OddServer]:
    """One that ends with the block."""
    made = OddServer(**ways)
    try:
        yield made
    finally:
        made.close()
