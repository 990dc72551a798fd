"""What may be told of a run that was killed before it could conclude. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from a40console.model.figures import Figure, Missing, number, total
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Cell, Column, RunResult, Table, Verdict

_COLUMNS = (
    Column(title="arm"),
    Column(title="requests", digits=0),
    Column(title="errors", digits=0),
    Column(title="repeats ended", digits=0),
    Column(title="TTFT mean", unit="s", digits=3),
    Column(title="request mean", unit="s", digits=2),
    Column(title="generated", unit="tokens", digits=0),
)
_NOTE = "Warm-up is left out. Arms that had not ended are in it as far as they came."
_NO_REQUEST = Missing("no request of it succeeded")


def result_of_samples(samples: Sequence[Sample], arm_ends: Sequence[ArmEnd]) -> RunResult | None:
    """The requests of each arm as they were timed, with no verdict; None where none succeeded."""
    counted = [sample for sample in samples if not sample.warm_up]
    succeeded = sum(not sample.error for sample in counted)
    if not succeeded:
        return None
    arms = list(dict.fromkeys(sample.arm for sample in counted))
    rows = tuple(_row(arm, counted, arm_ends) for arm in arms)
    return RunResult(
        headline=f"ended before its conclusion: {succeeded} requests of {_arms(len(arms))}",
        verdict=Verdict(kind="none", text="The run was killed before it could conclude."),
        tables=(Table(title="What was measured", columns=_COLUMNS, rows=rows, note=_NOTE),),
    )


def _arms(count: int) -> str:
    return "1 arm" if count == 1 else f"{count} arms"


def _row(arm: str, samples: Sequence[Sample], arm_ends: Sequence[ArmEnd]) -> tuple[Cell, ...]:
    own = [sample for sample in samples if sample.arm == arm]
    good = [sample for sample in own if not sample.error]
    return (
        arm,
        len(own),
        len(own) - len(good),
        sum(end.arm == arm for end in arm_ends),
        _mean([sample.ttft_s for sample in good]),
        _mean([sample.total_s for sample in good]),
        total([sample.generated_tokens for sample in good], reason=_NO_REQUEST.reason),
    )


def _mean(figures: Sequence[Figure]) -> Figure:
    """Of those that are known."""
    known = [value for figure in figures if (value := number(figure)) is not None]
    return fmean(known) if known else _NO_REQUEST
