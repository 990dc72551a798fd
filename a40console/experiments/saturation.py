"""Whether a run's own client falsified what it tells. Pure.

Its lag is how long bytes wait until it stamps them. A time to first token is longer by that, and so
is a whole request. Gaps between tokens are not: what both stamps are late by cancels out, and only
scatters them. So every figure is judged by itself: seconds of a request stand on a busy machine
where the moment of its first token does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.rates import answered
from a40console.model.figures import NOT_TOLD, Figure, Missing, number
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Doubt
from a40console.model.statistics import LEAST_REPEATS

SATURATED = "client-saturated"
"""The doubt of repeats that are left out, because the client was too busy for them."""

LEFT_OUT = "the client was the limit"
"""Why an arm has no figure whose repeats are left out."""

LATE = "client-late"
"""The doubt of latencies that are told over fewer repeats, or not at all: speeds stand."""

MOST_LATE_SHARE = 0.05
"""Of a duration, that its end may be stamped late."""

MOST_SCATTER_SHARE = 0.2
"""Of a gap, that either of its stamps may be late."""

LEAST_LAG_S = 0.001
"""Less is how the kernel wakes processes, whatever they do: no client is quicker."""

MOST_CPU_CORES = 0.7
"""A process with one loop is at its end at one core, and late well before."""


def spoiled(end: ArmEnd, samples: Sequence[Sample]) -> str:
    """Why seconds and rates of a repeat are its client's doing; empty where they are the engine's.

    Args:
        end: What was true around it.
        samples: Of its requests.
    """
    reasons = []
    cores = number(end.client.get("cpu_cores", NOT_TOLD))
    if cores is not None and cores > MOST_CPU_CORES:
        reasons.append(f"it used {cores:.2f} of a core (at most {MOST_CPU_CORES:g})")
    took_s = [value for each in answered(samples) if (value := number(each.total_s)) is not None]
    lag_s = number(end.client.get("loop_lag_mean_s", NOT_TOLD))
    if took_s and lag_s is not None and _too_late(lag_s, fmean(took_s), MOST_LATE_SHARE):
        share = lag_s / fmean(took_s)
        reasons.append(
            f"bytes waited {lag_s * 1000:.1f} ms on average until it read them, {share:.1%} of a "
            f"request (at most {MOST_LATE_SHARE:.0%})"
        )
    return " and ".join(reasons)


def leave_out(bench: Bench, arms: Iterable[str]) -> tuple[frozenset[ArmRepeat], list[Doubt]]:
    """The repeats that the client spoiled, and a doubt of each arm that has such.

    Where an arm keeps fewer repeats than an interval needs, no figure of the run stands.
    """
    out: set[ArmRepeat] = set()
    doubts: list[Doubt] = []
    for arm in arms:
        ends = bench.arm_ends(arm)
        found = {
            end.repeat: why for end in ends if (why := spoiled(end, bench.samples(arm, end.repeat)))
        }
        if not found:
            continue
        out |= {(arm, repeat) for repeat in found}
        kept = len(ends) - len(found)
        invalidates = kept < LEAST_REPEATS
        text = _left_out(found, len(ends))
        doubts.append(Doubt(code=SATURATED, text=text, invalidates=invalidates, arm=arm))
    return frozenset(out), doubts


def _left_out(found: Mapping[int, str], repeats: int) -> str:
    """Which of an arm's repeats are left out, each with its reason, and whether enough are left."""
    if repeats == 1:
        return f"{LEFT_OUT} in its only repeat, which is left out: {''.join(found.values())}"
    told = "; ".join(f"repeat {repeat + 1}: {why}" for repeat, why in sorted(found.items()))
    text = f"{LEFT_OUT} in {len(found)} of {repeats} repeats, left out: {told}"
    kept = repeats - len(found)
    return text if kept >= LEAST_REPEATS else f"{text}; {kept} left of at least {LEAST_REPEATS}"


def in_time(
    figure_of: Callable[[Sequence[Sample]], Figure],
    samples: Sequence[Sample],
    ends: Sequence[ArmEnd],
    lag: str,
    most_share: float,
) -> tuple[Figure, str]:
    """A figure of an arm over the repeats in which its client read in time for it.

    Args:
        figure_of: Makes it, in seconds.
        samples: Of all repeats.
        ends: What was true around them.
        lag: Which of the client's lags is in it: `loop_lag_mean_s`, `loop_lag_p99_s`.
        most_share: Of the figure that the client may be late.

    Returns:
        The figure, missing where it read in time in too few; and what is to be said of that, empty
        where it always did.
    """
    figure = figure_of(samples)
    value_s = number(figure)
    if value_s is None:
        return figure, ""
    lags_s = {end.repeat: number(end.client.get(lag, NOT_TOLD)) for end in ends}
    late_s = {
        repeat: lag_s
        for repeat, lag_s in lags_s.items()
        if lag_s is not None and _too_late(lag_s, value_s, most_share)
    }
    if not late_s:
        return figure, ""
    worst = f"the client read {max(late_s.values()) * 1000:.1f} ms late, of {value_s * 1000:.1f} ms"
    kept = len(ends) - len(late_s)
    if kept < LEAST_REPEATS:
        return Missing(worst), worst
    in_these = [sample for sample in samples if sample.repeat not in late_s]
    return figure_of(in_these), f"over {kept} of {len(ends)} repeats, as {worst}"


def _too_late(lag_s: float, of_s: float, most_share: float) -> bool:
    return lag_s > max(LEAST_LAG_S, most_share * of_s)
