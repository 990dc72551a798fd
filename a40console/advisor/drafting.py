"""Whether speculation costs more than it brings at this load."""

from __future__ import annotations

from a40console.advisor.judgement import Cleared, Judgement, Spoken, Unclear, unclear
from a40console.advisor.readings import Readings, is_fresh, shown
from a40console.advisor.wording import brief, count, duration, percent, threshold, whole
from a40console.model.figures import Missing, combine, number
from a40console.model.freshness import MEASURED_STALE_S
from a40console.model.snapshot import DepthSpeed, SpeculationInfo

LOSES_RATIO = 0.9
"""Slower than this share of the measured rate without it is a loss: below the scatter of runs, and
what contexts of the same load differ by."""

LOSES_ROUGHLY_RATIO = 0.75
"""The same where contexts are only about as long: reading them takes up to a quarter more."""

DRAFTS_FOR_A_VERDICT = 100
POOR_TOKENS_PER_PASS = 1.3
POOR_ACCEPTANCE = 0.2

_TRY_OFF = "Turn it off and compare at the same load."
_ELSEWHERE = "on one A40, n-gram was 8 % slower at 2 requests, 28 % at 4, 36 % at 8"
"""Field measurements of another engine start: a hint, never a verdict."""


def speculation(readings: Readings) -> Judgement:
    """By the rate measured without it; else by how little drafts bring, which is weak evidence.

    Both speeds are of steady decoding at this load: the rate of the last seconds is of neither
    while requests come and go, or just after the depth was changed.
    """
    block = readings.snapshot.speculation
    if isinstance(block.mode, Missing):
        return Unclear(block.mode.reason)
    if block.mode == "off":
        return Cleared("speculation is off")
    if not readings.running or number(block.off_tokens_per_s_at_this_load) is None:
        return _by_acceptance(readings)
    with_it, without = _at(block, number(block.depth)), _at(block, 0)
    if without is None or with_it is None or not is_fresh(with_it.age_s):
        return Unclear("its speed at this load is told after 5 s of steady decoding")
    return _compared(readings, with_it, without)


def _at(block: SpeculationInfo, depth: float | None) -> DepthSpeed | None:
    """What was measured at a depth, at this load."""
    return next((each for each in block.measured_at_this_load if each.depth == depth), None)


def _compared(readings: Readings, with_it: DepthSpeed, without: DepthSpeed) -> Judgement:
    """Both speeds at one load: the loss, or that there is none."""
    now, off = number(with_it.tokens_per_s), number(without.tokens_per_s)
    if now is None or not off:
        return _by_acceptance(readings)
    least = LOSES_ROUGHLY_RATIO if with_it.is_rough or without.is_rough else LOSES_RATIO
    told = (
        f"{shown(with_it.tokens_per_s, brief)} tok/s with it,"
        f" {shown(without.tokens_per_s, brief)} without"
        f" (measured at this load, {_load(readings)}, {duration(round(without.age_s))} ago)"
    )
    if now >= least * off:
        return Cleared(f"{told}: not below {threshold(least)} of it")
    lost = combine(lambda now, off: 1 - now / off, with_it.tokens_per_s, without.tokens_per_s)
    return Spoken(
        text=f"speculation costs {shown(lost, percent)} at this load",
        evidence=(told, *_drafts(readings)),
        remedy=_better(readings.snapshot.speculation, off),
        command="engine.speculation",
    )


def _better(block: SpeculationInfo, off: float) -> str:
    """What was measured to be faster, lately and at this load alone: another depth, else none."""
    faster = [
        (speed, each)
        for each in block.measured_at_this_load
        if each.depth and not each.is_rough and each.age_s <= MEASURED_STALE_S
        if (speed := number(each.tokens_per_s) or 0.0) > off
    ]
    if not faster:
        return "Turn speculation off while so many work at once."
    best = max(faster, key=lambda entry: entry[0])[1]
    measured = f"{shown(best.tokens_per_s, brief)} tok/s at this load"
    return f"Set its depth to {best.depth}: {measured}, {duration(round(best.age_s))} ago."


def _by_acceptance(readings: Readings) -> Judgement:
    block = readings.snapshot.speculation
    drafts, per_pass = number(block.drafts), number(block.tokens_per_pass)
    accepted, running = number(block.acceptance_ratio), readings.running
    enough = drafts is not None and drafts >= DRAFTS_FOR_A_VERDICT and is_fresh(block.age_s)
    poor = per_pass is not None and per_pass < POOR_TOKENS_PER_PASS
    refused = accepted is not None and accepted < POOR_ACCEPTANCE
    if enough and poor and refused:
        brought = shown(block.tokens_per_pass, brief)
        text = f"drafts bring {brought} tokens a pass: they may cost more than that"
    elif enough and running is not None and running >= 2:
        text = f"{_load(readings)} share the batch with their drafts"
    else:
        return unclear(
            block.off_tokens_per_s_at_this_load,
            block.drafts,
            otherwise="nothing was measured without it at this load",
        )
    why = block.off_tokens_per_s_at_this_load
    unknown = f"without it: {why.reason}" if isinstance(why, Missing) else "its speed is not known"
    elsewhere = _ELSEWHERE if running is not None and running >= 2 else ""
    return Spoken(
        text=text,
        evidence=tuple(filter(None, (*_drafts(readings), unknown, elsewhere))),
        strength="weak",
        remedy=_TRY_OFF,
        command="engine.speculation",
    )


def _load(readings: Readings) -> str:
    return shown(readings.snapshot.requests.running, lambda n: count(n, "request"))


def _drafts(readings: Readings) -> tuple[str, ...]:
    block = readings.snapshot.speculation
    told = []
    if per_pass := shown(block.tokens_per_pass, brief):
        told.append(f"{per_pass} tokens a pass")
    if accepted := shown(block.acceptance_ratio, percent):
        told.append(f"{accepted} of drafted tokens accepted")
    if drafts := shown(block.drafts, whole):
        told.append(f"{drafts} drafts ({duration(block.window_s)})")
    if not isinstance(block.tail_verdict, Missing):
        told.append(block.tail_verdict)
    return tuple(told)
