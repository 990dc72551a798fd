"""Fetches from the model hub; a process of its own, which can be ended at any time.

Run by path: `python -P hub.py file REPO FILE SHA256 PARTIAL` lets a file grow at PARTIAL, and
`python -P hub.py snapshot REPO CACHE` fills the hub's own cache with a repository's newest commit,
as its library lays it out. What an earlier run left is continued. The last JSON line on stdout says
how it went: `{}` or `{"error": …}`, with `"wrong": …` where a file is not the one it should be. A
snapshot begins with a line that names its files, and each one that came and is right has a line.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

LOOK_UP_TIMEOUT_S = 5.0
CONNECTIONS = 4
TELLING = Lock()
"""Lines of several connections come one after the other."""

BLOCK_BYTES = 1024 * 1024
INCOMPLETE = ".incomplete"
NOT_FOR_VLLM = (
    *("original/*", "metal/*", "consolidated*", "*.gguf", "*.onnx", "*.pth", "*.msgpack", "*.h5"),
    *("*.ot", "*.mlmodel", "*.ckpt", "*.tflite", "*.md", "*.png", "*.jpg", ".gitattributes"),
)
"""The same weights in other forms, and what only people read."""

OLD_WEIGHTS = ("*.bin", "*.pt")
"""What vLLM reads only where there are no safetensors."""


class WrongFileError(Exception):
    """What came is not what was asked for."""


@dataclass(frozen=True)
class HubFile:
    """One file of a repository: its path, its length, and the name of its content."""

    name: str
    size: int
    blob: str
    """SHA-256 of a large file, git's SHA-1 of a small one: the hub's etag, and the cache's name."""


def fetch_file(repo: str, file: str, sha256: str, partial: Path) -> dict[str, str]:
    """Nothing when the file is there, or in words why it did not come."""
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
    except ImportError as error:
        return {"error": f"huggingface_hub cannot be used: {error}"}
    if (refusal := offline()) is not None:
        return refusal
    try:
        url = hf_hub_url(repo, file)
        # One question without the library's retries: a machine without the hub waits 5 s, not 40.
        known = get_hf_file_metadata(url, timeout=LOOK_UP_TIMEOUT_S)
        etag = known.etag or ""
        if re.fullmatch(r"[0-9a-f]{64}", etag) and etag != sha256:
            return {"error": f"{repo} holds another {file} by now (sha256 {etag[:12]}…)"}
        grow(partial, url, known)
    except Exception as error:  # noqa: BLE001  whatever it raises is told in one line
        return {"error": in_words(error, repo, file)}
    return {}


def fetch_snapshot(repo: str, cache: Path) -> dict[str, str]:
    """Nothing when every file of the newest commit is there, or in words why not."""
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        return {"error": f"huggingface_hub cannot be used: {error}"}
    if (refusal := offline()) is not None:
        return refusal
    file = "its list of files"
    try:
        info = HfApi().model_info(repo, files_metadata=True, timeout=LOOK_UP_TIMEOUT_S)
        files = wanted(info.siblings or ())
        if not info.sha or not files:
            return {"error": f"{repo} has no files for vLLM"}
        tell({"commit": info.sha, "files": [asdict(each) for each in files]})
        folder = cache / f"models--{repo.replace('/', '--')}"
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            # The large ones first: the last connection at work then ends with a small one.
            order = sorted(files, key=lambda each: each.size, reverse=True)
            list(threads.map(lambda each: bring(repo, info.sha or "", each, folder), order))
        note_commit(folder, info.sha)
    except WrongFileError as error:
        return {"error": str(error), "wrong": "yes"}
    except Exception as error:  # noqa: BLE001  whatever it raises is told in one line
        return {"error": in_words(error, repo, file)}
    return {}


