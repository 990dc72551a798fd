"""An engine start that has ended, as it lies in the state folder: for those who read its output."""

from __future__ import annotations

from pathlib import Path

from a40console.engines.run_record import OUTPUT_FILE
from a40console.operations import record
from a40console.operations.record import RunRecord
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles


def keep_output(
    paths: Paths, run_id: str, text: str, *, profile: str = "qwen3-coder-30b", served: bool = False
) -> Path:
    """Lay down one start; answers the file with its output."""
    folder = paths.engine_runs / run_id
    folder.mkdir(mode=0o700, parents=True)
    run = RunRecord(
        id=run_id,
        profile=load_profiles(paths.profiles).profiles[profile],
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=("vllm", "serve"),
        argv_digest="none",
        started_at="2026-11-29T13:00:00.000Z",
    )
    record.save(run, paths.engine_runs)
    if served:
        record.note_served(folder)
    output = folder / OUTPUT_FILE
    output.write_text(text, encoding="utf-8")
    return output
