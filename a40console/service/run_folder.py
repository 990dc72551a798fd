"""A run's folder: what was ordered, who carries it out, what it records, and that it is to end.

`order.json` is written before the run's process starts, `child.json` says which process it is,
`run.jsonl` is its alone to write, `cancel` asks it to end, and `kept` says that the ledger has all
of it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a40console.engines.tree import ProcessId
from a40console.errors import UsageError
from a40console.files import parse_json, read_json, write_private
from a40console.ledger.ingest import CANCEL, ORDER, RECORDS, read_order, why_asked
from a40console.model.codec import DecodeError, decode, decode_as, encode
from a40console.model.profile import Profile
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Record

CHILD, KEPT, KEYED, BEFORE = "child.json", "kept", "keyed", "engine-before.json"
KEPT_FOLDERS = 20
MOST_READ_BYTES = 1024 * 1024
"""Of one look at the records, so that nobody waits for a long run's file."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunChild:
    """The process of a run; it leads a session of its own."""

    id: ProcessId
    boot_id: str
    """Pids and start times mean something within one boot only."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder."""

    path: Path

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def records_file(self) -> Path:
        """The run's append-only records."""
        return self.path / RECORDS

    # --- Order ---------------------------------------------------------------------------------

    def write_order(self, order: RunOrder) -> None:
        """Write down what is asked for; raises OSError."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.path / ORDER, json.dumps(encode(order)))

    def order(self) -> RunOrder | None:
        """What was asked for; None where that cannot be read."""
        try:
            return read_order(self.path)
        except UsageError:
            return None

    # --- Process -------------------------------------------------------------------------------

    def write_child(self, child: RunChild) -> None:
        """Write down which process carries it out; raises OSError."""
        data = {
            "pid": child.id.pid,
            "start_ticks": child.id.start_ticks,
            "boot_id": child.boot_id,
        }
        write_private(self.path / CHILD, json.dumps(data))

    def child(self) -> RunChild | None:
        """The process; None where none was started, or its note cannot be read."""
        try:
            data = read_json(self.path / CHILD)
            process = ProcessId(int(data["pid"]), int(data["start_ticks"]))
            return RunChild(process, str(data["boot_id"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def has_begun(self) -> bool:
        """Whether a process was ever started for it."""
        return (self.path / CHILD).exists() or self.records_file.exists()

    # --- End -----------------------------------------------------------------------------------

    def ask_to_end(self, why: str) -> None:
        """Ask the process to end, and say why; raises OSError."""
        write_private(self.path / CANCEL, why)

    def why_ended(self) -> str | None:
        """Why it is to end; None where nobody asked."""
        return why_asked(self.path) or None

    @property
    def is_kept(self) -> bool:
        """Whether the ledger has it."""
        return (self.path / KEPT).exists()

    def note_kept(self) -> None:
        """Note that the ledger has it; where the disk does not take it, it is ingested again."""
        try:
            write_private(self.path / KEPT, "")
        except OSError as error:
            log.warning("that the ledger has %s could not be noted: %s", self.id, error)

    def forget_kept(self) -> None:
        """The ledger has lost it; raises no OSError."""
        with suppress(OSError):
            (self.path / KEPT).unlink(missing_ok=True)

    @property
    def is_keyed(self) -> bool:
        """Whether it was given a key, which is nowhere on a disk."""
        return (self.path / KEYED).exists()

    def note_keyed(self) -> None:
        """Note that it was given a key; raises OSError."""
        write_private(self.path / KEYED, "")

    # --- What it may change of the engine -------------------------------------------------------

    def write_before(self, profile: Profile) -> None:
        """Note what the engine was, so that it can be put back; raises OSError."""
        write_private(self.path / BEFORE, json.dumps(encode(profile)))

    def before(self) -> Profile | None:
        """What the engine was; None where the run changes nothing of it, or it cannot be read."""
        try:
            return decode(Profile, read_json(self.path / BEFORE))
        except (OSError, ValueError, DecodeError):
            return None

    @property
    def may_have_changed_engine(self) -> bool:
        """Whether what the engine was before is noted, be it legible or not."""
        return (self.path / BEFORE).exists()

    def forget_before(self) -> None:
        """The engine is as it was, or cannot be made so."""
        try:
            (self.path / BEFORE).unlink(missing_ok=True)
        except OSError as error:
            log.warning("what was before %s could not be removed: %s", self.id, error)


def read_records(
    file: Path, offset: int, most_bytes: int = MOST_READ_BYTES
) -> tuple[int, tuple[Record, ...], int]:
    """The records from a byte offset on, the offset to go on from first; a torn last line waits.

    A line that cannot be read is left out, and counted last. Nothing is read where the offset lies
    beyond the end.
    """
    following, lines = read_lines(file, offset, most_bytes)
    found = [_record(line) for line in lines if line.strip()]
    records = tuple(record for record in found if record is not None)
    return following, records, len(found) - len(records)


def read_lines(
    file: Path, offset: int, most_bytes: int = MOST_READ_BYTES
) -> tuple[int, list[bytes]]:
    """The same as the lines that they are."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, offset))
            data = opened.read(most_bytes)
    except OSError:
        return offset, []
    whole = data.rfind(b"\n") + 1
    if not whole and len(data) == most_bytes:
        whole = len(data)  # a line that is longer than any of ours: it is passed over
    return max(0, offset) + whole, data[:whole].splitlines()


def _record(line: bytes) -> Record | None:
    try:
        data: Any = parse_json(line)
        record: Record = decode_as(Record, data, "record")
    except (ValueError, DecodeError):
        return None
    return record


def run_folders(runs: Path) -> list[RunFolder]:
    """Every run's folder, oldest first, also one that lost its order; none without a folder."""
    try:
        names = sorted(entry for entry in os.listdir(runs) if not entry.startswith("."))  # noqa: PTH208
    except OSError:
        return []
    folders = [RunFolder(runs / name) for name in names]
    return [each for each in folders if (each.path / ORDER).is_file() or each.has_begun]


def prune(runs: Path, kept: int = KEPT_FOLDERS) -> None:
    """Remove the oldest folders of which the ledger has all, but for the newest few."""
    done = [folder for folder in run_folders(runs) if folder.is_kept]
    for folder in done[: max(0, len(done) - kept)]:
        shutil.rmtree(folder.path, ignore_errors=True)
