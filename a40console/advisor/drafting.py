"""Whether speculation costs more than it brings at this load."""

from __future__ import annotations

from a40console.advisor.judgement import Cleared, Judgement, Spoken, Unclear, unclear
from a40console.advisor.readings import Readings, is_fresh, shown
from a40console.advisor.wording import brief, count, duration, percent, threshold, whole
from a40console.model.figures import Missing, combine, number

LOSES_RATIO = 0.95
"""Slower than this share of the measured rate without it is a loss: below the scatter of runs."""

DRAFTS_FOR_A_VERDICT = 100
POOR_TOKENS_PER_PASS = 1.3
POOR_ACCEPTANCE = 0.2

_TRY_OFF = "Turn it off and compare at the same load."
_ELSEWHERE = "on one A40, n-gram was 8 % slower at 2 requests, 28 % at 4, 36 % at 8"
"""Field measurements of another engine start: a hint, never a verdict."""


def speculation(readings: Readings) -> Judgement:
    """By the rate measured without it; else by how little drafts bring, which is weak evidence."""
    block = readings.snapshot.speculation
    if isinstance(block.mode, Missing):
        return Unclear(block.mode.reason)
    if block.mode == "off":
        return Cleared("speculation is off")
    off = number(block.off_tokens_per_s_at_this_load)
    now = readings.generation_tokens_per_s
    if off is None or now is None or not readings.running:
        return _by_acceptance(readings)
    with_it = readings.snapshot.throughput.generation_tokens_per_s
    without = block.off_tokens_per_s_at_this_load
    speeds = f"{shown(with_it, brief)} tok/s with it, {shown(without, brief)} without"
    told = f"{speeds} (measured at {_load(readings)})"
    if now >= LOSES_RATIO * off:
        return Cleared(f"{told}: not below {threshold(LOSES_RATIO)} of it")
    lost = shown(combine(lambda now, off: 1 - now / off, with_it, without), percent)
    return Spoken(
        text=f"speculation costs {lost} at this load",
        evidence=(told, *_drafts(readings)),
        remedy="Turn speculation off while so many work at once.",
        command="engine.speculation",
    )


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
