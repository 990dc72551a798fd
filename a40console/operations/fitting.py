"""The fit of a profile on this machine: its model's figures, its memory, its earlier starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from a40console.engines.fit import Fit, MeasuredFit, fit
from a40console.engines.fit_measured import read_measured, same_memory
from a40console.engines.fit_result import NOT_MEASURED
from a40console.engines.model_shape import find_shape
from a40console.engines.run_record import OUTPUT_FILE
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.model.snapshot import Gpu
from a40console.operations import record
from a40console.paths import Paths

LOOKED_THROUGH = 8
"""Starts of a model whose output is read at the most."""

MOST_BYTES = 4 * 2**20
"""Of an output: what a start says of its memory stands near its beginning."""


def fit_here(
    profile: Profile,
    paths: Paths,
    environment: Mapping[str, str],
    *,
    vram_bytes: int | Missing,
    devices: int = 1,
    taken_bytes: int = 0,
    host_bytes: int | Missing,
) -> Fit:
    """Whether a profile's model fits into this machine's memory; reads files, never raises.

    Args:
        profile: What is asked.
        paths: Where models and earlier starts lie.
        environment: Names the hub's cache.
        vram_bytes: Of one GPU.
        devices: GPUs here.
        taken_bytes: What others hold of a GPU.
        host_bytes: What the container may use.
    """
    return fit(
        profile,
        find_shape(profile, paths.models, environment),
        vram_bytes,
        devices=devices,
        taken_bytes=taken_bytes,
        host_bytes=host_bytes,
        measured=measured(profile, paths.engine_runs),
    )


def measured(profile: Profile, runs: Path) -> MeasuredFit | Missing:
    """What earlier starts of the model told: the newest with these settings, else the newest."""
    newest: MeasuredFit | Missing = NOT_MEASURED
    for run in islice(_of_model(profile, runs), LOOKED_THROUGH):
        if not isinstance(newest, Missing) and not same_memory(run.profile, profile):
            continue
        lines = _beginning(run.folder(runs) / OUTPUT_FILE)
        found = read_measured(run.id, run.profile, profile, lines)
        if isinstance(found, MeasuredFit) and found.same_settings:
            return found
        if isinstance(newest, Missing):
            newest = found
    return newest


def smallest_gpu_bytes(gpus: Sequence[Gpu] | Missing) -> int | Missing:
    """All the memory of the smallest GPU, as every one must take its part."""
    if isinstance(gpus, Missing):
        return gpus
    sizes = [number(gpu.memory_total_bytes) for gpu in gpus]
    known = [int(size) for size in sizes if size]
    return min(known) if known else Missing("no GPU here says how much memory it has")


def _of_model(profile: Profile, runs: Path) -> Iterator[record.RunRecord]:
    for run in record.kept(runs):
        if run.profile.model == profile.model and run.profile.kind == profile.kind:
            yield run


def _beginning(output: Path) -> list[str]:
    try:
        with output.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
