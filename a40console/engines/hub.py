"""Fetches one file from the model hub; a process of its own, which can be ended at any time.

Run by path, `python -P hub.py REPO FILE SHA256 PARTIAL`: the file grows at PARTIAL, where what an
earlier run left is continued. One JSON line on stdout says how it went: `{}` or `{"error": …}`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

LOOK_UP_TIMEOUT_S = 5.0


def fetch(repo: str, file: str, sha256: str, partial: Path) -> dict[str, str]:
    """Nothing when the file is there, or in words why it did not come."""
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    try:
        from huggingface_hub import constants, get_hf_file_metadata, get_token, hf_hub_url
        from huggingface_hub.file_download import http_get
    except ImportError as error:
        return {"error": f"huggingface_hub cannot be used: {error}"}
    if constants.HF_HUB_OFFLINE:
        return {"error": "HF_HUB_OFFLINE is set"}
    try:
        url = hf_hub_url(repo, file)
        # One question without the library's retries: a machine without the hub waits 5 s, not 40.
        known = get_hf_file_metadata(url, timeout=LOOK_UP_TIMEOUT_S)
        etag = known.etag or ""
        if re.fullmatch(r"[0-9a-f]{64}", etag) and etag != sha256:
            return {"error": f"{repo} holds another {file} by now (sha256 {etag[:12]}…)"}
        token = get_token()
        same_host = urlsplit(known.location).netloc == urlsplit(url).netloc
        # The token is the hub's, and not for the file servers that it sends us to.
        headers = {"authorization": f"Bearer {token}"} if token and same_host else {}
        # The library's own download to a folder begins anew each time; this part of it continues.
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
    except Exception as error:  # noqa: BLE001  whatever it raises is told in one line
        return {"error": in_words(error, repo, file)}
    return {}


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


if __name__ == "__main__":
    asked_repo, asked_file, asked_sha256, target = sys.argv[1:5]
    answer = fetch(asked_repo, asked_file, asked_sha256, Path(target))
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.exit("error" in answer)