def wanted(siblings: Iterable[Any]) -> list[HubFile]:
    """What vLLM needs of a repository's files."""
    files = []
    for each in siblings:
        blob = each.lfs.sha256 if each.lfs else each.blob_id
        if blob and not matches(each.rfilename, NOT_FOR_VLLM):
            files.append(HubFile(each.rfilename, each.size or 0, blob))
    if any(each.name.endswith(".safetensors") for each in files):
        files = [each for each in files if not matches(each.name, OLD_WEIGHTS)]
    return files


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a path is of one of these kinds."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def bring(repo: str, commit: str, file: HubFile, folder: Path) -> None:
    """One file of a snapshot: its content among the blobs, its name a link to it.

    Raises:
        WrongFileError: If its content is another; it is moved aside.
        Exception: Whatever the library raises.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    blob = folder / "blobs" / file.blob
    blob.parent.mkdir(parents=True, exist_ok=True)
    if not blob.exists():
        partial = blob.with_name(blob.name + INCOMPLETE)
        url = hf_hub_url(repo, file.name, revision=commit)
        grow(partial, url, get_hf_file_metadata(url, timeout=LOOK_UP_TIMEOUT_S))
        found = content_name(partial, file.blob)
        if found != file.blob:
            aside = blob.with_name(f"wrong-{found[:12]}")
            partial.replace(aside)
            raise WrongFileError(
                f"{file.name} came with the hash {found[:12]}… and not {file.blob[:12]}…; "
                f"it was moved to {aside}"
            )
        partial.replace(blob)
        tell({"checked": file.blob})
    pointer = folder / "snapshots" / commit / file.name
    pointer.parent.mkdir(parents=True, exist_ok=True)
    pointer.unlink(missing_ok=True)
    pointer.symlink_to(os.path.relpath(blob, pointer.parent))


def note_commit(folder: Path, commit: str) -> None:
    """What the branch stands at: from here on the snapshot is found."""
    reference = folder / "refs" / "main"
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text(commit, encoding="ascii")


def content_name(path: Path, like: str) -> str:
    """The hash of a file's content, of the kind that another one is: SHA-256, or git's SHA-1."""
    if len(like) == 64:
        digest = hashlib.sha256()
    else:
        header = f"blob {path.stat().st_size}\0".encode()
        digest = hashlib.sha1(header, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def grow(partial: Path, url: str, known: Any) -> None:
    """Download, or go on with what is there.

    The library's own download to a folder begins anew each time; this part of it continues.
    """
    from huggingface_hub import get_token
    from huggingface_hub.file_download import http_get

    token = get_token()
    same_host = urlsplit(known.location).netloc == urlsplit(url).netloc
    # The token is the hub's, and not for the file servers that it sends us to.
    headers = {"authorization": f"Bearer {token}"} if token and same_host else {}
    with partial.open("ab") as growing:
        if known.size is not None and growing.tell() > known.size:
            growing.truncate(0)
        resume_size = partial.stat().st_size
        http_get(
            known.location,
            growing,
            resume_size=resume_size,
            headers=headers,
            expected_size=known.size,
        )


def offline() -> dict[str, str] | None:
    """The refusal where the operator forbade the network."""
    from huggingface_hub import constants

    return {"error": "HF_HUB_OFFLINE is set"} if constants.HF_HUB_OFFLINE else None


def in_words(error: Exception, repo: str, file: str) -> str:
    """What went wrong, by the library's kinds of errors."""
    names = {kind.__name__ for kind in type(error).__mro__}
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "No space left on device"
    if "GatedRepoError" in names:
        return f"{repo} lets only those in who accepted its terms (set HF_TOKEN)"
    if "RepositoryNotFoundError" in names:
        return f"the hub has no {repo}, or it is private (set HF_TOKEN)"
    if "EntryNotFoundError" in names:
        return f"{repo} has no file {file}"
    if names & {"TransportError", "ConnectionError", "Timeout"}:
        return f"the hub was not reached: {first_line}"
    return f"{type(error).__name__}: {first_line}"


def tell(answer: dict[str, Any]) -> None:
    """One JSON line for whoever started us."""
    with TELLING:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    if sys.argv[1] == "file":
        outcome = fetch_file(sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
    else:
        outcome = fetch_snapshot(sys.argv[2], Path(sys.argv[3]))
    tell(outcome)
    sys.exit("error" in outcome)
