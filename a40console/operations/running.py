"""The engines of this machine that live, as their records tell."""

from __future__ import annotations

from a40console.engines.process import EngineProcess
from a40console.operations import record
from a40console.operations.record import RunRecord
from a40console.paths import Paths


def living_runs(paths: Paths) -> tuple[RunRecord, ...]:
    """The record of every start here of which something still lives."""
    try:
        folders = [path for path in paths.engine_runs.iterdir() if path.is_dir()]
    except OSError:
        return ()
    living = (record.load(folder) for folder in folders if EngineProcess.adopt(folder) is not None)
    return tuple(run for run in living if run is not None)
