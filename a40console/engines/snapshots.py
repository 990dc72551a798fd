"""Models of vLLM in the hub's own cache: what is there, fetching, checking, removing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from a40console.engines.child import run_child
from a40console.engines.hub import INCOMPLETE, content_name
from a40console.engines.model_sources import HUB_SCRIPT
from a40console.engines.weights import PROGRESS_PERIOD_S, STALL_S, Progress
from a40console.errors import CheckFailedError, ConsoleError, RefusedError
from a40console.files import parse_json, write_private
from a40console.model.wording import size

WEIGHTS = (".safetensors", ".bin", ".pt")
INDEX = "*.safetensors.index.json"
STAT_BLOCK_BYTES = 512
_CONTENT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A blob's name: the hash of its content."""


@dataclass(frozen=True, slots=True)
class CachedRepository:
    """A repository in the hub's cache."""

    repo: str
    folder: Path
    commit: str | None
    """The commit that is complete, or would be; None where nothing is named yet."""

    size_bytes: int
    """Of all commits that are there."""

    partial_bytes: int
    """Of that, what downloads that did not end left."""

    missing: str | None
    """What an engine would have to fetch first; None where it is complete."""


def hub_home(environment: Mapping[str, str]) -> Path:
    """The folder of the hub's library, by the variables that it reads."""
    caches = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(environment.get("HF_HOME") or f"{caches}/huggingface").expanduser()


def hub_token_file(environment: Mapping[str, str]) -> Path:
    """Where the hub's library keeps its token."""
    if named := environment.get("HF_TOKEN_PATH"):
        return Path(named).expanduser()
    return hub_home(environment) / "token"


def hub_cache(environment: Mapping[str, str]) -> Path:
    """The hub's cache, by the variables that its library reads."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := environment.get(name):
            return Path(named).expanduser()
    return hub_home(environment) / "hub"


def is_repository(model: str) -> bool:
    """Whether a profile's model is a repository on the hub, and not a folder of this disk."""
    plain = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", model) is not None
    return plain and not Path(model).exists()


def read_snapshot(repo: str, cache: Path) -> CachedRepository | None:
    """What the cache holds of a repository; None where it holds nothing."""
    folder = repository_folder(repo, cache)
    if not folder.is_dir():
        return None
    sizes = {blob.name: size for blob, size in _blobs(folder)}
    commit = _commit(folder)
    partial = sum(size for name, size in sizes.items() if INCOMPLETE in name)
    return CachedRepository(
        repo=repo,
        folder=folder,
        commit=commit,
        size_bytes=sum(sizes.values()),
        partial_bytes=partial,
        missing=_missing(folder, commit),
    )


def repository_folder(repo: str, cache: Path) -> Path:
    """Where the cache keeps a repository."""
    return cache / f"models--{repo.replace('/', '--')}"


async def fetch_snapshot(
    repo: str,
    cache: Path,
    environment: Mapping[str, str],
    progress: Progress,
    *,
    marks: Path | None = None,
    stall_s: float = STALL_S,
) -> CachedRepository:
    """Fetch what vLLM needs of a repository; cancelled, the next fetch goes on where it ended.

    Args:
        repo: On the hub.
        cache: The hub's.
        environment: Names the hub and its token.
        progress: Is told how far it is.
        marks: As for `verify`: what was hashed as it came is not hashed again.
        stall_s: A hub that brings nothing for so long is given up.

    Raises:
        RefusedError: If it does not come, or the disk has no room for it.
        CheckFailedError: If a file is not the one that the hub names; it is moved aside.
    """
    download = _Download(repo, repository_folder(repo, cache), progress)
    words = [sys.executable, "-P", str(HUB_SCRIPT), "snapshot", repo, str(cache)]
    child = asyncio.create_task(run_child(words, environment, on_output=download.take))
    try:
        await download.watch(child, stall_s)
        ended = await child
    finally:
        if not child.done():
            child.cancel()
            with suppress(asyncio.CancelledError):
                await child
        if marks is not None and download.checked:
            _write_marks(marks, _read_marks(marks) | download.checked)
    if "error" in download.answer or ended.code != 0:
        raise _trouble(repo, cache, download.answer, ended.last_error)
    found = read_snapshot(repo, cache)
    if found is None or found.missing:
        raise RefusedError(f"{repo} is not complete", evidence=(found and found.missing) or "")
    return found


def verify(snapshot: CachedRepository, marks: Path) -> list[str]:
    """Hash what was not hashed before: the blobs whose content is not what their name says.

    Args:
        snapshot: What to look at.
        marks: A file of ours that remembers what was hashed, by size and time of change.
    """
    known = _read_marks(marks)
    wrong = []
    for blob, _ in _blobs(snapshot.folder):
        if not _CONTENT.fullmatch(blob.name):
            continue
        mark = _mark(blob)
        if known.get(blob.name) == mark:
            continue
        if content_name(blob, blob.name) == blob.name:
            known[blob.name] = mark
        else:
            wrong.append(blob.name)
    _write_marks(marks, known)
    return wrong


def set_aside(snapshot: CachedRepository, blob: str) -> Path:
    """Move a blob out of the way, so that the next fetch brings it anew; where it is now."""
    aside = snapshot.folder / "blobs" / f"wrong-{blob[:12]}"
    (snapshot.folder / "blobs" / blob).replace(aside)
    return aside


def is_verified(snapshot: CachedRepository, marks: Path) -> bool:
    """Whether every blob was hashed and has not changed since."""
    known = _read_marks(marks)
    blobs = [blob for blob, _ in _blobs(snapshot.folder) if _CONTENT.fullmatch(blob.name)]
    return bool(blobs) and all(known.get(blob.name) == _mark(blob) for blob in blobs)


