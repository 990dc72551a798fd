"""What the ledger has of a run, and what it is told of it: which of the two stands. Pure."""

from __future__ import annotations

from dataclasses import replace

from a40console.ledger.rows import is_unreadable
from a40console.model.run import ENDED, Run


def updated(known: Run, told: Run) -> Run:
    """The run after this machine told what has become of it.

    One that has ended does not run again, and what was marked invalid stays so.
    """
    if is_unreadable(known):
        return told
    if told.state not in ENDED and known.state in ENDED:
        return known
    if known.state == "invalid" and told.state != "invalid":
        return replace(told, state="invalid", reason=known.reason)
    return told


def imported(known: Run, told: Run) -> Run:
    """The run that two ledgers have.

    What is here stands, unless only the other has its end, or calls it invalid.
    """
    if known.state not in ENDED or is_unreadable(known):
        return told
    if is_unreadable(told):
        return known
    if told.state == "invalid" and known.state != "invalid":
        return replace(known, state="invalid", reason=told.reason)
    return known


def is_same(known: Run, told: Run) -> bool:
    """Whether two runs of one id are one, seen by what was asked and when."""
    if is_unreadable(known) or is_unreadable(told):
        return True
    return (known.spec, known.asked_at, known.reference) == (
        told.spec,
        told.asked_at,
        told.reference,
    )


def invalid(run: Run, reason: str) -> Run:
    """The run, of which nothing may be believed any more."""
    return replace(run, state="invalid", reason=reason)
