"""Which names a profile may give its model file: it is written below the models folder."""

from __future__ import annotations

LONGEST_BYTES = 200
"""Of one part; file systems take 255, and our marks beside the file add to it."""


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a model file, a path on the hub; None if nothing is."""
    if "\0" in name:
        return "must not hold a NUL"
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "must be a plain relative file name, below the models folder"
    if parts[-1].startswith("."):
        return "must not begin with a dot: our own marks do"
    if any(len(part.encode(errors="replace")) > LONGEST_BYTES for part in parts):
        return f"must be at most {LONGEST_BYTES} bytes long"
    return None
