"""Everything that one engine start needs before its process: model file, plugin, address, plan."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from a40console.engines import command
from a40console.engines.capability import find_program
from a40console.engines.command import LaunchPlan, Site, argv_digest, engine_environment, plan
from a40console.engines.launching import Launch
from a40console.engines.plugin_folder import (
    TOKEN_FILE_VARIABLE,
    EngineEnvironmentError,
    engine_python,
    plugin_environment,
    write_plugin_folder,
)
from a40console.engines.weights import ensure_file
from a40console.errors import RefusedError
from a40console.files import write_private
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.record import TOKEN_FILE, RunRecord
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, make_private

ROOM_BYTES = 64 * 1024
"""What a start needs of the disk for its record and the engine's first lines."""

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


async def fetch_model(profile: Profile, paths: Paths, progress: Progress) -> Path | None:
    """The model's file on this disk, fetched if need be; None where the engine finds it itself."""
    if profile.file is None:
        return None
    make_private(paths.models)
    return await ensure_file(profile.file, paths.models, progress)


def prepare(
    profile: Profile,
    paths: Paths,
    *,
    model_path: Path | None,
    threads: int,
    vram: int | None,
    status: EngineStatus,
) -> tuple[RunRecord, Launch]:
    """Lay out a run folder and work out what the keeper starts.

    Args:
        profile: As its rung of the ladder starts it.
        paths: Where our own files lie.
        model_path: The model on this disk; None where the engine finds it itself.
        threads: For llama.cpp, where the profile names none.
        vram: Bytes in use on the GPUs before.
        status: Of this start: what was asked for, and the rung.

    Raises:
        RefusedError: If the disk or the engine's environment does not allow it.
    """
    run_id = _run_id(profile, datetime.now(UTC))
    folder = make_private(paths.engine_runs / run_id)
    make_private(paths.runtime, link=False)
    on_socket = profile.listen == "socket"
    executable = _executable(profile, paths)
    token = secrets.token_urlsafe(24)
    site = Site(
        python=sys.executable,
        embedded_script=Path(command.__file__).with_name("embedded.py"),
        model_path=model_path,
        socket_path=paths.engine_socket(run_id) if on_socket else None,
        port=None if on_socket else free_port(),
        threads=threads,
        executable=str(executable) if executable else None,
        plugin_environment=_plugin(profile, paths, folder / TOKEN_FILE, executable),
        plugin_token=token,
    )
    launch = plan(profile, site)
    run = replace(
        _record(run_id, profile, launch, vram),
        asked=status.profile if status.rung else None,
        rung=status.rung,
    )
    try:
        if run.plugin:
            write_private(folder / TOKEN_FILE, token)
        record.save(run, paths.engine_runs)
    except OSError as error:
        raise _no_room(folder, error) from error
    record.prune(paths.engine_runs)
    environment = engine_environment(os.environ, launch)
    return run, Launch(argv=launch.argv, env=environment, cwd=folder)


def check_room(paths: Paths) -> None:
    """See that a start can be written down.

    Raises:
        RefusedError: If the disk is full or read-only.
    """
    probe = make_private(paths.engine_runs) / ".room"
    try:
        write_private(probe, " " * ROOM_BYTES)
        probe.unlink()
    except OSError as error:
        raise _no_room(paths.engine_runs, error) from error


def _no_room(folder: Path, error: OSError) -> RefusedError:
    return RefusedError(
        f"The start cannot be written down in {folder}",
        evidence=str(error),
        remedy="Free space there, or set A40CONSOLE_HOME to another disk.",
    )


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _executable(profile: Profile, paths: Paths) -> Path | None:
    """The engine's program; None for the embedded server."""
    if profile.kind == "llamacpp" and profile.executable is None:
        return None
    found = find_program(profile, os.environ, paths.environments)
    return Path(found.path) if found else None


def _plugin(
    profile: Profile, paths: Paths, token_file: Path, executable: Path | None
) -> dict[str, str]:
    if profile.kind == "sim" and profile.plugin:
        return {TOKEN_FILE_VARIABLE: str(token_file)}
    if profile.kind != "vllm" or not profile.plugin or executable is None:
        return {}
    named = {**os.environ, **profile.environment}
    try:
        return plugin_environment(
            engine_python(executable),
            write_plugin_folder(make_private(paths.engine_plugin)),
            token_file,
            named.get("VLLM_PLUGINS"),
            named.get("PYTHONPATH"),
        )
    except EngineEnvironmentError as error:
        raise RefusedError(
            f"{profile.name} cannot load our plugin",
            evidence=str(error),
            remedy="Mend the environment, or set plugin = false in the profile: "
            "slots are then metered at the gateway.",
        ) from error


def _run_id(profile: Profile, at: datetime) -> str:
    """Names sort in the order of starts, also two within a second: the last one is taken over."""
    within = at.microsecond * 0x10000 // 1_000_000
    return f"{at:%Y-%m-%dT%H-%M-%S}-{within:04x}-{profile.name}"


def _record(run_id: str, profile: Profile, launch: LaunchPlan, vram: int | None) -> RunRecord:
    return RunRecord(
        id=run_id,
        profile=profile,
        base_url=launch.endpoint.base_url,
        socket_path=launch.endpoint.socket_path,
        plugin=launch.endpoint.plugin_token is not None,
        argv=launch.argv,
        argv_digest=argv_digest(launch.argv),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        vram_baseline_bytes=vram,
    )
