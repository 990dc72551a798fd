"""The advisor's door: one call a snapshot, and the memory that keeps findings from flickering."""

from __future__ import annotations

from dataclasses import dataclass, replace

from a40console.advisor.evidence import Evidence
from a40console.advisor.findings import Found, find, findings, ordered
from a40console.advisor.limit import explain, limit
from a40console.advisor.wording import duration, sentence
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.snapshot import Limit, Snapshot

FORGET_AFTER_S = 30.0
"""A finding that comes back sooner is the same one, and keeps the time it began."""

RISE_S = 3.0
"""A level must hold for so long before it is told: one bad second is none."""

FALL_S = 10.0
"""A level that was told stays for so long after it was last seen."""


@dataclass(slots=True)
class _Memory:
    """What is known of one code."""

    finding: Finding
    began_at: str
    began_s: float
    """When it was first seen of late: a gap longer than `FALL_S` begins it anew."""

    seen_s: float
    told: bool = False


class FindingClock:
    """Remembers when each code first appeared, and steadies those that judge a level.

    States, such as a failed engine, come and go at once. Levels, such as throttling, are told when
    they have held for `RISE_S`, and stay for `FALL_S` with the time they were last seen.
    """

    def __init__(
        self,
        forget_after_s: float = FORGET_AFTER_S,
        *,
        rise_s: float = RISE_S,
        fall_s: float = FALL_S,
    ) -> None:
        self._forget_after_s = forget_after_s
        self._rise_s = rise_s
        self._fall_s = fall_s
        self._known: dict[str, _Memory] = {}
        self._state: EngineState | None = None

    def tell(self, found: tuple[Found, ...], snapshot: Snapshot) -> tuple[Finding, ...]:
        """The findings to show now, worst first, each with the time its code first appeared.

        Args:
            found: What the rules found in the snapshot.
            snapshot: Says when, and of an engine in which state.
        """
        monotonic_s = snapshot.monotonic_s
        if snapshot.engine.state is not self._state:
            self._state = snapshot.engine.state
            for memory in self._known.values():
                memory.told = False  # what a former state pressed on no longer presses
        self._known = {
            code: memory
            for code, memory in self._known.items()
            if monotonic_s - memory.seen_s <= self._forget_after_s
        }
        now = [self._seen(entry, snapshot.at, monotonic_s) for entry in found]
        codes = {entry.finding.code for entry in found}
        kept = [
            self._faded(memory, monotonic_s)
            for code, memory in self._known.items()
            if code not in codes and self._stays(memory, monotonic_s)
        ]
        return ordered(tuple(finding for finding in [*now, *kept] if finding is not None))

    def _seen(self, entry: Found, at: str, monotonic_s: float) -> Finding | None:
        code = entry.finding.code
        memory = self._known.get(code)
        if memory is None:
            memory = self._known[code] = _Memory(entry.finding, at, monotonic_s, monotonic_s)
        elif not memory.told and monotonic_s - memory.seen_s > self._rise_s:
            memory.began_s = monotonic_s  # single seconds, far apart
        memory.finding = replace(entry.finding, since=memory.began_at)
        memory.seen_s = monotonic_s
        steady = entry.steady and not memory.told
        if steady and monotonic_s - memory.began_s < self._rise_s:
            return None
        memory.told = entry.steady
        return memory.finding

    def _stays(self, memory: _Memory, monotonic_s: float) -> bool:
        if not memory.told or monotonic_s - memory.seen_s <= self._fall_s:
            return memory.told
        memory.told, memory.began_s = False, monotonic_s
        return False

    def _faded(self, memory: _Memory, monotonic_s: float) -> Finding:
        ago = f"last seen {duration(round(monotonic_s - memory.seen_s))} ago"
        return replace(memory.finding, evidence=sentence([memory.finding.evidence, ago]))


def advise(
    snapshot: Snapshot, extra: Evidence, clock: FindingClock | None = None
) -> tuple[Limit, tuple[Finding, ...]]:
    """The limit and the findings of a snapshot; its own limit and findings are not read."""
    named = limit(explain(snapshot, extra))
    if clock is None:
        return named, findings(snapshot, extra)
    found = find(snapshot, extra)
    return named, clock.tell(found, snapshot)
