"""The advisor's door: one call a snapshot, and the memory of when each finding began."""

from __future__ import annotations

from dataclasses import replace

from a40console.advisor.evidence import Evidence
from a40console.advisor.findings import findings
from a40console.advisor.limit import limit
from a40console.advisor.readings import LimitEvidence
from a40console.model.event import Finding
from a40console.model.snapshot import Limit, Snapshot

FORGET_AFTER_S = 30.0
"""A finding that comes back sooner is the same one, and keeps the time it began."""


class FindingClock:
    """Remembers when each code first appeared."""

    def __init__(self, forget_after_s: float = FORGET_AFTER_S) -> None:
        self._forget_after_s = forget_after_s
        self._known: dict[str, tuple[str, float]] = {}

    def stamp(
        self, found: tuple[Finding, ...], *, at: str, monotonic_s: float
    ) -> tuple[Finding, ...]:
        """The findings with `since` set to when their code first appeared.

        Args:
            found: What the rules found now.
            at: The time now, ISO 8601.
            monotonic_s: The same on the monotonic clock.
        """
        self._known = {
            code: (since, seen_s)
            for code, (since, seen_s) in self._known.items()
            if monotonic_s - seen_s <= self._forget_after_s
        }
        for finding in found:
            since, _ = self._known.get(finding.code, (at, monotonic_s))
            self._known[finding.code] = (since, monotonic_s)
        return tuple(replace(finding, since=self._known[finding.code][0]) for finding in found)


def advise(
    snapshot: Snapshot, extra: Evidence, clock: FindingClock | None = None
) -> tuple[Limit, tuple[Finding, ...]]:
    """The limit and the findings of a snapshot; its own limit and findings are not read."""
    found = findings(snapshot, extra)
    if clock is not None:
        found = clock.stamp(found, at=snapshot.at, monotonic_s=snapshot.monotonic_s)
    return limit(LimitEvidence.of(snapshot)), found
