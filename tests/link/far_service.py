"""The other end of a link without a console: what `endpoint` says, its socket, its gateway."""

from __future__ import annotations

import json
import shutil
import socketserver
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from a40console.model.snapshot import PROTOCOL_VERSION

SCRIPT = """#!/bin/sh
echo "$@" >>{folder}/called
cat {folder}/greeting 2>/dev/null
cat {folder}/endpoint
"""


class _OnSocket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class FarService:
    """A service whose gateway can move, behind a command that says where it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "console"
        self.control = folder / "control.sock"
        self.command.write_text(SCRIPT.format(folder=folder))
        self.command.chmod(self.command.stat().st_mode | stat.S_IXUSR)
        self._gateways: list[ThreadingHTTPServer] = []
        self._control = _OnSocket(str(self.control), _handler(self._hello))
        _serve(self._control)
        self.gateway = ""
        self.move_gateway("first")

    def move_gateway(self, name: str) -> None:
        """Let the gateway listen on another port, from which it answers with this name."""
        while self._gateways:
            _end(self._gateways.pop())
        made = ThreadingHTTPServer(("127.0.0.1", 0), _handler(lambda: {"gateway": name}))
        made.daemon_threads = True
        _serve(made)
        self._gateways.append(made)
        self.gateway = f"127.0.0.1:{made.server_port}"
        self.say()

    def say(self, **changes: Any) -> None:
        """What the command prints from now on."""
        endpoint = {
            "version": "0.1.0",
            "protocol": PROTOCOL_VERSION,
            "running": True,
            "control_socket": str(self.control),
            "gateway": self.gateway,
        }
        (self.folder / "endpoint").write_text(json.dumps(endpoint | changes) + "\n")

    def greet(self, text: str) -> None:
        """What the login shell says before."""
        (self.folder / "greeting").write_text(text)

    def called(self) -> list[str]:
        """With which words the command was called."""
        return (self.folder / "called").read_text().splitlines()

    def close(self) -> None:
        """Listen no more."""
        for server in (self._control, *self._gateways):
            _end(server)

    def _hello(self) -> dict[str, str]:
        return {"gateway_url": f"http://{self.gateway}"}


@contextmanager
def far_service() -> Iterator[FarService]:
    """One that ends with the block, in a short folder."""
    folder = Path(tempfile.mkdtemp(prefix="a40far-", dir="/tmp"))
    made = FarService(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def _serve(server: socketserver.BaseServer) -> None:
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()


def _end(server: socketserver.BaseServer) -> None:
    server.shutdown()
    server.server_close()


def _handler(answer: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

        def address_string(self) -> str:
            return "local"

    return Handler
