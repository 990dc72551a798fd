"""A run and its records as the ledger's file holds them, and back. Pure.

What a list of runs shows stands in the head; what only one run's page shows, compressed, in the
detail. Records lie compressed in parts, so that a part that is damaged costs only itself.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from a40console.model.codec import DecodeError, decode, decode_as, encode
from a40console.model.figures import Missing
from a40console.model.run import Run, RunSpec
from a40console.model.run_result import Plot, RunResult, Table

RECORDS_A_PART = 256
NO_DETAIL: Final = b""
_UNREADABLE = "what the ledger has of it cannot be read"
_APART = ("notes", "copied_to")
"""What has tables of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run, without notes and copies."""

    id: str
    asked_at: str
    experiment: str
    state: str
    reference: bool
    away: bool
    """Whether it was pulled from another machine."""

    head: str
    detail: bytes


def row_of(run: Run) -> Row:
    """The row of a run."""
    head, detail = encode(run), NO_DETAIL
    for name in _APART:
        del head[name]
    if isinstance(run.result, RunResult):
        parts = {name: head["result"].pop(name) for name in ("tables", "plots", "excerpts")}
        if any(parts.values()):
            detail = packed(parts)
    return Row(
        id=run.id,
        asked_at=run.asked_at,
        experiment=run.spec.experiment,
        state=run.state,
        reference=run.reference,
        away=not isinstance(run.origin, Missing),
        head=json.dumps(head),
        detail=detail,
    )


def run_of(row: Row) -> Run:
    """The run of a row, without tables, plots and excerpts.

    Of a row that cannot be read, a run that says so.
    """
    try:
        return decode(Run, json.loads(row.head))
    except (ValueError, RecursionError) as error:
        return Run(
            id=row.id,
            spec=RunSpec(experiment=row.experiment),
            state="invalid",
            asked_at=row.asked_at,
            reason=f"{_UNREADABLE}: {str(error)[:200]}",
            reference=row.reference,
        )


def is_unreadable(run: Run) -> bool:
    """Whether a run only stands for a row that cannot be read: nothing of it is its own."""
    return run.state == "invalid" and run.reason.startswith(_UNREADABLE)


def with_detail(run: Run, detail: bytes) -> Run:
    """The run with tables, plots and excerpts; of what is damaged the headline says so."""
    if detail == NO_DETAIL or isinstance(run.result, Missing):
        return run
    try:
        parts = unpacked(detail)
        result = replace(
            run.result,
            tables=decode_as(tuple[Table, ...], parts["tables"], "tables"),
            plots=decode_as(tuple[Plot, ...], parts["plots"], "plots"),
            excerpts=decode_as(tuple[str, ...], parts["excerpts"], "excerpts"),
        )
    except (ValueError, KeyError, TypeError) as error:
        lost = f"{run.result.headline} (tables and plots cannot be read: {str(error)[:200]})"
        result = replace(run.result, headline=lost)
    return replace(run, result=result)


def parts_of(records: Sequence[Any]) -> Iterator[bytes]:
    """Records of one kind in parts, in their order."""
    for begin in range(0, len(records), RECORDS_A_PART):
        yield packed(encode(records[begin : begin + RECORDS_A_PART]))


def records_of(kind: type, parts: Iterable[bytes]) -> Iterator[Any]:
    """Records of one kind again, without those of parts that cannot be read."""
    for part in parts:
        try:
            yield from decode_as(tuple[kind, ...], unpacked(part), "records")  # type: ignore[valid-type]
        except DecodeError:
            continue


def packed(value: Any) -> bytes:
    """JSON, compressed."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def unpacked(data: bytes) -> Any:
    """The value of what `packed` made.

    Raises:
        DecodeError: If it is damaged.
    """
    try:
        return json.loads(zlib.decompress(data))
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise DecodeError(f"damaged: {error}") from error
