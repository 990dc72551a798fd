"""Fetches one file from the model hub; a process of its own, which can be ended at any time.

Run by path, `python -P hub.py REPO FILE SHA256 FOLDER`: the file arrives in the folder, and a
partial one is continued. One JSON line on stdout says how it went: `{"path": …}` or
`{"error": …}`.
"""

from __future__ import annotations

import errno
import json
import re
import sys

LOOK_UP_TIMEOUT_S = 5.0


def fetch(repo: str, file: str, sha256: str, folder: str) -> dict[str, str]:
    """The file's path, or in words why it did not come."""
    try:
        from huggingface_hub import (
            constants,
            get_hf_file_metadata,
            hf_hub_download,
            hf_hub_url,
        )
    except ImportError as error:
        return {"error": f"huggingface_hub cannot be imported: {error}"}
    if constants.HF_HUB_OFFLINE:
        return {"error": "HF_HUB_OFFLINE is set"}
    try:
        # One question without the library's retries: a machine without the hub waits 5 s, not 40.
        known = get_hf_file_metadata(hf_hub_url(repo, file), timeout=LOOK_UP_TIMEOUT_S).etag or ""
        if re.fullmatch(r"[0-9a-f]{64}", known) and known != sha256:
            return {"error": f"{repo} holds another {file} by now (sha256 {known[:12]}…)"}
        return {"path": hf_hub_download(repo, file, local_dir=folder)}
    except Exception as error:  # noqa: BLE001  whatever it raises is told in one line
        return {"error": in_words(error, repo, file)}


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
    if "EntryNotFoundError" in names and "LocalEntryNotFoundError" not in names:
        return f"{repo} has no file {file}"
    if names & {"LocalEntryNotFoundError", "TransportError", "ConnectionError", "Timeout"}:
        return f"the hub was not reached: {first_line}"
    return f"{type(error).__name__}: {first_line}"


if __name__ == "__main__":
    answer = fetch(*sys.argv[1:5])
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.exit("error" in answer)
