"""What was asked of an engine and is not in force, in words."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.snapshot import Difference
from a40console.operations.status import EngineStatus


def in_words(entry: Difference) -> str:
    """`asked 16384, runs 2048`."""
    effective = entry.effective
    runs = f"not known ({effective.reason})" if isinstance(effective, Missing) else effective
    asked = "nothing was asked" if entry.asked is None else f"asked {entry.asked}"
    return f"{asked}, runs {runs}"


def evidence_of(status: EngineStatus) -> dict[str, str]:
    """For the event of a start: each such setting with what was asked and what runs."""
    found = status.differences
    if isinstance(found, Missing):
        return {}
    return {f"not in force: {entry.setting}": in_words(entry) for entry in found}
