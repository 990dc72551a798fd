"""The ledger: every run that was made, in one SQLite file with one writer, the service.

All calls may wait for the disk, and are for one thread at a time. Whatever the disk does not take
is not in it, whole, and the run's own folder still has it: `ingest` takes it later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from a40console.errors import RefusedError, UsageError
from a40console.ledger import bounds as limits
from a40console.ledger import database, documents, hypotheses, merging, tables
from a40console.ledger.bounds import Bounds, Deleted
from a40console.ledger.comparison import compare
from a40console.ledger.ingest import read_folder
from a40console.ledger.leaving import LeavingRun, leaving_of
from a40console.ledger.opening import Place, opened, put_back
from a40console.ledger.reference import reference_documents
from a40console.ledger.rows import is_unreadable
from a40console.model.codec import Json
from a40console.model.run import (
    ENDED,
    Comparison,
    Hypothesis,
    HypothesisState,
    HypothesisStep,
    Note,
    Run,
    RunState,
)
from a40console.model.run_record import ArmEnd, Sample

LONGEST_TEXT = 2000
"""Characters of a note, a reason or a claim."""


class Ledger:
    """Runs with their samples, notes, copies and hypotheses.

    Every call raises LedgerError, a ConsoleError, where the disk does not take or give it: a full
    disk is told so, and nothing of that call is written then.
    """

    lost: str
    """What of a broken file could not be read, and where that file is; empty where none was."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lost: str) -> None:
        self._path = path
        self._connection = connection
        self._place = Place(path)
        self.lost = lost

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the file, made where there is none and brought to this version's tables.

        A broken one is kept under another name, and what can be read of it is taken over.

        Raises:
            LedgerError: If it cannot be opened, or a newer version of the console wrote it.
        """
        with database.told(path):
            return cls(path, *opened(path))

    @property
    def is_in_place(self) -> bool:
        """Whether what is open is still the file of its name: what else is written is lost."""
        return self._place.is_held

    def leave(self) -> str:
        """Close a file that is not in its place any more, and say what became of it.

        One that was removed is written there again; another that lies there now stands.
        """
        with database.told(self._path):
            if self._path.exists():
                self._connection.close()
                self._place.remove_log()
                return f"{self._path.name} was replaced while it was open: that file is used now"
            put_back(self._connection, self._path)
            return f"{self._path.name} was removed while it was open: it is there again, whole"

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def add(self, run: Run) -> Run:
        """Write a run down, or what has become of it; the answer is what the ledger now has.

        A run that has ended stays ended, and one that was marked invalid invalid. The notes of the
        run given are added to those that are there; copies are told by `mark_copied` alone.
        """
        return self._update(run, (), ())

    def ingest(self, folder: Path) -> Run:
        """Take over a run whose process is gone from its folder; doing it again changes nothing.

        All that the ledger keeps of it is then here, and `run.jsonl` may go.

        Raises:
            UsageError: If the folder has no order that can be read.
        """
        with database.told(self._path):
            left = read_folder(folder)
        return self._update(left.run, left.samples, left.arm_ends)

    def runs(
        self, limit: int = 100, *, experiment: str = "", state: RunState | None = None
    ) -> tuple[Run, ...]:
        """The newest runs, newest first, without tables, plots and excerpts: `run` has those."""
        with database.told(self._path):
            return tables.newest(self._connection, limit, experiment, state or "")

    def run(self, run_id: str) -> Run:
        """One run, whole; the beginning of its id will do.

        Raises:
            UsageError: If none, or more than one, is known by that name.
        """
        with database.told(self._path):
            return self._named(run_id)

    def has(self, run_id: str) -> bool:
        """Whether a run of exactly this id is here and has ended."""
        with database.told(self._path):
            run = tables.one(self._connection, run_id)
        return run is not None and run.state in ENDED

    def samples(self, run_id: str) -> tuple[Sample, ...]:
        """Every request of a run in the order of its file; none where bounds took them."""
        with database.told(self._path):
            return tables.samples(self._connection, self._named(run_id).id)

    def arm_ends(self, run_id: str) -> tuple[ArmEnd, ...]:
        """What was true around every repeat of every arm."""
        with database.told(self._path):
            return tables.arm_ends(self._connection, self._named(run_id).id)

    def compare(self, left: str, right: str) -> Comparison:
        """Two runs side by side, the right one over the left one."""
        with database.told(self._path):
            runs = self._named(left), self._named(right)
            samples = tuple(tables.samples(self._connection, run.id) for run in runs)
            ends = tuple(tables.arm_ends(self._connection, run.id) for run in runs)
        return compare(*runs, samples=(samples[0], samples[1]), arm_ends=(ends[0], ends[1]))

    def note(self, run_id: str, text: str, at: str) -> Run:
        """Write a line about a run; the same line at the same instant is there once.

        Raises:
            UsageError: If the line is empty or too long, or there is no such run.
        """
        words = _words(text, "A note")
        with self._writing() as connection:
            named = self._named(run_id).id
            tables.put_note(connection, named, Note(at=at, text=words))
            return self._named(named)

    def invalidate(self, run_id: str, reason: str) -> Run:
        """Say why nothing of a run may be believed; its figures stay to be read.

        Raises:
            UsageError: If no reason is given, or there is no such run.
            RefusedError: If it has not ended.
        """
        words = _words(reason, "The reason")
        with self._writing() as connection:
            run = self._ended(run_id)
            if not is_unreadable(run):
                tables.put(connection, merging.invalid(run, words))
            return self._named(run.id)

    def mark_copied(self, run_id: str, machine: str, *, revision: int | None = None) -> None:
        """Note that a machine has this run, as it was in that revision of its document.

        What changes later, by a note say, counts as not copied again.

        Raises:
            UsageError: If there is no such run, or the machine has no name.
        """
        name = _words(machine, "The machine's name")
        with self._writing() as connection:
            run = self._named(run_id)
            current = tables.revision(connection, run.id)
            # A ledger that was rebuilt counts anew: nobody has more than there is.
            tables.mark_copied(connection, run.id, name, min(revision or current, current))

    def not_copied(self) -> tuple[str, ...]:
        """Ids of the runs measured here, newest first, that no other machine has as they are."""
        with database.told(self._path):
            return tables.not_copied(self._connection)

    def leaving(self, machine: str) -> tuple[LeavingRun, ...]:
        """Every run that has ended, oldest first, and whether that machine has it as it is."""
        with database.told(self._path):
            return leaving_of(self._connection, machine)

    def document(self, run_id: str) -> dict[str, Json]:
        """Everything of a run that has ended, for `import_run` of another ledger.

        Raises:
            UsageError: If there is no such run.
            RefusedError: If it has not ended.
        """
        with database.told(self._path):
            run, connection = self._ended(run_id), self._connection
            return documents.written(
                documents.Document(
                    run=run,
                    samples=tables.samples(connection, run.id),
                    arm_ends=tables.arm_ends(connection, run.id),
                    hypotheses=hypotheses.that_travel_with(connection, run.id),
                    revision=tables.revision(connection, run.id),
                )
            )

    def import_run(self, document: Json, *, origin: str = "") -> Run:
        """Take a run from another ledger; doing it again changes nothing.

        What both have is merged: notes of both stay, and what either calls invalid is.

        Args:
            document: What `document` gave.
            origin: The machine that it comes from, where the document does not say.

        Raises:
            UsageError: If it is no such document, or another version's.
            RefusedError: If another run of that id is here.
        """
        read = documents.read(document)
        told = documents.coming_from(read.run, origin)
        with self._writing() as connection:
            known = tables.one(connection, told.id)
            if known is not None and not merging.is_same(known, told):
                raise RefusedError(
                    f"Another run of the id {told.id} is in the ledger already",
                    evidence=f"asked for at {known.asked_at}, the document's at {told.asked_at}",
                )
            tables.put(connection, told if known is None else merging.imported(known, told))
            for note in told.notes:
                tables.put_note(connection, told.id, note)
            if known is None or not tables.samples(connection, told.id):
                tables.put_records(connection, told.id, read.samples, read.arm_ends)
            for claim in read.hypotheses:
                hypotheses.put(connection, claim.text, claim.steps)
            return self._named(told.id)

    def import_reference(self) -> tuple[Run, ...]:
        """Take the shipped reference rows, marked as such, and what was concluded from them."""
        return tuple(self.import_run(document) for document in reference_documents())

    def hypotheses(self, state: HypothesisState | None = None) -> tuple[Hypothesis, ...]:
        """Every claim, the one that was last spoken on first."""
        with database.told(self._path):
            listed = hypotheses.listed(self._connection)
        return tuple(claim for claim in listed if state in (None, claim.state))

    def hypothesis_add(self, text: str, at: str) -> Hypothesis:
        """Write down a claim, open; one that is there already is the answer as it stands.

        Raises:
            UsageError: If the text is empty or too long.
        """
        words = _words(text, "A hypothesis")
        with self._writing() as connection:
            number = hypotheses.put(connection, words, ())
            if not self._claim(number).steps:
                hypotheses.put(connection, words, [HypothesisStep(state="open", at=at)])
            return self._claim(number)

    def hypothesis_conclude(
        self, number: int, state: HypothesisState, at: str, *, runs: Sequence[str], why: str
    ) -> Hypothesis:
        """Confirm, refute, retract or reopen a claim; what was said before stays in its steps.

        Raises:
            UsageError: If there is no such claim or run.
            RefusedError: If it would be confirmed or refuted by no run, or by one that has not
                ended, failed or is invalid.
        """
        with self._writing() as connection:
            claim = self._claim(number)
            named = tuple(self._named(run_id) for run_id in runs)
            _check_evidence(state, named)
            ids = tuple(run.id for run in named)
            step = HypothesisStep(state=state, at=at, runs=ids, why=why.strip()[:LONGEST_TEXT])
            hypotheses.put(connection, claim.text, [step])
            return self._claim(number)

    def delete_old(self, bounds: Bounds) -> Deleted:
        """Bring the file within its bounds, the oldest first; never a run that is nowhere else.

        Runs that another machine has go whole, and reference rows, which are shipped. Of the others
        only the single requests go: result, arms and notes stay. Where that is not enough, the
        answer says by how much.
        """
        with self._writing() as connection:
            deleted = limits.delete_old(connection, bounds)
        if deleted.runs or deleted.thinned:
            with database.told(self._path):
                limits.shrink(self._connection)
        return deleted

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with database.told(self._path), database.whole(self._connection) as connection:
            yield connection

    def _update(self, run: Run, samples: Sequence[Sample], arm_ends: Sequence[ArmEnd]) -> Run:
        with self._writing() as connection:
            known = tables.one(connection, run.id)
            tables.put(connection, run if known is None else merging.updated(known, run))
            tables.put_records(connection, run.id, samples, arm_ends)
            return self._named(run.id)

    def _named(self, name: str) -> Run:
        ids = tables.ids_beginning(self._connection, name)
        if len(ids) > 1:
            raise UsageError(
                f"More than one run begins with {name}",
                evidence=", ".join(ids),
                remedy="Give more of its id.",
            )
        run = tables.one(self._connection, ids[0]) if ids else None
        if run is None:
            raise UsageError(
                f"There is no run {name!r}", remedy="`a40console runs list` shows those there are."
            )
        return run

    def _ended(self, run_id: str) -> Run:
        run = self._named(run_id)
        if run.state not in ENDED:
            raise RefusedError(
                f"Run {run.id} has not ended",
                evidence=f"it is {run.state}",
                remedy=f"Wait for it, or end it: a40console run cancel {run.id}",
            )
        return run

    def _claim(self, number: int) -> Hypothesis:
        claim = hypotheses.one(self._connection, number)
        if claim is None:
            raise UsageError(
                f"There is no hypothesis {number}",
                remedy="`a40console runs hypotheses` shows those there are.",
            )
        return claim


def _words(text: str, what: str) -> str:
    words = " ".join(text.encode(errors="replace").decode().split())
    if not words:
        raise UsageError(f"{what} is empty")
    if len(words) > LONGEST_TEXT:
        raise UsageError(f"{what} is longer than {LONGEST_TEXT} characters")
    return words


def _check_evidence(state: HypothesisState, runs: Sequence[Run]) -> None:
    if state not in ("confirmed", "refuted"):
        return
    if not runs:
        raise RefusedError(
            f"A hypothesis is {state} by runs, and none is named",
            remedy="Name the runs that did it, or retract it.",
        )
    for run in runs:
        if run.state not in ("done", "partial"):
            raise RefusedError(
                f"Run {run.id} is {run.state}: it neither confirms nor refutes anything",
                evidence=run.reason,
            )
