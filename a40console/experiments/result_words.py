"""How figures are written in sentences and cells of a result. Pure."""

from __future__ import annotations

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.run_result import Interval


def written(figure: Figure, digits: int = 1) -> str:
    """A figure in a sentence: `1,163.2`, `≈ 12.0`, or the reason why there is none."""
    match figure:
        case Missing(reason):
            return f"– ({reason})"
        case Estimated(value):
            return f"≈ {value:,.{digits}f}"
        case _:
            return f"{figure:,.{digits}f}"


def plus_minus(interval: Interval | Missing) -> Figure:
    """Half an interval's width, in percent of its value."""
    if isinstance(interval, Missing):
        return interval
    if not interval.value:
        return Missing("nothing to divide by")
    return 100 * (interval.high - interval.low) / 2 / interval.value


def percent(share: float) -> str:
    """A share (0 … 1) as one writes it."""
    return f"{round(100 * share)} %"
