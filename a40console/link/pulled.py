"""Runs that came from other machines and wait for this machine's ledger; what came, and which.

The ledger has one writer, the service, which need not run here: a document that lies whole in the
inbox is kept, and the service takes it from there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from a40console.errors import RefusedError
from a40console.files import read_json, write_private
from a40console.paths import make_private

MOST_RECEIPTS = 10_000
_POLL_S = 0.1
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
"""Ids come from another machine, and become names of files here."""


class PulledRuns:
    """The folder of what was pulled.

    Args:
        folder: Where it is; it is made when something comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.inbox = folder / "inbox"
        """A document a file, until the ledger has it."""

        self.refused = folder / "refused"
        """Documents that the ledger could not take."""

        self._receipts_file = folder / "receipts.json"

    def receipts(self, origin: str) -> dict[str, str]:
        """Run id to the version that came from a machine."""
        mine = f"{origin} "
        return {
            key.removeprefix(mine): version
            for key, version in self._receipts().items()
            if key.startswith(mine)
        }

    def _receipts(self) -> dict[str, str]:
        try:
            found = read_json(self._receipts_file)
        except (OSError, ValueError):
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {str(key): value for key, value in pairs if isinstance(value, str)}

    def keep(self, run_id: str, version: str, document: bytes, *, origin: str) -> None:
        """Keep a document for the ledger; on return it lies on the disk.

        Raises:
            RefusedError: If the id can be no file's name, or the disk does not take it.
        """
        if not _NAME.fullmatch(run_id):
            raise RefusedError("A run over there has an id that is none", evidence=repr(run_id))
        head = f'{{"origin": {json.dumps(origin)}, "document": '
        try:
            make_private(self.inbox)
            write_private(self.inbox / f"{run_id}.json", f"{head}{document.decode()}}}")
            self._sign(f"{origin} {run_id}", version)
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(
                f"Run {run_id} cannot be kept here",
                evidence=str(error),
                remedy=f"Free space or permission in {self._folder}; it is not marked as copied.",
            ) from error

    def waiting(self) -> list[Path]:
        """Documents that the ledger has not taken yet, oldest run first."""
        try:
            return sorted(file for file in self.inbox.iterdir() if file.suffix == ".json")
        except OSError:
            return []

    def _sign(self, key: str, version: str) -> None:
        receipts = {**self._receipts(), key: version}
        newest = sorted(receipts, key=lambda each: each.rpartition(" ")[2])[-MOST_RECEIPTS:]
        write_private(self._receipts_file, json.dumps({each: receipts[each] for each in newest}))

    @contextmanager
    def alone(self, wait_s: float) -> Iterator[bool]:
        """Be the only one who pulls; tells whether one is, after waiting so long."""
        make_private(self._folder)
        fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _locked(fd, wait_s)
        finally:
            os.close(fd)


def _locked(fd: int, wait_s: float) -> bool:
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline_s:
                return False
            time.sleep(_POLL_S)
        else:
            return True
