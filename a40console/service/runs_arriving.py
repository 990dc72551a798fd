"""Puts runs that came from other machines into the ledger, whoever brought them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path

from a40console.errors import ConsoleError
from a40console.files import read_json
from a40console.ledger.database import LedgerError
from a40console.link.pulled import PulledRuns
from a40console.operations.roles import Recorder
from a40console.paths import make_private
from a40console.service.run_ledger import RunLedger

LOOK_PERIOD_S = 2.0
RETRY_PERIOD_S = 30.0
"""After the disk did not take one."""

log = logging.getLogger(__name__)


class RunsArriving:
    """Looks into the inbox of pulled runs, and empties it.

    Args:
        pulled: Where they lie.
        ledger: Where they go.
        record: Tells it in the journal.
    """

    def __init__(self, pulled: PulledRuns, ledger: RunLedger, record: Recorder) -> None:
        self._pulled = pulled
        self._ledger = ledger
        self._record = record
        self._in_trouble = False

    async def run(self) -> None:
        """Look for ever; ends when cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(RETRY_PERIOD_S if self._in_trouble else LOOK_PERIOD_S)

    async def look(self) -> int:
        """Take what lies there; how many runs the ledger took."""
        came: Counter[str] = Counter()
        for file in await asyncio.to_thread(self._pulled.waiting):
            try:
                came[await self._take(file)] += 1
                self._in_trouble = False
            except LedgerError as error:
                self._wait_for_disk(error)
                break
            except (ConsoleError, OSError, ValueError, KeyError, TypeError) as error:
                self._refuse(file, error)
            except Exception as error:
                log.exception("run %s could not be taken into the ledger", file.stem)
                self._refuse(file, error)
        for origin, count in came.items():
            runs = "1 run" if count == 1 else f"{count} runs"
            self._record("runs.arrived", f"{runs} copied here from {origin}")
        return came.total()

    async def _take(self, file: Path) -> str:
        """Put one into the ledger; where it came from."""
        kept = await asyncio.to_thread(read_json, file)
        origin = str(kept["origin"])
        document = kept["document"]
        await self._ledger.take(lambda ledger: ledger.import_run(document, origin=origin))
        file.unlink(missing_ok=True)
        return origin

    def _wait_for_disk(self, error: LedgerError) -> None:
        if not self._in_trouble:
            text = f"runs from other machines wait for the ledger: {error.message}"
            self._record("runs.waiting", text, "warn", {"evidence": error.evidence})
        self._in_trouble = True

    def _refuse(self, file: Path, error: Exception) -> None:
        """Lay one aside that the ledger will never take."""
        told = error.message if isinstance(error, ConsoleError) else f"{type(error).__name__}"
        evidence = error.evidence if isinstance(error, ConsoleError) else str(error)
        try:
            aside = make_private(self._pulled.refused) / file.name
            file.replace(aside)
        except (OSError, ConsoleError) as trouble:
            log.warning("%s could not be laid aside: %s", file, trouble)
            self._in_trouble = True
            return
        text = f"run {file.stem} from another machine is not taken into the ledger: {told}"
        self._record("runs.refused", text, "warn", {"evidence": evidence, "kept": str(aside)})
