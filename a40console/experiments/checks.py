"""Things that pass, fail, or cannot be tried, each with what was seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a40console.experiments.bench import Known
from a40console.experiments.costs import dollars, load_seconds
from a40console.model.run import RunPlan
from a40console.model.run_result import Column, RunResult, Table, Verdict

_COLUMNS = (Column(title="check"), Column(title="result"), Column(title="evidence"))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    name: str
    passed: bool | None
    """None: skipped."""

    evidence: str
    """What was seen, or why it was skipped."""


def plan_of(
    arm: str, known: Known, *, answers: int, prompt_tokens: int, output_tokens: int, counts: int = 0
) -> RunPlan:
    """What a few short requests would take.

    Args:
        arm: Of all of them.
        known: What planning may rest on.
        answers: How many requests are answered with tokens.
        prompt_tokens: Of each.
        output_tokens: Of each.
        counts: How many requests more only count tokens.
    """
    seconds = load_seconds(
        known,
        streams=1,
        requests=answers,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
    )
    return RunPlan(
        arms=(arm,),
        requests=answers + counts,
        seconds=seconds,
        usd=dollars(seconds, known.usd_per_h),
        intrusion="shares",
        consequences=("A few short requests beside those of others.",),
    )


def result_of(title: str, checks: Sequence[Check], stopped: str) -> RunResult:
    """A row for each, and whether all were tried and passed.

    Args:
        title: What was tried.
        checks: In the order in which they are shown.
        stopped: Why the run ended before its time; empty where it did not.
    """
    passed = [check for check in checks if check.passed]
    failed = [check for check in checks if check.passed is False]
    skipped = len(checks) - len(passed) - len(failed)
    told = f"{len(passed)} of {len(checks)} passed"
    told += f", {len(failed)} failed" if failed else ""
    told += f", {skipped} skipped" if skipped else ""
    rows = tuple((check.name, _word(check), check.evidence) for check in checks)
    return RunResult(
        headline=f"{title}: {told}",
        verdict=_verdict(told, checks, stopped),
        tables=(Table(title=title, columns=_COLUMNS, rows=rows),),
    )


def _verdict(told: str, checks: Sequence[Check], stopped: str) -> Verdict:
    passed = [check for check in checks if check.passed]
    failed = [check for check in checks if check.passed is False]
    if failed:
        reasons = "; ".join(f"{check.name}: {check.evidence}" for check in failed)
        return Verdict(kind="failed", text=reasons)
    if stopped:
        return Verdict(kind="none", text=f"It was stopped ({stopped}): {told} till then.")
    if not passed:
        return Verdict(kind="none", text=f"Nothing could be tried: {told}.")
    if untried := [check.name for check in checks if not check.passed]:
        text = f"Nothing failed, but not everything could be tried: {', '.join(untried)}."
        return Verdict(kind="none", text=text)
    return Verdict(kind="passed", text=f"{told}.")


def _word(check: Check) -> str:
    return "skipped" if check.passed is None else "passed" if check.passed else "failed"
