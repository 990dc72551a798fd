"""A model file that the hub brings, in the ways that a hub goes wrong."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from a40console.engines.model_sources import HubSource
from a40console.engines.weights import ensure_file
from a40console.errors import RefusedError
from tests.engines.model_files import CONTENT, FILE, SHA256, ignore, until

LARGE_CONTENT = bytes(range(256)) * 125_000
"""The hub's library writes pieces of 10 MB: less than one of them would never be partial."""
LARGE = replace(
    FILE, sha256=hashlib.sha256(LARGE_CONTENT).hexdigest(), size_bytes=len(LARGE_CONTENT)
)


class Hub(ThreadingHTTPServer):
    """The model hub's answers for one file."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _HubHandler)
        self.content = CONTENT
        self.etag = SHA256
        self.error: tuple[int, str] | None = None
        self.hold = threading.Event()
        self.hold.set()
        self.ranges: list[str] = []


class _HubHandler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._head(0)

    def do_GET(self) -> None:
        start = 0
        if wanted := self.headers.get("Range", ""):
            self.server.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        if not self._head(start):
            return
        body = memoryview(self.server.content)[start:]
        try:
            if not self.server.hold.is_set():
                self.wfile.write(body[: len(body) * 3 // 4])
                self.server.hold.wait(30)
                body = body[len(body) * 3 // 4 :]
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def _head(self, start: int) -> bool:
        size = len(self.server.content)
        if self.server.error is not None:
            code, name = self.server.error
            self.send_response(code)
            self.send_header("X-Error-Code", name)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("ETag", f'"{self.server.etag}"')
        self.send_header("X-Linked-Etag", f'"{self.server.etag}"')
        self.send_header("X-Linked-Size", str(size))
        self.send_header("Content-Length", str(size - start))
        self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        return True


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()


def from_hub(hub: Hub, tmp_path: Path, **more: str) -> HubSource:
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return HubSource(environment | more)


async def test_the_hubs_own_library_fetches_it(hub: Hub, tmp_path: Path) -> None:
    path = await ensure_file(FILE, tmp_path / "m", ignore, sources=[from_hub(hub, tmp_path)])
    assert path.read_bytes() == CONTENT
    left = {entry.name for entry in (tmp_path / "m").iterdir()}
    assert left == {"m.gguf", ".m.gguf.verified", f".fetching-{SHA256[:12]}.lock"}


async def test_a_cancelled_download_goes_on_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    hub.content, hub.etag = LARGE_CONTENT, LARGE.sha256
    hub.hold.clear()
    seen: list[int] = []
    source = from_hub(hub, tmp_path)
    fetch = asyncio.create_task(
        ensure_file(LARGE, tmp_path / "m", lambda done, _: seen.append(done), sources=[source])
    )
    async with asyncio.timeout(20):
        await until(lambda: max(seen, default=0) > 10_000_000)
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    hub.hold.set()
    path = await ensure_file(LARGE, tmp_path / "m", ignore, sources=[source])
    assert path.read_bytes() == LARGE_CONTENT
    assert any(not wanted.startswith("bytes=0-") for wanted in hub.ranges), hub.ranges


async def test_a_partial_file_of_something_longer_is_begun_anew(hub: Hub, tmp_path: Path) -> None:
    partial = tmp_path / "m" / f".fetching-{SHA256[:12]}" / "hub.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"x" * (len(CONTENT) + 1))
    path = await ensure_file(FILE, tmp_path / "m", ignore, sources=[from_hub(hub, tmp_path)])
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ((404, "RepoNotFound"), "the hub has no owner/name"),
        ((404, "EntryNotFound"), "owner/name has no file m.gguf"),
        ((403, "GatedRepo"), "accepted its terms"),
        ((500, ""), "500"),
    ],
)
async def test_the_hubs_refusals_are_told_apart(
    hub: Hub, tmp_path: Path, error: tuple[int, str], says: str
) -> None:
    hub.error = error
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "m", ignore, sources=[from_hub(hub, tmp_path)])
    assert says in refused.value.evidence


async def test_another_file_is_seen_before_it_is_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.etag = "0" * 64
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "m", ignore, sources=[from_hub(hub, tmp_path)])
    assert "holds another m.gguf by now" in refused.value.evidence


async def test_offline_is_respected(hub: Hub, tmp_path: Path) -> None:
    offline = from_hub(hub, tmp_path, HF_HUB_OFFLINE="1")
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "m", ignore, sources=[offline])
    assert "HF_HUB_OFFLINE is set" in refused.value.evidence


async def test_a_hub_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with Hub() as gone:
        nowhere = from_hub(gone, tmp_path)
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "m", ignore, sources=[nowhere])
    assert "the hub was not reached" in refused.value.evidence
    assert asyncio.get_running_loop().time() - began_s < 10
