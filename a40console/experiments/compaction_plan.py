"""What a compaction run would take, from a session gone through on paper. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.experiments.bench import Known
from a40console.experiments.compaction_offer import (
    AS_IS,
    Arm,
    Conditions,
    ImpossibleError,
    conditions,
)
from a40console.experiments.costs import dollars, estimated
from a40console.experiments.planted import ANSWER_TOKENS
from a40console.experiments.session_course import Forecast, forecast
from a40console.experiments.shrinking import TOLD
from a40console.model.experiment import Value
from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.run import RunPlan, RunTarget

WARM_UP_REQUESTS = 6


def plan(settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
    """What it would take; `refusal` where it cannot be run so."""
    window = number(known.window_tokens)
    told = known.window_tokens if isinstance(known.window_tokens, Missing) else int(window or 0)
    try:
        fixed = conditions(settled, told, known.speculation_depth)
    except ImpossibleError as error:
        return RunPlan(
            arms=(),
            requests=0,
            seconds=Missing(str(error)),
            usd=Missing(str(error)),
            intrusion="nothing",
            consequences=(),
            refusal=str(error),
        )
    paper = {
        arm.name: forecast(
            fixed.lengths,
            arm.shrinking(fixed.low_water),
            None if window is None else int(window),
        )
        for arm in fixed.arms
    }
    times = fixed.repeats * len(fixed.speculation)
    asked = sum(each.requests for each in paper.values()) + fixed.facts * len(fixed.arms)
    seconds = _seconds(fixed, paper, known)
    resets = known.can_reset_cache and fixed.reset_cache
    return RunPlan(
        arms=tuple(
            fixed.label(arm, setting) for setting in fixed.speculation for arm in fixed.arms
        ),
        requests=asked * times + WARM_UP_REQUESTS,
        seconds=seconds,
        usd=dollars(seconds, known.usd_per_h),
        intrusion="evicts",  # without a reset too: its contexts push others' out
        consequences=tuple(_consequences(fixed, paper, target, resets=resets)),
        refusal=_refusal(fixed, known),
    )


def _seconds(fixed: Conditions, paper: Mapping[str, Forecast], known: Known) -> Figure:
    computed = sum(each.computed_tokens for each in paper.values())
    asked = fixed.facts * len(fixed.arms)
    generated = sum(each.generated_tokens for each in paper.values()) + asked * ANSWER_TOKENS

    def formula(prefill: float, generation: float) -> float | None:
        if prefill <= 0 or generation <= 0:
            return None
        once = computed / prefill + generated / generation
        return once * fixed.repeats * len(fixed.speculation)

    rates = (known.prefill_tokens_per_s, known.generation_tokens_per_s)
    return estimated(combine(formula, *rates, reason="the engine's speed is not known"))


def _consequences(
    fixed: Conditions, paper: Mapping[str, Forecast], target: RunTarget, *, resets: bool
) -> list[str]:
    sessions = len(fixed.arms) * fixed.repeats * len(fixed.speculation)
    told = [f"{sessions} sessions of {len(fixed.lengths.turns)} turns, one after another."]
    told += [_arm_told(arm) for arm in fixed.arms]
    if resets:
        told.append(
            f"The prefix cache is emptied {sessions} times: whoever works meanwhile has every "
            "prompt read again."
        )
    else:
        told.append("Its contexts take room in the prefix cache, and push others' out.")
    if fixed.speculation != (AS_IS,):
        told.append("Speculation is turned off and on for everybody meanwhile.")
    told += [
        f"{name} overflows the window at turn {each.overflows_at}, and has no score."
        for name, each in paper.items()
        if each.overflows_at is not None
    ]
    told += [f"{note[0].upper()}{note[1:]}." for note in fixed.notes]
    if target.dialect == "anthropic":
        told.append(
            "The Anthropic dialect has no order for an answer's length: where answers are not "
            "equally long, the run is invalid."
        )
    return told


def _arm_told(arm: Arm) -> str:
    past = f", past {arm.limit_tokens:,} tokens" if arm.limit_tokens else ""
    return f"{arm.name}: {TOLD[arm.way]}{past}."


def _refusal(fixed: Conditions, known: Known) -> str:
    if fixed.speculation == (AS_IS,) or known.live_speculation:
        return ""
    return "speculation cannot be turned on this engine while it runs: set speculation=as-is"
