"""Two runs side by side: what differs, what it did, and whether that may be said. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.ledger.arm_ratios import Measured, arm_ratios
from a40console.ledger.setting_differences import counting, differences
from a40console.model.figures import Missing
from a40console.model.run import ENDED, ArmRatio, Comparison, Difference, Run, RunEnvironment
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Interval
from a40console.model.run_words import is_simulated, ratio_text

_MOST_NAMED = 6
_TOLD_FIRST = {
    "wall_s": "Wall time",
    "generated_tok_per_s": "Generated tokens a second",
    "request_s": "Seconds a request",
    "ttft_s": "TTFT",
}
"""Which figure the verdict speaks of: the first that has an interval."""


def compare(
    left: Run,
    right: Run,
    *,
    samples: tuple[Sequence[Sample], Sequence[Sample]] = ((), ()),
    arm_ends: tuple[Sequence[ArmEnd], Sequence[ArmEnd]] = ((), ()),
) -> Comparison:
    """What differs between two runs, and what may be said of it.

    Args:
        left: The one that is compared against.
        right: The one that is compared.
        samples: The requests of the left run and of the right one, where they are at hand.
        arm_ends: The ends of their arms, likewise.
    """
    found = differences(left, right)
    if refusal := _refusal(left, right):
        return _comparison(left, right, found, (), f"Not compared: {refusal}")
    ratios = arm_ratios(
        Measured(run=left, samples=samples[0], arm_ends=arm_ends[0]),
        Measured(run=right, samples=samples[1], arm_ends=arm_ends[1]),
    )
    counted = counting(found)
    verdict = " ".join(
        (*_reservations(left, right), _verdict(counted), *_unknown(left, right), *_effect(ratios))
    )
    believed = len(counted) == 1 and not left.reference and not right.reference
    return _comparison(left, right, found, ratios, verdict, attributable=believed)


def _comparison(
    left: Run,
    right: Run,
    found: tuple[Difference, ...],
    ratios: tuple[ArmRatio, ...],
    verdict: str,
    *,
    attributable: bool = False,
) -> Comparison:
    return Comparison(
        left=left.id,
        right=right.id,
        differences=found,
        ratios=ratios,
        verdict=verdict,
        attributable=attributable,
    )


def _refusal(left: Run, right: Run) -> str:
    """Why no figure of one may stand beside one of the other; empty where they may."""
    if left.id == right.id:
        return f"{left.id} is one and the same run."
    for run in (left, right):
        if run.state not in ENDED:
            return f"{run.id} has not ended."
        if run.state == "failed":
            return f"{run.id} failed and measured nothing usable: {run.reason}."
        if run.state == "invalid":
            return f"{run.id} is invalid: {run.reason}."
    if left.spec.experiment != right.spec.experiment:
        return f"{left.spec.experiment} and {right.spec.experiment} are two experiments."
    if is_simulated(left) != is_simulated(right):
        simulated = left if is_simulated(left) else right
        return f"{simulated.id} was measured on the simulated engine, the other was not."
    return ""


def _reservations(left: Run, right: Run) -> list[str]:
    """What must be known before anything is said."""
    said = ["SIMULATED: this is about the simulation, not a GPU."] if is_simulated(left) else []
    if left.reference or right.reference:
        said.append("REFERENCE rows were measured by others: nothing is put down to one setting.")
    partial = [run for run in (left, right) if run.state == "partial"]
    said += [f"{run.id} is partial: {run.reason or 'it did not end'}." for run in partial]
    return said


def _verdict(counted: Sequence[Difference]) -> str:
    if not counted:
        return "No recorded setting differs: no difference can be put down to one."
    if len(counted) == 1:
        one = counted[0]
        return f"Only {one.name} differs: {one.left} → {one.right}."
    names = ", ".join(difference.name for difference in counted[:_MOST_NAMED])
    more = f" and {len(counted) - _MOST_NAMED} more" if len(counted) > _MOST_NAMED else ""
    return (
        f"{len(counted)} settings differ ({names}{more}): "
        "what differs in the figures cannot be put down to any one of them."
    )


def _unknown(left: Run, right: Run) -> list[str]:
    """What neither run knows and so could differ unseen."""
    if is_simulated(left):
        return []
    both = [run.environment for run in (left, right)]
    names = [
        words
        for name, words in (("model_digest", "the model's digest"), ("host", "the machine"))
        if all(
            isinstance(place, RunEnvironment) and isinstance(getattr(place, name), Missing)
            for place in both
        )
    ]
    return [f"Neither run knows {' and '.join(names)}: that could differ unseen."] if names else []


def _effect(ratios: Sequence[ArmRatio]) -> list[str]:
    """Each arm's effect in the figure that is told first."""
    for figure, words in _TOLD_FIRST.items():
        told = [
            _words(ratio.arm, ratio.ratio)
            for ratio in ratios
            if ratio.figure == figure and isinstance(ratio.ratio, Interval)
        ]
        if told:
            return [f"{words}, right over left: {'; '.join(told)}."]
    if not ratios:
        return ["They share no arm."]
    return ["Without repeats on both sides a difference cannot be told from noise."]


def _words(arm: str, ratio: Interval) -> str:
    noise = "" if ratio.low > 1 or ratio.high < 1 else ", no difference beyond noise"
    return f"{arm} {ratio_text(ratio)}{noise}"
