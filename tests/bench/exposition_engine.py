#!/usr/bin/env python3
"""Stands in for a vLLM that works: a recorded exposition whose counters move on, and no model.

Takes vLLM's arguments, so that a profile names it as its executable:

    exposition_engine.py serve MODEL --uds PATH [--scrape-port N] [--max-model-len N]

It answers `/metrics`, `/health`, `/version` and `/v1/models` on the Unix socket (or on `--host`
and `--port`), and on the scrape port for watchers that know TCP only. Both show the same figures:
they depend on the time alone. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "data/metrics/vllm-0.32-ngram-after.txt"
"""What a vLLM 0.32 with n-gram speculation said after a few requests: 64,578 bytes, 747 samples."""

DOUBLES_IN_S = 60.0
"""Every count grows by what was recorded in this time: 39 tokens/s and 16 passes/s."""

GAUGES: dict[str, tuple[float, ...]] = {
    "vllm:num_requests_running": (2.0, 3.0, 4.0, 3.0),
    "vllm:kv_cache_usage_perc": (0.125, 0.15625, 0.1875, 0.15625),
}
"""Values that take turns, one a second."""


class Exposition:
    """A recorded exposition at any later instant."""

    def __init__(self, text: str) -> None:
        self._lines: list[tuple[str, Callable[[float], str] | None]] = []
        grows = False
        for line in text.splitlines():
            if line.startswith("#"):
                grows = line.split()[1] == "TYPE" and line.split()[3] in ("counter", "histogram")
                self._lines.append((line, None))
                continue
            series, _, value = line.rpartition(" ")
            self._lines.append((series, _moving(series, value, grows=grows)))

    def at(self, elapsed_s: float) -> bytes:
        """The text so many seconds after the recording."""
        lines = (
            series if value is None else f"{series} {value(elapsed_s)}"
            for series, value in self._lines
        )
        return "\n".join((*lines, "")).encode()


def _moving(series: str, recorded: str, *, grows: bool) -> Callable[[float], str]:
    """How a sample's value follows from the seconds since the recording.

    Counts stay whole numbers and all grow by one factor, so that histograms stay cumulative.
    """
    turns = GAUGES.get(series.partition("{")[0])
    if turns is not None:
        return lambda elapsed_s: str(turns[int(elapsed_s) % len(turns)])
    if not grows:
        return lambda elapsed_s: recorded
    value = float(recorded)
    whole = value.is_integer()

    def grown(elapsed_s: float) -> str:
        now = value * (1 + elapsed_s / DOUBLES_IN_S)
        return str(float(int(now)) if whole else now)

    return grown


class Surface(BaseHTTPRequestHandler):
    """The answers, over connections that stay open as vLLM's do."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Head and body leave together."""

    exposition: Exposition
    began_s: float
    model: str
    max_model_len: int

    def do_GET(self) -> None:
        """Answer a path, or say that there is none."""
        answers: dict[str, Callable[[], tuple[str, bytes]]] = {
            "/metrics": self._metrics,
            "/health": lambda: ("text/plain", b""),
            "/version": lambda: _json({"version": "0.32.0"}),
            "/v1/models": self._models,
        }
        answer = answers.get(self.path)
        kind, body = answer() if answer else _json({"detail": "Not Found"})
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _metrics(self) -> tuple[str, bytes]:
        kind = "text/plain; version=1.0.0; charset=utf-8"
        return kind, self.exposition.at(time.monotonic() - self.began_s)

    def _models(self) -> tuple[str, bytes]:
        model = {"id": self.model, "object": "model", "max_model_len": self.max_model_len}
        return _json({"object": "list", "data": [model]})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the library's name
        """Nothing: a line a scrape would fill the engine's output."""


def _json(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


class TcpServer(ThreadingHTTPServer):
    """Over a port."""

    daemon_threads = True


class SocketServer(TcpServer):
    """Over a Unix socket."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        """Bind the path; there is no host to name."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """A connection; the library wants an address, which such a peer has not."""
        connection, _ = self.socket.accept()
        return connection, ("localhost", 0)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("serve", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--uds")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--scrape-port", type=int)
    parser.add_argument("--served-model-name")
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--exposition", type=Path, default=RECORDED)
    chosen, _ = parser.parse_known_args()  # the rest is for a real vLLM
    Surface.exposition = Exposition(chosen.exposition.read_text())
    Surface.began_s = time.monotonic()
    Surface.model = chosen.served_model_name or chosen.model
    Surface.max_model_len = chosen.max_model_len
    main_server: TcpServer
    if chosen.uds:
        main_server = SocketServer(chosen.uds, Surface)
    else:
        main_server = TcpServer((chosen.host, chosen.port), Surface)
    servers = [main_server]
    if chosen.scrape_port:
        servers.append(TcpServer(("127.0.0.1", chosen.scrape_port), Surface))
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("INFO:     Application startup complete.", flush=True)
    signal.sigwait(ends)


if __name__ == "__main__":
    main()
