"""Real and simulated history apart: what a chart draws is of one kind, and says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from a40console.model.control import HistoryPoint
from a40console.model.figures import Missing, number


@dataclass(frozen=True, slots=True)
class Kinds:
    """Of a span of the history."""

    simulated: bool = False
    """Whether its newest speed is a simulated engine's: only points of the same kind are drawn."""

    mixed: bool = False
    """Whether speeds of the other kind are left out."""

    def words(self, *, labelled: bool) -> str:
        """What to say of it; empty where all is real, or all SIMULATED and labelled as that.

        Args:
            labelled: Whether what is simulated is already labelled where it is drawn.
        """
        said = "" if labelled or not self.simulated else "SIMULATED"
        if not self.mixed:
            return said
        other = "real history not drawn" if self.simulated else "SIMULATED history not drawn"
        return f"{said}, {other}" if said else other


NO_KINDS = Kinds()


def speaks(point: HistoryPoint) -> bool:
    """Whether an engine's speed is known of a point: only such a point is of either kind."""
    return not isinstance(point.generation_tokens_per_s, Missing)


def kinds(points: Iterable[HistoryPoint]) -> Kinds:
    """Of which kind the newest speed is, and whether there are others.

    Args:
        points: Oldest first.
    """
    newest, seen = False, set[bool]()
    for point in points:
        if speaks(point):
            newest = point.simulated
            seen.add(newest)
    return Kinds(newest, len(seen) > 1)


def value_of(point: HistoryPoint, name: str, *, simulated: bool) -> float | None:
    """A figure of a point as a chart of one kind of engine draws it."""
    if speaks(point) and point.simulated is not simulated:
        return None
    return number(getattr(point, name))
