"""What a rule answers: it speaks, it clears the suspect, or it says why it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from a40console.advisor.readings import Readings
from a40console.advisor.wording import sentence
from a40console.model.event import Finding
from a40console.model.explanation import Strength
from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The figures speak for this cause."""

    text: str
    evidence: tuple[str, ...] = ()
    strength: Strength = "cause"
    remedy: str = ""
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """Figures that are known exclude it."""

    how: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """It cannot be judged."""

    reason: str


Judgement: TypeAlias = Spoken | Cleared | Unclear | None
"""None: the rule has nothing to say of this situation."""

Rule: TypeAlias = Callable[[Readings], Judgement]


def unclear(*figures: Figure, otherwise: str) -> Unclear:
    """The first missing figure's reason; `otherwise` where all are known but too old."""
    reasons = (figure.reason for figure in figures if isinstance(figure, Missing))
    return Unclear(next(reasons, otherwise))


def as_finding(code: str, verdict: Spoken, snapshot: Snapshot, *, title: str = "") -> Finding:
    """A verdict as a warning; without a title of its own by the verdict's text."""
    return Finding(
        code=code,
        severity="warn",
        title=title or f"{verdict.text[0].upper()}{verdict.text[1:]}",
        evidence=sentence(verdict.evidence),
        since=snapshot.at,
        remedy=verdict.remedy,
        command=verdict.command,
    )
