"""What was asked of an engine and is not in force, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from a40console.engines.effective import differences
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Difference
from a40console.operations.ladder import overrides, value_in_words
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus

_VLLM_NAMES = {"max_running": "max_num_seqs", "max_batched_tokens": "max_num_batched_tokens"}
"""Of settings that a placement and vLLM name differently."""


def not_in_force(run: RunRecord, lines: Sequence[str]) -> tuple[Difference, ...] | Missing:
    """What was asked of a start and is not in force: by its output, and by what a placement sets.

    Args:
        run: The start.
        lines: Its output.
    """
    said = differences(run.asked or run.profile, lines)
    if run.asked is None or not 0 < run.rung <= len(run.asked.placements):
        return said
    told = f"placement {run.rung} of {len(run.asked.placements)} serves"
    placed = {entry.setting: entry for entry in _placed(run.asked, run.rung, told)}
    listed = () if isinstance(said, Missing) else said
    known = tuple(
        replace(entry, evidence=f"{told}; {entry.evidence}") if entry.setting in placed else entry
        for entry in listed
    )
    settings = {entry.setting for entry in known}
    return (*known, *(entry for name, entry in placed.items() if name not in settings))


def _placed(asked: Profile, rung: int, told: str) -> Iterator[Difference]:
    """What a placement sets otherwise than its profile."""
    for key, value in overrides(asked.placements[rung - 1]).items():
        wanted = getattr(asked, key)
        if wanted == value:
            continue
        nothing = wanted is None or wanted == ()
        yield Difference(
            setting=_VLLM_NAMES.get(key, key) if asked.speaks_vllm else key,
            asked="the default" if nothing else value_in_words(wanted),
            effective=value_in_words(value),
            evidence=told,
        )


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
