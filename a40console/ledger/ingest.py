"""Reads what a run's process left in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from a40console.errors import UsageError
from a40console.files import parse_json, read_json
from a40console.ledger.ending import Gone, run_of
from a40console.model.codec import decode, decode_as
from a40console.model.instants import iso_utc
from a40console.model.run import Run
from a40console.model.run_order import RunOrder
from a40console.model.run_record import ArmEnd, Record, Sample
from a40console.model.secrets import covered_within

ORDER = "order.json"
RECORDS = "run.jsonl"
CANCEL = "cancel"
OUTPUT = "output.log"
_TAIL_BYTES = 4096
_WORDS_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """What stands in the folder of a run whose process is gone."""

    run: Run
    samples: tuple[Sample, ...]
    arm_ends: tuple[ArmEnd, ...]


def read_folder(folder: Path) -> RunFolder:
    """All that the ledger keeps of a run.

    Raises:
        UsageError: If the folder has no order that can be read.
        OSError: If its records are there and the disk does not give them.
    """
    order = read_order(folder)
    records, broken = read_records(folder / RECORDS)
    return RunFolder(
        run=run_of(order, records, broken=broken, gone=gone_of(folder)),
        samples=tuple(record for record in records if isinstance(record, Sample)),
        arm_ends=tuple(record for record in records if isinstance(record, ArmEnd)),
    )


def read_order(folder: Path) -> RunOrder:
    """What the service wrote before the run started.

    Raises:
        UsageError: If there is none, or none that can be read.
    """
    try:
        return decode(RunOrder, read_json(folder / ORDER))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder.name} is no run: its order cannot be read", evidence=str(error)[:400]
        ) from error


def read_records(path: Path) -> tuple[list[Record], int]:
    """The records of a file, and how many lines between them cannot be read.

    The last line may be torn: its writer was killed, or the disk was full. A run that has not
    begun has no file.

    Raises:
        OSError: If the disk does not give it.
    """
    records: list[Record] = []
    broken = 0
    with suppress(FileNotFoundError):
        for line, is_whole in _lines(path):
            try:
                records.append(decode_as(Record, parse_json(line), "record"))
            except ValueError:
                broken += is_whole
    return records, broken


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Every line that holds something, and whether it has an end."""
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield line, line.endswith(b"\n")


def gone_of(folder: Path) -> Gone:
    """The end of the process of a run, by what it left in its folder."""
    return Gone(
        at=_last_written(folder / RECORDS) or _last_written(folder / ORDER),
        asked_to_end=why_asked(folder),
        last_words=_last_words(folder / OUTPUT),
    )


def why_asked(folder: Path) -> str:
    """Why it is to end, as whoever asked it said; empty where nobody did."""
    try:
        return (folder / CANCEL).read_bytes().decode(errors="replace").strip()[
            :_WORDS_CHARS
        ] or "cancelled"
    except OSError:
        return ""


def _last_written(path: Path) -> str:
    try:
        return iso_utc(path.stat().st_mtime)
    except OSError:
        return ""


def _last_words(path: Path) -> str:
    """The last line of the output that says something, its secrets covered."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return covered_within(said[-1])[:_WORDS_CHARS] if said else ""
