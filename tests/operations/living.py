"""What operations find on a machine: an engine that lives, an environment that is installed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from a40console.engines.installing.environments import Stamp, write_stamp
from a40console.engines.launching import Launch
from a40console.engines.process import EngineProcess
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.record import RunRecord
from a40console.paths import Paths


@asynccontextmanager
async def living_engine(
    paths: Paths, profile: Profile, argv: tuple[str, ...] = ("sleep", "60")
) -> AsyncIterator[RunRecord]:
    """A process that stands for the engine of a profile; `argv` is what its record says."""
    run = RunRecord(
        id=f"2026-11-29T12-00-00-{profile.name}",
        profile=profile,
        base_url="http://localhost",
        socket_path=None,
        plugin=False,
        argv=argv,
        argv_digest="0" * 12,
        started_at="2026-11-29T12:00:00.000+00:00",
    )
    folder = run.folder(paths.engine_runs)
    launch = Launch(("sleep", "60"), {"PATH": os.environ["PATH"]}, Path("/"))
    process = await EngineProcess.start(folder, launch)
    record.save(run, paths.engine_runs)
    try:
        yield run
    finally:
        await process.stop(term_timeout_s=2)


def fake_environment(
    paths: Paths, build: str, version: str = "0.33.0", cuda: str | None = None
) -> Path:
    """An environment as it lies on the disk, without anything that runs."""
    name = f"vllm-{version}{'-cpu' if build == 'cpu' else ''}"
    folder = paths.environments / name
    site = folder / "lib/python3.11/site-packages"
    shown = f"{version}+cpu" if build == "cpu" else version
    (site / f"vllm-{shown}.dist-info").mkdir(parents=True)
    if cuda:
        (site / f"nvidia_cuda_runtime-{cuda}.dist-info").mkdir()
    (folder / "bin").mkdir()
    for program in ("vllm", "python"):
        path = folder / "bin" / program
        path.write_text(f"#!{folder}/bin/python\n")
        path.chmod(0o755)
    stamp = Stamp(
        version=version,
        build="cpu" if build == "cpu" else "gpu",
        python="3.11.7",
        torch="2.14.0",
        cuda=cuda,
        packages=3,
        size_bytes=1,
        installed_at="2026-11-29T12:00:00+00:00",
    )
    write_stamp(folder, stamp)
    return folder
