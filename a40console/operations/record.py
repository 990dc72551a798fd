"""What one engine start was asked to be, kept beside its output so that it can be adopted."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from a40console.engines.command import API_KEY_VARIABLES
from a40console.engines.ports import socket_is_stale
from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.engine import Endpoint, EngineEnd
from a40console.model.profile import Profile

RECORD_FILE = "run.json"
TOKEN_FILE = "plugin.token"  # noqa: S105 - a file name
SERVED_FILE = "served"
ASLEEP_FILE = "asleep"
BEFORE_FILE = "before.json"
KEPT_RUNS = 20

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What went before an engine start."""

    restarts: int = 0
    """Starts by us after it ended by itself, since it was last asked for."""

    end: EngineEnd | None = None
    """Of the engine before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One engine start: profile, address and digest."""

    id: str
    profile: Profile
    base_url: str
    socket_path: str | None
    plugin: bool
    argv: tuple[str, ...]
    argv_digest: str
    started_at: str
    vram_baseline_bytes: int | None = None
    """Memory in use on the GPUs before the start."""

    asked: Profile | None = None
    """The profile as it is written, where a placement of it was started."""

    rung: int = 0
    """Of the profile's ladder."""

    def folder(self, runs: Path) -> Path:
        """Where its output, identity and end are."""
        return runs / self.id

    def endpoint(self, runs: Path) -> Endpoint:
        """Its address, with the plugin's token read from its file."""
        token_file = self.folder(runs) / TOKEN_FILE
        token = token_file.read_text().strip() if self.plugin and token_file.exists() else None
        return Endpoint(
            self.base_url,
            socket_path=self.socket_path,
            api_key=self.profile.environment.get(API_KEY_VARIABLES.get(self.profile.kind, "")),
            plugin_token=token,
        )


def save(record: RunRecord, runs: Path) -> None:
    """Write the record into its run folder."""
    write_private(record.folder(runs) / RECORD_FILE, json.dumps(encode(record)))


def note_served(folder: Path) -> None:
    """Note that the engine has come to serve, for a service that finds it again."""
    try:
        write_private(folder / SERVED_FILE, "")
    except OSError as error:
        log.warning("that it served could not be noted: %s", error)


def has_served(folder: Path) -> bool:
    """Whether the engine of a run folder had come to serve."""
    return (folder / SERVED_FILE).exists()


def note_asleep(folder: Path, level: int) -> None:
    """Note how deep the engine sleeps, 0 for awake, for a service that finds it again."""
    try:
        if level:
            write_private(folder / ASLEEP_FILE, str(level))
        else:
            (folder / ASLEEP_FILE).unlink(missing_ok=True)
    except OSError as error:
        log.warning("that it sleeps could not be noted: %s", error)


def asleep_level(folder: Path) -> int:
    """How deep the engine of a run folder sleeps, as far as it was noted; 0 is awake."""
    try:
        return int((folder / ASLEEP_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def note_before(folder: Path, restarts: int, end: EngineEnd | None) -> None:
    """Note what went before this start, for a service that finds its engine again."""
    before = Before(restarts=restarts, end=end)
    try:
        write_private(folder / BEFORE_FILE, json.dumps(encode(before)))
    except OSError as error:
        log.warning("what went before the start could not be noted: %s", error)


def before(folder: Path) -> Before:
    """What went before the start of a run folder, as far as it was noted."""
    try:
        return decode(Before, read_json(folder / BEFORE_FILE))
    except (OSError, ValueError, DecodeError):
        return Before()


def load(folder: Path) -> RunRecord | None:
    """The record of a run folder; None where there is none that can be read."""
    try:
        return decode(RunRecord, read_json(folder / RECORD_FILE))
    except (OSError, ValueError, DecodeError):
        return None


def latest(runs: Path) -> RunRecord | None:
    """The record of the newest start."""
    return next(kept(runs), None)


def kept(runs: Path) -> Iterator[RunRecord]:
    """The records of every start that is kept, the newest first."""
    for folder in sorted(_folders(runs), reverse=True):
        if record := load(folder):
            yield record


def prune(runs: Path) -> None:
    """Remove the oldest run folders beyond those kept for looking back."""
    for folder in sorted(_folders(runs))[:-KEPT_RUNS]:
        shutil.rmtree(folder, ignore_errors=True)


def _folders(runs: Path) -> list[Path]:
    return [folder for folder in runs.iterdir() if folder.is_dir()] if runs.is_dir() else []


def socket_of(run: RunRecord | None) -> Path | None:
    """Where its engine listens, if on a socket."""
    return Path(run.socket_path) if run is not None and run.socket_path else None


def remove_stale_socket(run: RunRecord | None) -> None:
    """Remove the socket file that an engine which ended by itself leaves behind."""
    path = socket_of(run)
    if path is not None and socket_is_stale(path):
        path.unlink(missing_ok=True)
