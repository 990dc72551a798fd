"""What the comparison of speculation settings found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.costs import dollars_per_million
from a40console.experiments.depth_scan import (
    DepthFigures,
    summed,
    tail_verdict,
    tokens_per_pass,
)
from a40console.experiments.loads import doubted_failures
from a40console.experiments.rates import failed
from a40console.experiments.regime_arms import Group, Setting, groups
from a40console.experiments.regime_verdict import (
    Arm,
    baseline,
    comparisons_in,
    outcome_of,
    verdict_of,
)
from a40console.experiments.repeats import Measured
from a40console.experiments.result_words import written
from a40console.experiments.saturation import LEFT_OUT, leave_out
from a40console.model.figures import Figure, Missing, combine, number, ratio
from a40console.model.run_result import (
    Cell,
    Column,
    Doubt,
    Plot,
    RunResult,
    Series,
    Table,
    Verdict,
)

_BASELINE = Missing("the baseline itself")
_OFF = Missing("speculation is off")
_NO_BASELINE = Missing("no arm without speculation")
_SEVERAL = Missing("counted for all streams together")
_COLUMNS = (
    Column(title="text"),
    Column(title="streams", digits=0),
    Column(title="setting"),
    Column(title="sustained", unit="tok/s"),
    Column(title="±", unit="%"),
    Column(title="of off", unit="×", digits=2),
    Column(title="tok/pass", digits=2),
    Column(title="accepted/draft", digits=2),
    Column(title="per 1M", unit="$", digits=3),
    Column(title="errors", digits=0),
)
_SCAN_COLUMNS = (
    Column(title="text"),
    Column(title="depth", digits=0),
    Column(title="sustained", unit="tok/s"),
    Column(title="tok/pass", digits=2),
    Column(title="pass", unit="ms"),
    Column(title="accepted", unit="%", digits=0),
    Column(title="drafts", digits=0),
    Column(title="tail"),
)


def conclude(
    bench: Bench,
    settings: Sequence[Setting],
    skipped: Mapping[str, str],
    stopped: str,
    cut: ArmRepeat | None = None,
) -> RunResult:
    """The result of the arms that there are.

    Args:
        bench: With what was recorded, and what an hour costs.
        settings: What was measured.
        skipped: What was not, with the reasons.
        stopped: Why the run ended before its time; empty where it did not.
        cut: Where the target went away, if it did.
    """
    listed = list(groups(bench.settled))
    names = [group.arm(setting) for group in listed for setting in settings]
    left_out, doubts = leave_out(bench, names)
    by_group = {
        group: [
            Arm(
                group=group,
                setting=setting,
                measured=Measured.of(bench, group.arm(setting), group.streams, left_out),
            )
            for setting in settings
        ]
        for group in listed
    }
    arms = [arm for each in by_group.values() for arm in each]
    every = (sample for name in names for sample in bench.samples(name))
    invalid, errors = doubted_failures(every, cut)
    doubts += errors
    if not invalid and (doubt := _not_in_force(arms)):
        invalid = doubt.text
        doubts.append(doubt)
    if invalid or not any(arm.known for arm in arms):
        untold = LEFT_OUT if left_out else next(map(_why, arms), "nothing was measured")
        why = invalid or stopped or untold
        verdict = Verdict(kind="none", text=f"No figure stands: {why}.")
        return RunResult(headline=f"No figure: {why}", verdict=verdict, doubts=tuple(doubts))
    comparisons = comparisons_in(by_group.values())
    outcomes = [
        outcome
        for listed in by_group.values()
        if (outcome := outcome_of(bench, listed, comparisons))
    ]
    verdict = verdict_of(outcomes, skipped, stopped)
    return RunResult(
        headline=_headline(arms, verdict),
        verdict=verdict,
        tables=(_table(bench, by_group, skipped, comparisons), *_scan(by_group)),
        plots=tuple(_plots(bench, by_group)),
        doubts=tuple(doubts),
    )


def _why(arm: Arm) -> str:
    return arm.rate.reason if isinstance(arm.rate, Missing) else ""


def _not_in_force(arms: Sequence[Arm]) -> Doubt | None:
    """A setting that was asked for and was not in force, by the engine's own counters.

    Prose may give nothing to draft from; an edit of its own prompt always does.
    """
    for setting in dict.fromkeys(arm.setting for arm in arms):
        its = [arm for arm in arms if arm.setting == setting]
        edits = [end for arm in its if arm.group.regime == "code-edit" for end in arm.measured.ends]
        drafts = number(summed([end for arm in its for end in arm.measured.ends], "drafts"))
        told = ""
        if drafts and setting.drafts_nothing:
            told = f"{setting.name} was asked for, and the engine drafted {drafts:.0f} times"
        elif setting.drafts and number(summed(edits, "drafts")) == 0:
            told = f"{setting.name} was asked for, and the engine drafted nothing at all"
        if told:
            return Doubt(code="not-in-force", text=told, invalidates=True)
    return None


def _headline(arms: Sequence[Arm], verdict: Verdict) -> str:
    best = max((arm for arm in arms if arm.known), key=lambda arm: number(arm.rate) or 0.0)
    fastest = f"{written(best.rate)} tok/s at best: {best.group}, {best.setting.name}"
    return f"{verdict.winner} wins; {fastest}" if verdict.winner else fastest


def _table(
    bench: Bench,
    by_group: Mapping[Group, Sequence[Arm]],
    skipped: Mapping[str, str],
    comparisons: int,
) -> Table:
    rows = [_row(bench, arm, baseline(arms)) for arms in by_group.values() for arm in arms]
    for name, reason in skipped.items():
        rows.append(("all", "–", name, Missing(reason), *("–",) * (len(_COLUMNS) - 4)))
    note = (
        "Closed loop; the first request of each stream is left out. off: an engine started "
        "without speculation, all its repeats of one start; off-live: turned off as it runs, which "
        "is not the same. Sustained: while every stream was busy."
    )
    if comparisons > 1:
        note += (
            f" A setting wins only where its difference stands among the {comparisons} comparisons "
            "of this run; the bounds that are told are of one alone."
        )
    return Table(title="Speed by setting", columns=_COLUMNS, rows=tuple(rows), note=note)


def _row(bench: Bench, arm: Arm, base: Arm | None) -> tuple[Cell, ...]:
    against: Figure = _BASELINE
    if base is None:
        against = _NO_BASELINE
    elif base is not arm:
        against = ratio(arm.rate, base.rate)
    accepted, drafts = (
        summed(arm.measured.ends, "accepted_tokens"),
        summed(arm.measured.ends, "drafts"),
    )
    per_draft = ratio(accepted, drafts, reason="no drafts")
    return (
        arm.group.regime,
        arm.group.streams,
        arm.setting.name,
        arm.rate,
        arm.measured.sustained.plus_minus(bench.seed),
        against,
        tokens_per_pass(arm.measured.ends) if arm.group.streams == 1 else _SEVERAL,
        _OFF if arm.setting.drafts_nothing else per_draft,
        dollars_per_million(arm.rate, bench.usd_per_h),
        sum(map(failed, arm.measured.samples)),
    )


def _scan(by_group: Mapping[Group, Sequence[Arm]]) -> tuple[Table, ...]:
    """Depths beside each other, of one stream: with several a pass is shared."""
    rows: list[tuple[Cell, ...]] = []
    for group, arms in by_group.items():
        if group.streams != 1:
            continue
        depths = [
            DepthFigures.of(arm.setting.depth, arm.rate, arm.measured.ends)
            for arm in sorted(arms, key=lambda arm: arm.setting.depth)
            if arm.setting.drafts and arm.known
        ]
        rows += [_scan_row(group, depths, at) for at in range(len(depths))]
    if not rows:
        return ()
    note = "One stream. The tail is the share of drafts accepted to their last position."
    return (Table(title="Depth", columns=_SCAN_COLUMNS, rows=tuple(rows), note=note),)


def _scan_row(group: Group, depths: Sequence[DepthFigures], at: int) -> tuple[Cell, ...]:
    one = depths[at]
    return (
        group.regime,
        one.depth,
        one.tokens_per_s,
        one.tokens_per_pass,
        combine(lambda seconds: seconds * 1000, one.pass_s),
        combine(lambda share: share * 100, one.acceptance),
        one.drafts,
        tail_verdict(depths, at),
    )


def _plots(bench: Bench, by_group: Mapping[Group, Sequence[Arm]]) -> list[Plot]:
    """Speed over streams where there are several, else over depth."""
    plots: list[Plot] = []
    for regime in dict.fromkeys(group.regime for group in by_group):
        arms = [arm for group in by_group if group.regime == regime for arm in by_group[group]]
        names = dict.fromkeys(arm.setting.name for arm in arms)
        series = tuple(
            Series(
                name=name,
                points=tuple(
                    arm.measured.sustained.point(arm.group.streams, bench.seed)
                    for arm in arms
                    if arm.setting.name == name and arm.known
                ),
            )
            for name in names
        )
        title = f"Sustained speed, {regime}"
        plots.append(Plot(title=title, x_label="streams", y_label="tok/s", series=series))
    return plots
