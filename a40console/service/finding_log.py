"""Findings as events: one when a finding has come to stay, one when it has gone for good. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a40console.model.event import Event, Finding
from a40console.operations.roles import Recorder

BEGAN, ENDED = "finding.began", "finding.ended"
TOLD_OTHERWISE = frozenset(
    {
        "counters-reset",
        "engine-failed",
        "engine-orphaned",
        "keeper-gone",
        "service-unsupervised",
        "telemetry-broken",
        "unkillable",
    }
)
"""Findings that begin with an event of their own."""

BEGINS_AFTER_S = 10.0
"""What lasts less is no event."""

ENDS_AFTER_S = 60.0
"""What comes back sooner had not gone."""

MOST_DOUBLINGS = 4
"""Beyond 16 min it is not made to stay away longer."""

STEADY_AFTER_S = 3600.0
"""One that has been away for so long is told as quickly as a new one."""


@dataclass(slots=True)
class _Spell:
    """A finding that was seen lately."""

    finding: Finding
    first_s: float
    seen_s: float
    told: bool = False
    since: str = ""


class FindingLog:
    """Turns what each snapshot finds into few events.

    A finding that flaps is one event: each time it comes back within an hour, it must stay away
    twice as long before it counts as gone, 16 minutes at the most.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder
        self._spells: dict[str, _Spell] = {}
        self._returns: dict[str, tuple[float, int]] = {}

    def recall(self, events: Iterable[Event], now_s: float) -> None:
        """Know again what began and has not ended, from the journal of an earlier service.

        Args:
            events: Oldest first.
            now_s: Monotonic time.
        """
        for event in events:
            code = event.data.get("code", "")
            if event.kind == ENDED:
                self._spells.pop(code, None)
            elif event.kind == BEGAN:
                finding = Finding(code, event.severity, event.text, "", event.at, "")
                self._spells[code] = _Spell(finding, now_s, now_s, told=True, since=event.at)

    def observe(self, findings: Sequence[Finding], now_s: float) -> None:
        """Take what was found now; `now_s` is monotonic."""
        for finding in findings:
            if finding.code in TOLD_OTHERWISE:
                continue
            spell = self._spells.setdefault(finding.code, _Spell(finding, now_s, now_s))
            spell.seen_s = now_s
            if not spell.told:  # its end is told in the words of its begin
                spell.finding = finding
            if not spell.told and now_s - spell.first_s >= BEGINS_AFTER_S:
                self._begin(spell, now_s)
        for code, spell in list(self._spells.items()):
            if not spell.told and spell.seen_s < now_s:
                del self._spells[code]
            elif spell.told and now_s - spell.seen_s >= self._patience_s(code, now_s):
                self._end(code, spell, now_s)

    def _begin(self, spell: _Spell, now_s: float) -> None:
        finding = spell.finding
        spell.told, spell.since = True, finding.since
        ended_s, returns = self._returns.get(finding.code, (-STEADY_AFTER_S, 0))
        again = now_s - ended_s < STEADY_AFTER_S
        self._returns[finding.code] = (now_s, min(returns + 1, MOST_DOUBLINGS) if again else 0)
        data = {"code": finding.code, "evidence": finding.evidence, "remedy": finding.remedy}
        if finding.command is not None:
            data["command"] = finding.command
        self._record(BEGAN, finding.title, finding.severity, data)

    def _end(self, code: str, spell: _Spell, now_s: float) -> None:
        del self._spells[code]
        self._returns[code] = (now_s, self._returns.get(code, (now_s, 0))[1])
        finding = spell.finding
        data = {"code": code, "title": finding.title, "severity": finding.severity}
        self._record(ENDED, f"no longer: {finding.title}", "info", data | {"began": spell.since})

    def _patience_s(self, code: str, now_s: float) -> float:
        _, returns = self._returns.get(code, (now_s, 0))
        return ENDS_AFTER_S * 2.0**returns
