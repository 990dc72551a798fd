"""A model of vLLM comes into the hub's own cache whole, checked, and goes on where it ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.engines import snapshots
from a40console.engines.snapshots import (
    fetch_snapshot,
    hub_cache,
    is_repository,
    is_verified,
    marks_file,
    read_snapshot,
    remove_snapshot,
    set_aside,
    verify,
)
from a40console.errors import CheckFailedError, RefusedError
from tests.engines.hub_server import COMMIT, ModelHub, serve

REPO = "owner/model"
WEIGHTS = bytes(range(256)) * 100_000
"""The hub's library writes pieces of 10 MB: less than one of them would never be partial."""

FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}" * 500,
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": WEIGHTS[:1000],
    "original/consolidated.00.pth": WEIGHTS[:1000],
    "model.gguf": WEIGHTS[:1000],
    "README.md": b"# A model",
}


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    with serve(ModelHub(files=dict(FILES), large={"model.safetensors"})) as served:
        yield served


@pytest.fixture
def environment(hub: ModelHub, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0"}
    return {**kept, **own, "HF_HUB_DISABLE_TELEMETRY": "1"}


@pytest.fixture
def cache(environment: dict[str, str]) -> Path:
    return hub_cache(environment)


def ignore(_: int, __: int) -> None:
    pass


async def test_vllm_finds_what_it_needs_and_nothing_else(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    seen: list[tuple[int, int]] = []
    found = await fetch_snapshot(REPO, cache, environment, lambda *both: seen.append(both))
    snapshot = cache / "models--owner--model" / "snapshots" / COMMIT
    names = {path.name for path in snapshot.iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors"}
    assert (snapshot / "model.safetensors").read_bytes() == WEIGHTS
    assert (snapshot / "model.safetensors").is_symlink()
    assert (found.commit, found.missing, found.partial_bytes) == (COMMIT, None, 0)
    assert seen[-1][0] == seen[-1][1] > len(WEIGHTS)
    hub.gets.clear()
    await fetch_snapshot(REPO, cache, environment, ignore)
    assert hub.gets == [], "what is here is not fetched again"


async def test_the_hubs_library_reads_it_as_its_own(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    await fetch_snapshot(REPO, cache, environment, ignore)
    code = (
        "from huggingface_hub import hf_hub_download, try_to_load_from_cache as find;"
        "print(find('owner/model', 'model.safetensors'));"
        "print(hf_hub_download('owner/model', 'config.json'))"
    )
    process = await asyncio.create_subprocess_exec(
        *(__import__("sys").executable, "-c", code),
        env={**environment, "HF_HUB_OFFLINE": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    lines = output.decode().split()
    assert Path(lines[0]).read_bytes() == WEIGHTS
    assert Path(lines[1]).read_bytes() == FILES["config.json"]


async def test_a_broken_connection_is_taken_up_again(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    hub.break_after = 15_000_000
    found = await fetch_snapshot(REPO, cache, environment, ignore)
    assert found.missing is None
    assert [name for name, _ in hub.ranges] == ["model.safetensors"]
    assert not hub.ranges[0][1].startswith("bytes=0-")


async def test_cancelled_it_goes_on_where_it_ended(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    hub.hold_after = 20_000_000
    seen: list[int] = []
    fetch = asyncio.create_task(
        fetch_snapshot(REPO, cache, environment, lambda here, _: seen.append(here))
    )
    async with asyncio.timeout(20):
        while max(seen, default=0) < 10_000_000:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    half = read_snapshot(REPO, cache)
    assert half is not None
    assert half.missing == "its download did not end"
    assert half.partial_bytes >= 10_000_000
    hub.hold.set()
    hub.hold_after = 0
    found = await fetch_snapshot(REPO, cache, environment, ignore)
    assert found.missing is None
    assert hub.ranges
    assert not hub.ranges[-1][1].startswith("bytes=0-")


async def test_a_file_that_is_another_is_moved_aside(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    hub.lies["model.safetensors"] = bytes(len(WEIGHTS))
    with pytest.raises(CheckFailedError, match="not the one that the hub names") as failed:
        await fetch_snapshot(REPO, cache, environment, ignore)
    [aside] = (cache / "models--owner--model" / "blobs").glob("wrong-*")
    assert str(aside) in failed.value.evidence
    found = read_snapshot(REPO, cache)
    assert found is not None
    assert found.missing
    hub.lies.clear()
    assert (await fetch_snapshot(REPO, cache, environment, ignore)).missing is None


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (404, "RepoNotFound", "the hub has no owner/model"),
        (403, "GatedRepo", "accepted its terms (set HF_TOKEN)"),
        (500, "", "500"),
    ],
)
async def test_the_hubs_refusals_are_told_apart(
    hub: ModelHub, environment: dict[str, str], cache: Path, status: int, error: str, says: str
) -> None:
    hub.status, hub.error = status, error
    with pytest.raises(RefusedError) as refused:
        await fetch_snapshot(REPO, cache, environment, ignore)
    assert says in refused.value.evidence


async def test_a_gated_model_needs_the_token_which_is_never_shown(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    hub.token = "hf_secretsecretsecret"
    with pytest.raises(RefusedError) as refused:
        await fetch_snapshot(REPO, cache, {**environment, "HF_TOKEN": "hf_wrongwrong"}, ignore)
    told = refused.value.message + refused.value.evidence + refused.value.remedy
    assert "hf_wrong" not in told
    assert "HF_TOKEN" in told
    with_token = {**environment, "HF_TOKEN": hub.token}
    assert (await fetch_snapshot(REPO, cache, with_token, ignore)).missing is None


async def test_a_hub_that_says_nothing_is_given_up(
    hub: ModelHub, environment: dict[str, str], cache: Path
) -> None:
    hub.hold_after = 1
    with pytest.raises(RefusedError, match="could not be fetched") as refused:
        await fetch_snapshot(REPO, cache, environment, ignore, stall_s=3)
    assert "nothing came for 3 s" in refused.value.evidence


async def test_what_changed_on_the_disk_is_found(
    environment: dict[str, str], cache: Path, tmp_path: Path
) -> None:
    found = await fetch_snapshot(REPO, cache, environment, ignore)
    marks = marks_file(tmp_path / "models", REPO, cache)
    assert not is_verified(found, marks)
    assert verify(found, marks) == []
    assert is_verified(found, marks)
    [blob] = (path for path in (found.folder / "blobs").iterdir() if len(path.name) == 64)
    blob.write_bytes(bytes(len(WEIGHTS)))
    assert not is_verified(found, marks)
    assert verify(found, marks) == [blob.name]
    aside = set_aside(found, blob.name)
    assert aside.exists()
    again = await fetch_snapshot(REPO, cache, environment, ignore)
    assert verify(again, marks) == []
    remove_snapshot(again, marks)
    assert read_snapshot(REPO, cache) is None
    assert not marks.exists()


async def test_what_was_hashed_as_it_came_is_not_hashed_again(
    environment: dict[str, str], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = marks_file(tmp_path / "models", REPO, cache)
    found = await fetch_snapshot(REPO, cache, environment, ignore, marks=marks)

    def hashes(path: Path, like: str) -> str:
        raise AssertionError(f"{path} is hashed again")

    monkeypatch.setattr(snapshots, "content_name", hashes)
    assert is_verified(found, marks)
    assert verify(found, marks) == []
    assert marks.stat().st_mode & 0o077 == 0


def test_shards_that_are_not_here_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "models--owner--model"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    assert getattr(read_snapshot(REPO, tmp_path), "missing", "") == "config.json"
    (snapshot / "config.json").write_text("{}")
    assert getattr(read_snapshot(REPO, tmp_path), "missing", "") == "its weights"
    index = '{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}'
    (snapshot / "model.safetensors.index.json").write_text(index)
    (snapshot / "model-1.safetensors").write_text("")
    assert getattr(read_snapshot(REPO, tmp_path), "missing", "") == "1 of 2 weight files"


def test_the_cache_is_where_its_library_has_it() -> None:
    assert hub_cache({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}) == Path("/a")
    assert hub_cache({"HF_HOME": "/b"}) == Path("/b/hub")
    assert hub_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/huggingface/hub")
    assert hub_cache({}) == Path.home() / ".cache" / "huggingface" / "hub"


def test_a_folder_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "here").mkdir(parents=True)
    assert is_repository("Qwen/Qwen3-8B-AWQ")
    assert not is_repository("models/here")
    assert not is_repository("/models/here")
    assert not is_repository("model.gguf")
