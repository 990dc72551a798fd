"""A server at a URL that means harm: it sends for ever, nests, or gives a key back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE = b"z" * 65_536
CONTENT = b'data: {"choices":[{"index":0,"text":"a","delta":{"content":"a"}}]}\n\n'
END = b'data: {"choices":[{"index":0,"text":"","delta":{},"finish_reason":"length"}]}\n\n'


class HostileServer:
    """Answers completions and lists models in the way that a test sets."""

    def __init__(self) -> None:
        self.answers = "well"
        """`well`, `head` or `line` or `content` without an end, `key`: the key in an error."""

        self.lists = "well"
        """`well`, `deep`: nested, `huge`: without an end, `odd names`, `key`: the key as a name."""

        self.before_key = 0
        """Characters of the error that stand before the key."""

        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (_Handler,), {"hostile": self})
        )
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hostile: HostileServer

    def do_GET(self) -> None:
        with suppress(OSError):
            if self.path == "/v1/models":
                self._list(self.hostile.lists)
            else:
                self._say(404, {"error": {"message": "no such path"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with suppress(OSError):
            if self.path.endswith("completions"):
                self._answer(self.hostile.answers, int(body.get("max_tokens") or 8))
            else:
                self._say(404, {"error": {"message": "no such path"}})

    def _list(self, way: str) -> None:
        key = self.headers.get("Authorization", "")
        match way:
            case "deep":
                self._send(200, b'{"data":' + b"[" * 200_000)
            case "huge":
                self._begin("application/json")
                self._for_ever(PIECE)
            case "odd names":
                self._say(200, {"data": [{"id": "\ud800\x1b[2J<b>", "max_model_len": 10**300}]})
            case "key":
                self._say(200, {"data": [{"id": key}, {"id": "other"}]})
            case _:
                self._say(200, {"data": [{"id": "odd", "max_model_len": 4096}]})

    def _answer(self, way: str, tokens: int) -> None:
        match way:
            case "key":
                said = "x" * self.hostile.before_key + self.headers.get("Authorization", "")
                self._say(500, {"error": {"message": said}})
            case "head":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
                self._for_ever(PIECE)
            case "line":
                self._begin("text/event-stream")
                self.wfile.write(b"data: ")
                self._for_ever(PIECE)
            case "content":
                self._begin("text/event-stream")
                self._for_ever(CONTENT * 1000)
            case _:
                self._begin("text/event-stream")
                told = {"prompt_tokens": 32, "completion_tokens": tokens}
                usage = json.dumps({"choices": [], "usage": told}).encode()
                self.wfile.write(CONTENT * tokens + END + b"data: " + usage + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")

    def _for_ever(self, piece: bytes) -> None:
        while True:
            self.wfile.write(piece)

    def _begin(self, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def _say(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        return


@contextmanager
def hostile_server() -> Iterator[HostileServer]:
    """One that ends with the block."""
    made = HostileServer()
    try:
        yield made
    finally:
        made.close()
