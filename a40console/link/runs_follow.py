"""Copies runs as they end, for as long as a link stands: a step at a time, in its holder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from a40console.errors import ConsoleError, Exit
from a40console.link.calls import SocketCalls
from a40console.link.pulled import PulledRuns
from a40console.link.runs_pull import Offer, RunsPull, machine_name

LOOK_PERIOD_S = 10.0
"""How often is asked whether a run has ended: some 100 bytes where none has."""

TIMEOUT_S = 10.0
"""A link that says nothing for longer is given up by ssh as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How far the copying is."""

    copied: int = 0
    """Runs that came since the link was made."""

    left: int = 0
    """Runs that have ended over there and are not here yet."""

    trouble: str = ""
    """Why they are not, or why it could not be noted over there that they are."""


class RunsFollower:
    """Looks from time to time, and copies one run a step.

    Args:
        pull: What copies.
        pulled: Where to.
        clock: Monotonic seconds.
    """

    def __init__(
        self, pull: RunsPull, pulled: PulledRuns, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pull = pull
        self._pulled = pulled
        self._clock = clock
        self._next_s = clock()
        self._mark = ""
        self._wanted: list[Offer] = []
        self._came: list[Offer] = []
        self._forbidden = ""
        self.copies = Copies()

    def look_now(self) -> None:
        """Look at the next step: the link has just come back."""
        self._next_s = self._clock()

    def step(self) -> None:
        """Do a little of what is due; what goes wrong is told in `copies`, and tried again."""
        if self._clock() < self._next_s and not self._wanted:
            return
        try:
            with self._pulled.alone(0.0) as alone:
                if not alone:  # a command is at it
                    self._rest()
                elif self._wanted:
                    self._copy_one()
                else:
                    self._look()
        except ConsoleError as error:
            self._fail(f"{error.message}: {error.evidence}" if error.evidence else error.message)
        except OSError as error:
            self._fail(str(error))

    def _copy_one(self) -> None:
        offer, *later = self._wanted
        self._pull.copy(offer)
        self._wanted = later
        self._came.append(offer)
        copied = self.copies.copied + 1
        self.copies = Copies(copied=copied, left=len(later), trouble=self._forbidden)
        if not later:  # together: each time it is noted is an event over there
            came, self._came = self._came, []
            self._note(came)

    def _look(self) -> None:
        self._next_s = self._clock() + LOOK_PERIOD_S
        offers = self._pull.offers(self._mark)
        if offers is not None:
            self._wanted = self._pull.wanted(offers)
            self._note(self._pull.unnoted(offers))
            self._mark = offers.mark
        self.copies = replace(self.copies, left=len(self._wanted), trouble=self._forbidden)

    def _note(self, here: list[Offer]) -> None:
        """Have it noted, unless that was forbidden once: every refusal is an event over there."""
        if not here or self._forbidden:
            return
        try:
            self._pull.note(here)
        except ConsoleError as error:
            if error.exit_code is not Exit.REFUSED:
                raise
            self._forbidden = f"the runs are here, but over there: {error.message}"

    def _fail(self, why: str) -> None:
        self.copies = replace(self.copies, trouble=why)
        self._rest()

    def _rest(self) -> None:
        """Look anew, later: what was wanted may be here by then."""
        self._next_s, self._mark = self._clock() + LOOK_PERIOD_S, ""
        self._wanted, self._came = [], []


def follower_of(control: Path, pulled: Path, *, origin: str) -> RunsFollower:
    """What copies the runs of the service at the other end of a forwarded socket.

    Args:
        control: The socket, on this machine.
        pulled: The folder of what was pulled.
        origin: What the other machine is called here.
    """
    machine = machine_name()
    calls = SocketCalls(control, timeout_s=TIMEOUT_S, who=f"link of {machine}")
    here = PulledRuns(pulled)
    return RunsFollower(RunsPull(calls, here, machine=machine, origin=origin), here)
