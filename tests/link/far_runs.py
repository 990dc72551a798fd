"""The runs of another machine behind a control socket, which may fail in the midst of an answer."""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class _OnSocket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class FarRuns:
    """Serves documents, and remembers what was asked and noted."""

    def __init__(self, socket_path: Path, gateway: str = "127.0.0.1:1") -> None:
        self.documents: dict[str, Any] = {}
        self.versions: dict[str, str] = {}
        self.copied: dict[str, set[str]] = {}
        self.unended: list[str] = []
        self.asked: list[str] = []
        self.cut_at: dict[str, int] = {}
        """Run id to how many bytes of its document come before the connection ends, once."""

        self.forbidden = False
        self._gateway = gateway
        self._server = _OnSocket(str(socket_path), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def add(self, run_id: str, document: Any, version: str = "1") -> None:
        self.documents[run_id], self.versions[run_id] = document, version

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def documents_asked(self) -> list[str]:
        """Ids of the documents that were asked for, in order."""
        return [path.split("/")[3] for path in self.asked if path.endswith("/document")]

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "/v1/hello":
            return 200, {"gateway_url": f"http://{self._gateway}"}
        if path == "/v1/runs/leaving":
            return 200, self._leaving(query["machine"], query.get("known", ""))
        return 200, self.documents[path.split("/")[3]]

    def _leaving(self, machine: str, known: str) -> dict[str, Any]:
        runs = [
            {"id": key, "version": self.versions[key], "copied": machine in self._who_has(key)}
            for key in self.documents
        ]
        mark = str(hash(json.dumps(runs)))
        return {"mark": mark, "runs": None if mark == known else runs, "unended": self.unended}

    def _who_has(self, run_id: str) -> set[str]:
        return self.copied.setdefault(run_id, set())

    def post(self, arguments: dict[str, str]) -> tuple[int, Any]:
        if self.forbidden:
            return 409, {"message": "runs.copied is forbidden here", "exit_code": 5}
        for each in arguments["ids"].split(","):
            run_id, _, version = each.partition("@")
            if version == self.versions[run_id]:
                self._who_has(run_id).add(arguments["machine"])
        return 202, {"id": "x", "state": "running"}


def _handler(far: FarRuns) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            far.asked.append(asked.path)
            query = {key: values[0] for key, values in parse_qs(asked.query).items()}
            code, value = far.get(asked.path, query)
            cut = (
                far.cut_at.pop(asked.path.split("/")[3], None) if "document" in asked.path else None
            )
            self._say(code, value, cut)

        def do_POST(self) -> None:
            far.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._say(*far.post(json.loads(body)))

        def _say(self, code: int, value: Any, cut: int | None = None) -> None:
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:cut])
            self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            return

        def address_string(self) -> str:
            return "local"

    return Handler
