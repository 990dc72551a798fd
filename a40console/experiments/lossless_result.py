"""What asking with and without speculation found. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from a40console.experiments.answers_compared import NEAR_TIE_NATS, Compared
from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.depth_scan import summed
from a40console.experiments.loads import doubted_failures
from a40console.experiments.regime_arms import OFF, OFF_LIVE, line_for
from a40console.experiments.result_words import written
from a40console.model.figures import number
from a40console.model.run_result import Cell, Column, RunResult, Table, Verdict

WITHOUT, WITH = "without", "with"
EXCERPTS = 6

_BASELINES = {OFF_LIVE: "itself with speculation turned off", OFF: "an engine started without"}

_COLUMNS = (
    Column(title="probe"),
    Column(title="result"),
    Column(title="the same up to", unit="characters", digits=0),
    Column(title="gap", unit="nats", digits=3),
    Column(title="fragment"),
)


def conclude(
    bench: Bench,
    compared: Sequence[Compared],
    stopped: str,
    *,
    depth: int,
    baseline: str,
    cut: ArmRepeat | None = None,
) -> RunResult:
    """The result of the probes that both arms answered.

    Args:
        bench: With what was recorded.
        compared: One for each probe.
        stopped: Why the run ended before its time; empty where it did not.
        depth: Drafted tokens a pass.
        baseline: What it was held against: `off`, `off-live`; empty where nothing was yet.
        cut: Where the engine went away, if it did.
    """
    samples = [sample for arm in (WITHOUT, WITH) for sample in bench.samples(arm)]
    invalid, doubts = doubted_failures(samples, cut)
    if invalid or not compared:
        why = invalid or stopped or "no probe was answered in both arms"
        verdict = Verdict(kind="none", text=f"Nothing stands: {why}.")
        headline = f"Nothing was compared: {why}"
        return RunResult(headline=headline, verdict=verdict, doubts=tuple(doubts))
    what = f"depth {depth} against {_BASELINES.get(baseline, 'nothing yet')}"
    verdict = _verdict(bench, compared, what, stopped)
    if verdict.kind == "failed":
        verdict = replace(verdict, paste=line_for(baseline))
    return RunResult(
        headline=_headline(compared, what),
        verdict=verdict,
        tables=(_table(compared),),
        doubts=tuple(doubts),
        excerpts=tuple(each.excerpt for each in _worst_first(compared) if each.excerpt)[:EXCERPTS],
    )


def _worst_first(compared: Sequence[Compared]) -> list[Compared]:
    return sorted(compared, key=lambda each: each.kind != "corrupt")


def _headline(compared: Sequence[Compared], what: str) -> str:
    kinds = Counter(each.kind for each in compared)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{len(compared)} probes at {what}: {told}"


def _verdict(bench: Bench, compared: Sequence[Compared], what: str, stopped: str) -> Verdict:
    by_kind = {each.kind: each for each in compared}
    kinds = Counter(each.kind for each in compared)
    if corrupt := kinds["corrupt"]:
        worst = by_kind["corrupt"]
        shown = f": {worst.fragment!r} came out again" if worst.fragment else ""
        return Verdict(
            kind="failed",
            text=f"Speculation corrupts code at {what}: {corrupt} of {len(compared)} probes "
            f"part from the engine's own greedy output ({worst.probe}{shown}).",
        )
    if stopped:
        return Verdict(
            kind="none", text=f"It was stopped ({stopped}): no probe was corrupt so far."
        )
    drafts = number(summed(bench.arm_ends(WITH), "drafts"))
    if drafts == 0:
        return Verdict(kind="none", text="Nothing was drafted, so nothing was tested.")
    if drafts is None:
        text = "Drafts are not counted: whether anything was tested is unknown."
        return Verdict(kind="none", text=text)
    if told := _undecided(compared):
        return Verdict(kind="none", text=told)
    return Verdict(kind="passed", text=f"At {what}: {_passed(compared, drafts)}")


def _undecided(compared: Sequence[Compared]) -> str:
    """Which probes prove nothing, and why; empty where there are none."""
    whys = Counter(each.why for each in compared if each.kind in {"unsteady", "unexplained"})
    if not whys:
        return ""
    told = "; ".join(f"{count} ({why})" for why, count in whys.most_common())
    return (
        f"{whys.total()} of {len(compared)} probes differ, and rounding cannot be told from "
        f"damage: {told}."
    )


def _passed(compared: Sequence[Compared], drafts: float) -> str:
    tested = f"{drafts:.0f} drafts"
    gaps = [gap for each in compared if (gap := number(each.gap_nats)) is not None]
    if not gaps:
        return f"all {len(compared)} probes come out exactly the same ({tested})."
    return (
        f"{len(compared) - len(gaps)} of {len(compared)} probes come out exactly the same; "
        f"{len(gaps)} part at a near-tie of {written(max(gaps), 3)} nats at the most, where "
        f"rounding decides (limit {NEAR_TIE_NATS:g}; {tested})."
    )


def _table(compared: Sequence[Compared]) -> Table:
    note = (
        "Greedy, one request at a time, each probe twice in each arm. The gap is how much likelier "
        "the other token was where the answers part, by the engine without speculation; ≈ is a "
        "least value."
    )
    return Table(title="Probes", columns=_COLUMNS, rows=tuple(map(_row, compared)), note=note)


def _row(one: Compared) -> tuple[Cell, ...]:
    return (one.probe, one.kind, one.same_characters, one.gap_nats, one.fragment or "–")
