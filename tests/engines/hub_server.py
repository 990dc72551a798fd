"""A model hub in small: one repository, served as the hub's library asks for it."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "c0ffee" * 6 + "c0ff"


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


@dataclass
class ModelHub:
    """What the hub holds, and how it misbehaves."""

    repo: str = "owner/model"
    files: dict[str, bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """Files that are kept by their SHA-256."""

    url: str = ""
    token: str = ""
    """What it must be shown, if anything."""

    status: int = 0
    """An error to answer with, and its name."""

    error: str = ""
    lies: dict[str, bytes] = field(default_factory=dict)
    """Contents that are sent instead of the true ones."""

    break_after: int = 0
    """Bytes of a file after which the connection breaks, once a file."""

    broken: set[str] = field(default_factory=set)
    bytes_per_s: int = 0
    hold: threading.Event = field(default_factory=threading.Event)
    hold_after: int = 0
    """Bytes of a file after which it waits for `hold`."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    gets: list[str] = field(default_factory=list)

    def name_of(self, file: str) -> str:
        data = self.files[file]
        return hashlib.sha256(data).hexdigest() if file in self.large else git_sha1(data)

    def information(self) -> dict[str, Any]:
        siblings = []
        for file, data in self.files.items():
            entry: dict[str, Any] = {"rfilename": file, "size": len(data)}
            entry["blobId"] = git_sha1(b"pointer" if file in self.large else data)
            if file in self.large:
                entry["lfs"] = {"sha256": self.name_of(file), "size": len(data), "pointerSize": 130}
            siblings.append(entry)
        return {"id": self.repo, "modelId": self.repo, "sha": COMMIT, "siblings": siblings}


class _Handler(BaseHTTPRequestHandler):
    hub: ModelHub

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.hub, self.path.partition("?")[0]
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            self._refuse(401, "GatedRepo")
        elif hub.status:
            self._refuse(hub.status, hub.error)
        elif path.startswith(f"/api/models/{hub.repo}"):
            self._send_json(hub.information())
        elif path.startswith(f"/{hub.repo}/resolve/"):
            self._file(path.split("/resolve/")[1].partition("/")[2])
        else:
            self._refuse(404, "RepoNotFound")

    def _refuse(self, status: int, error: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", error)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send_json(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _file(self, file: str) -> None:
        hub = self.hub
        if file not in hub.files:
            self._refuse(404, "EntryNotFound")
            return
        data, start = hub.lies.get(file, hub.files[file]), 0
        if wanted := self.headers.get("Range", ""):
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        if self.command == "GET":
            hub.gets.append(file)
            if wanted:
                hub.ranges.append((file, wanted))
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hub.name_of(file)}"')
        self.send_header("X-Linked-Etag", f'"{hub.name_of(file)}"')
        self.send_header("X-Linked-Size", str(len(data)))
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            try:
                self._body(file, memoryview(data)[start:])
            except OSError:
                self.close_connection = True

    def _body(self, file: str, body: memoryview) -> None:
        hub = self.hub
        if hub.break_after and file in hub.large and file not in hub.broken:
            hub.broken.add(file)
            self.wfile.write(body[: hub.break_after])
            self.close_connection = True
            return
        if hub.hold_after and file in hub.large:
            self.wfile.write(body[: hub.hold_after])
            hub.hold.wait(30)
            body = body[hub.hold_after :]
        if not hub.bytes_per_s:
            self.wfile.write(body)
            return
        piece = max(1, hub.bytes_per_s // 20)
        for at in range(0, len(body), piece):
            self.wfile.write(body[at : at + piece])
            time.sleep(0.05)


@contextmanager
def serve(hub: ModelHub) -> Iterator[ModelHub]:
    """The hub on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        hub.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
