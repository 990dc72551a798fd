"""The figures of arms that two runs share, right over left. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from a40console.model.figures import Estimated, Figure, Missing, number, ratio, total
from a40console.model.run import ArmRatio, Run
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Cell, Column
from a40console.model.statistics import ratio_of_means

NOT_MEASURED = Missing("not measured")
_ERRORS = "errors"
NO_REPEATS = Missing("its repeats are not at hand")

_Repeats: TypeAlias = Mapping[int, float]
_Figures: TypeAlias = Mapping[tuple[str, str], _Repeats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run measured, as far as it is at hand."""

    run: Run
    samples: Sequence[Sample] = ()
    arm_ends: Sequence[ArmEnd] = ()


def arm_ratios(left: Measured, right: Measured) -> tuple[ArmRatio, ...]:
    """By repeats where both have them, else by the cells of tables that both have.

    An arm that is in one run only is no part of the answer.
    """
    ours, theirs = _figures(left), _figures(right)
    if ours and theirs:
        return tuple(_from_repeats(ours, theirs))
    return tuple(_from_cells(_cells(left.run), _cells(right.run)))


def _from_repeats(ours: _Figures, theirs: _Figures) -> Iterator[ArmRatio]:
    shared = {arm for arm, _ in ours} & {arm for arm, _ in theirs}
    keys = dict.fromkeys((*ours, *theirs))
    for arm, figure in keys:
        if arm not in shared:
            continue
        one, other = (list(side.get((arm, figure), {}).values()) for side in (ours, theirs))
        if figure == _ERRORS and not any((*one, *other)):
            continue
        yield ArmRatio(
            arm=arm,
            figure=figure,
            left=fmean(one) if one else NOT_MEASURED,
            right=fmean(other) if other else NOT_MEASURED,
            ratio=ratio_of_means(one, other) if one and other else NOT_MEASURED,
        )


def _figures(measured: Measured) -> _Figures:
    """Arm and figure to one value a repeat; of repeats that ended."""
    ends = {(end.arm, end.repeat): end for end in measured.arm_ends}
    found: dict[tuple[str, str], dict[int, float]] = {}
    for (arm, repeat), end in ends.items():
        own = [
            sample
            for sample in measured.samples
            if (sample.arm, sample.repeat) == (arm, repeat) and not sample.warm_up
        ]
        for figure, value in _of_repeat(end, own):
            if (plain := number(value)) is not None:
                found.setdefault((arm, figure), {})[repeat] = plain
    return found


def _of_repeat(end: ArmEnd, samples: Sequence[Sample]) -> Iterator[tuple[str, Figure]]:
    good = [sample for sample in samples if not sample.error]
    # A request that failed is short, and makes the repeat another load.
    whole = len(good) == len(samples) and not number(end.client.get(_ERRORS, 0))
    yield "wall_s", end.wall_s if whole else NOT_MEASURED
    yield "generated_tok_per_s", _rate(samples) if whole else NOT_MEASURED
    yield "ttft_s", _mean([sample.ttft_s for sample in good])
    yield "request_s", _mean([sample.total_s for sample in good])
    yield "gap_s", _mean([gap for sample in good for gap in sample.gaps_s])
    yield "usd", end.usd if whole else NOT_MEASURED
    if samples:
        yield _ERRORS, sum(bool(sample.error) for sample in samples)


def _rate(samples: Sequence[Sample]) -> Figure:
    """Tokens a second from the first request to the last answer.

    A summary takes time and gives no tokens. Of an answer without content nobody knows its end.
    """
    ends_s = [
        sample.due_s + total_s
        for sample in samples
        if (total_s := number(sample.total_s)) is not None
    ]
    if not samples or len(ends_s) < len(samples):
        return NOT_MEASURED
    answers = [sample.generated_tokens for sample in samples if sample.role != "summary"]
    return ratio(total(answers), max(ends_s) - min(sample.due_s for sample in samples))


def _mean(figures: Sequence[Figure]) -> Figure:
    known = [value for figure in figures if (value := number(figure)) is not None]
    return fmean(known) if known else NOT_MEASURED


_Cells: TypeAlias = Mapping[tuple[str, str], Figure]


def _from_cells(ours: _Cells, theirs: _Cells) -> Iterator[ArmRatio]:
    for arm, figure in ours:
        if (arm, figure) in theirs:
            left, right = ours[arm, figure], theirs[arm, figure]
            yield ArmRatio(arm=arm, figure=figure, left=left, right=right, ratio=NO_REPEATS)


def _cells(run: Run) -> _Cells:
    """Row and column to the number there; the first table that has it."""
    found: dict[tuple[str, str], Figure] = {}
    if isinstance(run.result, Missing):
        return found
    for table in run.result.tables:
        # What a row is about stands before its first measure, which has a unit.
        first = next((at for at, column in enumerate(table.columns) if column.unit), 1)
        for row in table.rows:
            arm = ", ".join(map(_named, table.columns[:first], row))
            for column, cell in zip(table.columns[first:], row[first:], strict=False):
                if arm and isinstance(cell, int | float | Estimated):
                    found.setdefault((arm, f"{column.title} {column.unit}".strip()), cell)
    return found


def _named(column: Column, cell: Cell) -> str:
    """A cell as a part of what a row is called: an arm's name, or `streams 4`."""
    if isinstance(cell, str):
        return cell
    value = number(cell)
    return column.title if value is None else f"{column.title} {value:g}"