def marks_file(models: Path, repo: str, cache: Path) -> Path:
    """Where we remember what was hashed of a repository in a cache."""
    place = hashlib.sha256(str(repository_folder(repo, cache)).encode()).hexdigest()[:12]
    return models / f".verified-{place}.json"


def remove_snapshot(snapshot: CachedRepository, marks: Path) -> None:
    """Remove a repository from the cache.

    Raises:
        OSError: If the disk does not let go of it.
    """
    shutil.rmtree(snapshot.folder)
    marks.unlink(missing_ok=True)
    locks = snapshot.folder.parent / ".locks" / snapshot.folder.name
    shutil.rmtree(locks, ignore_errors=True)


@dataclass(slots=True)
class _Download:
    """A snapshot on its way: what the child tells, beside what stands on the disk."""

    repo: str
    folder: Path
    progress: Progress
    files: list[dict[str, Any]] = field(default_factory=list)
    checked: dict[str, list[int]] = field(default_factory=dict)
    """What came and was hashed, with the mark that it had then."""

    answer: dict[str, str] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """A line of the child's."""
        try:
            told = json.loads(line)
        except ValueError:
            return
        if "files" in told:
            self.files = told["files"]
        elif "checked" in told:
            with suppress(OSError):
                self.checked[told["checked"]] = _mark(self.folder / "blobs" / told["checked"])
        else:
            self.answer = told

    async def watch(self, child: asyncio.Task[Any], stall_s: float) -> None:
        """Tell the progress until the child ends; give it up when nothing comes."""
        clock = asyncio.get_running_loop().time
        most, moved_s, is_checked = -1, clock(), False
        while not (await asyncio.wait({child}, timeout=PROGRESS_PERIOD_S))[0]:
            if self.files and not is_checked:
                self._demand_room()
                is_checked = True
            here, whole = self._here(), self._whole()
            if here != most:
                most, moved_s = here, clock()
                if whole:
                    self.progress(here, whole)
            elif clock() - moved_s > stall_s and here < whole:
                raise RefusedError(
                    f"{self.repo} could not be fetched",
                    evidence=f"nothing came for {stall_s:.0f} s",
                    remedy="Look at the network; the same command goes on where this one ended.",
                )
        if whole := self._whole():
            self.progress(self._here(), whole)

    def _whole(self) -> int:
        return sum(file["size"] for file in self.files)

    def _here(self) -> int:
        total = 0
        for file in self.files:
            blob = self.folder / "blobs" / file["blob"]
            for path in (blob, blob.with_name(blob.name + INCOMPLETE)):
                with suppress(OSError):
                    total += min(path.stat().st_size, file["size"])
                    break
        return total

    def _demand_room(self) -> None:
        needed = self._whole() - self._here()
        free = shutil.disk_usage(_existing(self.folder)).free
        if free < needed:
            raise RefusedError(
                f"There is no room for {self.repo}",
                evidence=f"{size(needed)} are needed in {self.folder.parent}, and "
                f"{size(free)} are free",
                remedy="Free space there, or set HF_HOME to a folder on another disk.",
            )


def _trouble(repo: str, cache: Path, answer: Mapping[str, str], last_error: str) -> ConsoleError:
    evidence = answer.get("error", last_error)
    if "wrong" in answer:
        return CheckFailedError(
            f"A file of {repo} is not the one that the hub names",
            evidence=evidence,
            remedy="Remove what was moved aside; the same command fetches that file again.",
        )
    if "No space left" in evidence:
        remedy = f"Free space in {cache}, or set HF_HOME to a folder on another disk."
        return RefusedError(
            f"The disk became full while fetching {repo}", evidence=evidence, remedy=remedy
        )
    return RefusedError(
        f"{repo} could not be fetched",
        evidence=evidence,
        remedy="The same command goes on where this one ended. HF_ENDPOINT names another hub, "
        "HF_TOKEN opens what is gated.",
    )


def _blobs(folder: Path) -> Iterator[tuple[Path, int]]:
    """Every content with the bytes that stand on the disk."""
    with suppress(OSError):
        for entry in os.scandir(folder / "blobs"):
            status = entry.stat(follow_symlinks=False)
            yield Path(entry.path), min(status.st_size, status.st_blocks * STAT_BLOCK_BYTES)


def _commit(folder: Path) -> str | None:
    with suppress(OSError):
        return (folder / "refs" / "main").read_text(encoding="ascii").strip()
    return None


def _missing(folder: Path, commit: str | None) -> str | None:
    """What the snapshot lacks for vLLM to load it without the hub."""
    if commit is None:
        return "its download did not end"
    snapshot = folder / "snapshots" / commit
    if not (snapshot / "config.json").exists():
        return "config.json"
    for index in snapshot.glob(INDEX):
        with suppress(OSError, ValueError, AttributeError):
            names = set(parse_json(index.read_bytes())["weight_map"].values())
            absent = sorted(name for name in names if not (snapshot / name).exists())
            return f"{len(absent)} of {len(names)} weight files" if absent else None
    if not any(path.suffix in WEIGHTS and path.exists() for path in snapshot.iterdir()):
        return "its weights"
    return None


def _mark(blob: Path) -> list[int]:
    status = blob.stat()
    return [status.st_size, status.st_mtime_ns]


def _read_marks(marks: Path) -> dict[str, list[int]]:
    with suppress(OSError, ValueError):
        known = parse_json(marks.read_bytes())
        return known if isinstance(known, dict) else {}
    return {}


def _write_marks(marks: Path, known: Mapping[str, list[int]]) -> None:
    with suppress(OSError):  # without the marks they are hashed again, no more
        marks.parent.mkdir(parents=True, exist_ok=True)
        write_private(marks, json.dumps(known))


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())
