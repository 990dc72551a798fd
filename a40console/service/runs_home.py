"""A second copy of every run on a mounted volume, from which a new pod has them again.

A rented pod's own disk is erased when it stops. A volume outlives that; whether it also outlives
the pod's end, only its renter knows: a RunPod volume disk is deleted with the pod, a network volume
is not. So a copy on a volume that we found ourselves does not count as one that has left the
machine; one that the operator named does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a40console.config import RunsSettings
from a40console.errors import ConsoleError
from a40console.files import read_json, write_private
from a40console.ledger.database import LedgerError
from a40console.ledger.leaving import LeavingRun
from a40console.model.codec import encode
from a40console.operations.roles import Recorder
from a40console.paths import make_private
from a40console.service.run_ledger import RunLedger

VOLUMES = (Path("/workspace"), Path("/runpod-volume"))
"""Where RunPod mounts them."""

FOLDER = "a40console-runs"
LOOK_PERIOD_S = 10.0
_INDEX = "index.json"

log = logging.getLogger(__name__)


def home_of_runs(
    settings: RunsSettings, environment: Mapping[str, str], state: Path
) -> Path | None:
    """The folder for the second copies; None where there is no volume, or all lies on it anyway.

    Args:
        settings: May name it, or want none.
        environment: Says whether this is a rented pod.
        state: Where the ledger is.
    """
    if settings.home == "off":
        return None
    if settings.home != "auto":
        return Path(settings.home).expanduser().absolute()
    if not environment.get("RUNPOD_POD_ID"):
        return None
    for volume in VOLUMES:
        if os.path.ismount(volume) and os.access(volume, os.W_OK) and not _holds(volume, state):
            return volume / FOLDER
    return None


def _holds(volume: Path, state: Path) -> bool:
    try:
        return volume.stat().st_dev == state.stat().st_dev
    except OSError:
        return False


class RunsHome:
    """Keeps the second copies.

    Args:
        folder: Where.
        outlives: Whether the operator says that it outlives this machine.
        ledger: What is copied.
        record: Tells it in the journal.
    """

    def __init__(
        self, folder: Path, *, outlives: bool, ledger: RunLedger, record: Recorder
    ) -> None:
        self.folder = folder
        self._outlives = outlives
        self._ledger = ledger
        self._record = record
        self._versions: dict[str, int] = {}
        self._trouble = ""

    @property
    def name(self) -> str:
        """What it is called among the machines that have a run."""
        return f"volume {self.folder}"

    async def run(self) -> None:
        """Take back what it has, then keep up for ever; ends when cancelled."""
        while True:
            try:
                await self.take_back()
                break
            except (ConsoleError, OSError) as error:
                self._fail(error)
            await asyncio.sleep(LOOK_PERIOD_S)
        while True:
            await self.keep_up()
            await asyncio.sleep(LOOK_PERIOD_S)

    async def take_back(self) -> int:
        """Take runs into the ledger that an earlier machine left here; how many.

        Raises:
            LedgerError: If the disk does not take them.
        """
        self._versions = await asyncio.to_thread(self._read_index)
        taken = 0
        for file in await asyncio.to_thread(self._documents):
            try:
                taken += await self._take(file)
            except LedgerError:
                raise
            except (ConsoleError, OSError, ValueError) as error:
                log.warning("%s is not taken into the ledger: %s", file, error)
        if taken:
            runs = "1 run" if taken == 1 else f"{taken} runs"
            self._record("runs.arrived", f"{runs} taken over from {self.folder}")
        return taken

    async def _take(self, file: Path) -> bool:
        """Take one run, where the ledger has not got it; whether so."""
        if await self._ledger.ask(lambda ledger: ledger.has(file.stem)):
            return False
        document = await asyncio.to_thread(read_json, file)
        await self._ledger.take(lambda ledger: ledger.import_run(document, origin=self.name))
        self._versions.pop(file.stem, None)  # another ledger counted them
        return True

    async def keep_up(self) -> int:
        """Write what it has not, or not as it is by now; how many runs.

        What goes wrong is told once, and tried again.
        """
        written = 0
        try:
            for run in await self._ledger.ask(lambda ledger: ledger.leaving(self.name)):
                written += await self._keep(run)
        except (ConsoleError, OSError) as error:
            self._fail(error)
        except Exception:
            log.exception("the second copies of runs could not be kept up")
        else:
            self._trouble = ""
        return written

    async def _keep(self, run: LeavingRun) -> bool:
        """Write one, where it is another by now, and tell the ledger; whether it was written."""
        is_new = self._versions.get(run.id) != run.revision
        if is_new:
            document = await self._ledger.ask(lambda ledger: ledger.document(run.id))
            await asyncio.to_thread(self._write, run, document)
        if self._outlives and not run.copied:
            await self._ledger.ask(
                lambda ledger: ledger.mark_copied(run.id, self.name, revision=run.revision)
            )
        return is_new

    def _write(self, run: LeavingRun, document: Mapping[str, Any]) -> None:
        make_private(self.folder)
        write_private(self.folder / f"{run.id}.json", json.dumps(encode(document)))
        self._versions[run.id] = run.revision
        write_private(self.folder / _INDEX, json.dumps(self._versions))

    def _documents(self) -> list[Path]:
        try:
            files = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [file for file in files if file.suffix == ".json" and file.name != _INDEX]

    def _read_index(self) -> dict[str, int]:
        try:
            found = read_json(self.folder / _INDEX)
        except (OSError, ValueError):
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {str(key): value for key, value in pairs if isinstance(value, int)}

    def _fail(self, error: Exception) -> None:
        told = error.message if isinstance(error, ConsoleError) else str(error)
        if told != self._trouble:
            text = f"no second copy of runs in {self.folder}: {told}"
            self._record("runs.waiting", text, "warn")
        self._trouble = told
