"""What asking with and without speculation found. Pure but for doubts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from a40console.experiments.answers_compared import NEAR_TIE_NATS, Compared, Kind
from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.depth_scan import summed
from a40console.experiments.loads import doubt_failures
from a40console.experiments.showing import written
from a40console.model.figures import number
from a40console.model.run_result import Cell, Column, RunResult, Table, Verdict

WITHOUT, WITH = "without", "with"
EXCERPTS = 6

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
    what: str,
    stopped: str,
    cut: ArmRepeat | None = None,
) -> RunResult:
    """The result of the probes that both arms answered.

    Args:
        bench: Where doubts go.
        compared: One for each probe.
        what: What was compared with what: `depth 5 against an engine started without`.
        stopped: Why the run ended before its time; empty where it did not.
        cut: Where the engine went away, if it did.
    """
    samples = [sample for arm in (WITHOUT, WITH) for sample in bench.samples(arm)]
    invalid = doubt_failures(bench, samples, cut)
    if invalid or not compared:
        why = invalid or stopped or "no probe was answered in both arms"
        verdict = Verdict(kind="none", text=f"Nothing stands: {why}.")
        return RunResult(headline=f"Nothing was compared: {why}", verdict=verdict)
    verdict = _verdict(bench, compared, what, stopped)
    return RunResult(
        headline=_headline(compared, what),
        verdict=verdict,
        tables=(_table(compared),),
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
            paste="a40console engine speculation off",
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
    if told := _undecided(kinds, len(compared)):
        return Verdict(kind="none", text=told)
    return Verdict(kind="passed", text=f"At {what}: {_passed(compared, drafts)}")


def _undecided(kinds: Mapping[Kind, int], probes: int) -> str:
    """Which probes prove nothing, and why; empty where there are none."""
    told: list[str] = []
    if unsteady := kinds["unsteady"]:
        told.append(
            f"{unsteady} of {probes} probes differ, and the engine differs from itself there "
            "without speculation too."
        )
    if unexplained := kinds["unexplained"]:
        told.append(
            f"{unexplained} of {probes} probes differ, and the engine tells no logprobs of the "
            "place, or answered only once without speculation: rounding cannot be told from damage."
        )
    return " ".join(told)


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
