"""Copies the runs of the machine at the other end of a link to this one.

A run at a time: its whole document lies on this disk before the other machine is told that it has
left. Whatever is cut in between is asked for again, and a document that came twice is the same one.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from a40console.errors import ConsoleError, Exit, RefusedError
from a40console.link.calls import SocketCalls, parsed
from a40console.link.pulled import PulledRuns

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A run over there that has ended."""

    id: str
    version: str
    """Changes with everything that may change of a run that has ended: notes, a reason."""

    copied: bool
    """Whether it is noted over there that this machine has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What there is to be copied."""

    mark: str
    """What to ask with next time: nothing is told again while nothing changes."""

    runs: tuple[Offer, ...]
    unended: tuple[str, ...]
    """Ids of runs that wait or run over there."""


class RunsPull:
    """One pull after another from one machine.

    Args:
        calls: The service over there.
        pulled: Where documents go.
        machine: What this machine is called over there.
        origin: What the other machine is called here.
    """

    def __init__(
        self, calls: SocketCalls, pulled: PulledRuns, *, machine: str, origin: str
    ) -> None:
        self._calls = calls
        self._pulled = pulled
        self._machine = machine
        self._origin = origin

    def offers(self, known: str = "") -> Offers | None:
        """What has ended over there; None where nothing changed since a mark.

        Raises:
            ConsoleError: If it is not told.
        """
        query = {"machine": self._machine, "known": known}
        try:
            told = parsed(self._calls.get("/v1/runs/leaving", **query))
        except ConsoleError as error:
            if error.exit_code is not Exit.USAGE:
                raise
            raise RefusedError(
                f"a40console on {self._origin} does not offer its runs",
                evidence=error.message,
                remedy="Bring both machines to the same version of a40console.",
            ) from error
        try:
            return _offers(told)
        except (KeyError, TypeError) as error:
            raise RefusedError(
                f"a40console on {self._origin} tells its runs in another form",
                evidence=repr(error),
                remedy="Bring both machines to the same version of a40console.",
            ) from error

    def wanted(self, offers: Offers, *, again: bool = False) -> list[Offer]:
        """Those that are not here, or not as they are by now.

        Args:
            offers: What there is.
            again: All of them, whatever is here.
        """
        receipts = self._pulled.receipts(self._origin)
        return [run for run in offers.runs if again or receipts.get(run.id) != run.version]

    def unnoted(self, offers: Offers) -> list[Offer]:
        """Those that are here without that being noted there."""
        receipts = self._pulled.receipts(self._origin)
        return [
            run for run in offers.runs if not run.copied and receipts.get(run.id) == run.version
        ]

    def copy(self, offer: Offer) -> None:
        """Have a run here.

        Raises:
            ConsoleError: If it does not come whole, or cannot be kept.
        """
        document = self._calls.get(f"/v1/runs/{quote(offer.id, safe='')}/document")
        parsed(document)  # what is cut short is not kept
        self._pulled.keep(offer.id, offer.version, document, origin=self._origin)

    def note(self, here: Sequence[Offer]) -> None:
        """Have it noted over there that this machine has them, as they were when they were offered.

        Raises:
            RefusedError: If that is forbidden there.
            ConsoleError: If it does not come about; asked again, it may.
        """
        if not here:
            return
        ids = ",".join(f"{run.id}@{run.version}" for run in here)
        arguments = {"ids": ids, "machine": self._machine}
        self._calls.post("/v1/commands/runs.copied", arguments)


def _offers(told: Any) -> Offers | None:
    if told["runs"] is None:
        return None
    return Offers(
        mark=str(told["mark"]),
        runs=tuple(
            Offer(id=str(run["id"]), version=str(run["version"]), copied=run["copied"] is True)
            for run in told["runs"]
        ),
        unended=tuple(map(str, told["unended"])),
    )


def machine_name() -> str:
    """What this machine is called in the lists of others, which are separated by commas."""
    kept = [char for char in socket.gethostname() if char.isascii() and char.isprintable()]
    return "".join(kept).replace(",", "-")[:LONGEST_NAME] or "a machine without a name"
