"""A figure is a number, an estimate that says so, or missing with the reason: never a silent 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure, text or list that is not known, and why."""

    reason: str
    """One phrase for the operator: `no prompt in the window`."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """A number that was derived rather than counted; drawn with ≈."""

    value: float


NOT_TOLD = Missing("not told")

Figure: TypeAlias = int | float | Estimated | Missing
"""What a cell of the console holds."""

Text: TypeAlias = str | Missing
"""A text that may be unknown."""


def number(figure: Figure) -> float | None:
    """The plain number of a figure, or None where it is missing."""
    match figure:
        case Missing():
            return None
        case Estimated(value):
            return value
        case _:
            return figure


def is_estimate(figure: Figure) -> bool:
    """Whether the figure must be shown with ≈."""
    return isinstance(figure, Estimated)


def measured(value: float | None, reason: str) -> Figure:
    """A reading as a figure: None, NaN and infinities are missing for the given reason."""
    if value is None or not isfinite(value):
        return Missing(reason)
    return value


def ratio(part: Figure, whole: Figure, *, reason: str = "nothing to divide by") -> Figure:
    """Part ÷ whole; missing when either is or the whole is 0, estimated when either is."""
    return combine(lambda a, b: a / b if b else None, part, whole, reason=reason)


def combine(
    formula: Callable[..., float | None], *figures: Figure, reason: str = "not computable"
) -> Figure:
    """Apply a formula to figures: the first missing one wins, one estimate makes an estimate.

    The formula answers None where it has no value; `reason` then says why.
    """
    numbers: list[float] = []
    for figure in figures:
        if isinstance(figure, Missing):
            return figure
        numbers.append(figure.value if isinstance(figure, Estimated) else figure)
    result = formula(*numbers)
    if result is None or not isfinite(result):
        return Missing(reason)
    return Estimated(result) if any(map(is_estimate, figures)) else result


def total(figures: Iterable[Figure], *, reason: str = "nothing to add") -> Figure:
    """The sum of the figures: missing if one is, estimated if one is, `reason` if there is none."""
    listed = tuple(figures)
    if not listed:
        return Missing(reason)
    return combine(lambda *numbers: sum(numbers), *listed)
