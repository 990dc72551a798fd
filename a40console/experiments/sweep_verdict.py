"""What the steps of a sweep say together: whether more streams pay, and up to where. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.experiments.bench import Bench
from a40console.experiments.repeats import Measured
from a40console.model import statistics
from a40console.model.figures import Missing, number
from a40console.model.run_result import Verdict
from a40console.model.run_words import ratio_text

LEAST_SHARE = 0.5
"""Of growth in proportion to the streams: a step that brings less of it lies beyond the knee."""


def step_name(streams: int) -> str:
    """The arm of a step."""
    return "1 stream" if streams == 1 else f"{streams} streams"


def rate_of(step: Measured) -> float:
    """Its sustained speed; 0 where it has none."""
    return number(step.sustained.mean) or 0.0


def verdict_of(bench: Bench, steps: Sequence[Measured], best: Measured, stopped: str) -> Verdict:
    """Whether more streams bring speed, and up to where they pay.

    Args:
        bench: Whose seed the resampling has.
        steps: All of them, that with the fewest streams first.
        best: The fastest.
        stopped: Why the run ended before its time; empty where it did not.
    """
    if stopped:
        return Verdict(kind="none", text=f"It was stopped ({stopped}): the steps above stand.")
    first = steps[0]
    if len(steps) < 2 or not all(step.sustained.known for step in steps):
        told = "one step shows no growth" if len(steps) < 2 else "a step has no figure"
        return Verdict(kind="none", text=f"No verdict: {told}.")
    if best is first:
        best = max(steps[1:], key=rate_of)
    contrast = statistics.difference(first.sustained.known, best.sustained.known, seed=bench.seed)
    if isinstance(contrast.ratio, Missing):
        return Verdict(kind="none", text=f"No verdict: {contrast.ratio.reason}.")
    told = (
        f"{step_name(best.streams)} together are {ratio_text(contrast.ratio)} as fast as "
        f"{step_name(first.streams)}"
    )
    if not contrast.differs:
        text = f"No difference beyond noise: {told}."
        return Verdict(kind="no difference", text=text, ratio=contrast.ratio)
    if contrast.ratio.high < 1:
        text = f"More streams cost speed: {told}."
        return Verdict(
            kind="difference", text=text, winner=step_name(first.streams), ratio=contrast.ratio
        )
    return Verdict(
        kind="difference",
        text=f"{told}. {_knee_text(steps)}",
        winner=step_name(best.streams),
        ratio=contrast.ratio,
    )


def _knee_text(steps: Sequence[Measured]) -> str:
    """Where it bends, and in how many repeats it does so there."""
    streams = [step.streams for step in steps]
    at = knee(streams, [rate_of(step) for step in steps])
    known = [step.sustained.known for step in steps]
    repeats = sorted(set.intersection(*(set(each) for each in known)))
    agreed = sum(knee(streams, [each[repeat] for each in known]) == at for repeat in repeats)
    sure = f"in {agreed} of {len(repeats)} repeats"
    if at is None:
        return f"No knee up to {step_name(streams[-1])} ({sure}): every step up to there paid."
    return (
        f"The knee is at {step_name(at)} ({sure}): from there on more streams bring less than half "
        "of their proportion."
    )


def knee(streams: Sequence[int], rates: Sequence[float]) -> int | None:
    """The last step before further streams bring little; None where that never happens.

    Little is less than half of what speed in proportion to the streams would have brought: a
    doubling that gives less than 1.5 times as much.
    """
    for at in range(1, len(streams)):
        gained = rates[at] / rates[at - 1] - 1
        if gained < LEAST_SHARE * (streams[at] / streams[at - 1] - 1):
            return streams[at - 1]
    return None
