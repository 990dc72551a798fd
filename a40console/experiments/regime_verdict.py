"""Which speculation setting wins, in each group and altogether. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from a40console.experiments.bench import Bench
from a40console.experiments.regime_arms import OFF, OFF_LIVE, Group, Setting, line_for
from a40console.experiments.repeats import Measured
from a40console.model import statistics
from a40console.model.figures import Figure, Missing, number
from a40console.model.run_result import Verdict
from a40console.model.run_words import ratio_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One setting in one group, over all repeats."""

    group: Group
    setting: Setting
    measured: Measured

    @property
    def known(self) -> dict[int, float]:
        """Sustained speed of the repeats that have one."""
        return self.measured.sustained.known

    @property
    def rate(self) -> Figure:
        """The mean over the repeats."""
        return self.measured.sustained.mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Who wins in a group."""

    group: Group
    text: str
    winner: str = ""
    contrast: statistics.Contrast


def baseline(arms: Sequence[Arm]) -> Arm | None:
    """The arm without speculation: of an engine started without, else turned off live."""
    for name in (OFF, OFF_LIVE):
        found = next((arm for arm in arms if arm.setting.name == name and arm.known), None)
        if found is not None:
            return found
    return None


def comparisons_in(groups: Iterable[Sequence[Arm]]) -> int:
    """How many arms are held against the one without speculation: chances for luck to win."""
    return sum(
        sum(bool(arm.known) and arm is not base for arm in arms)
        for arms in groups
        if (base := baseline(arms)) is not None
    )


def outcome_of(bench: Bench, arms: Sequence[Arm], comparisons: int) -> Outcome | None:
    """The best setting with speculation against the one without; None where one is lacking.

    Args:
        bench: Whose seed the resampling has.
        arms: Of one group.
        comparisons: How many the whole run makes, as `comparisons_in` counts them.
    """
    base = baseline(arms)
    others = [arm for arm in arms if arm.known and arm.setting.name not in {OFF, OFF_LIVE}]
    if base is None or not others:
        return None
    best = max(others, key=lambda arm: number(arm.rate) or 0.0)
    contrast = _contrast(bench, base, best, comparisons)
    if isinstance(contrast.ratio, Missing):
        text = f"{base.group}: {contrast.ratio.reason}"
        return Outcome(group=base.group, text=text, contrast=contrast)
    told = f"{best.setting.name} is {ratio_text(contrast.ratio)} {base.setting.name}"
    rest = [arm for arm in arms if arm not in (base, best)]
    told += _asides(bench, base, rest, comparisons)
    if not contrast.differs:
        among = f" among {comparisons} comparisons" if comparisons > 1 else ""
        text = f"{base.group}: no difference beyond noise{among}, {told}"
        return Outcome(group=base.group, text=text, contrast=contrast)
    winner = best if contrast.ratio.low > 1 else base
    text = f"{base.group}: {winner.setting.name} wins, {told}"
    return Outcome(group=base.group, text=text, winner=winner.setting.name, contrast=contrast)


def _contrast(bench: Bench, base: Arm, arm: Arm, comparisons: int) -> statistics.Contrast:
    return statistics.difference(base.known, arm.known, seed=bench.seed, comparisons=comparisons)


def _asides(bench: Bench, base: Arm, rest: Sequence[Arm], comparisons: int) -> str:
    """Which of the others lose against the baseline, or do not equal it where they should."""
    told: list[str] = []
    for arm in rest:
        contrast = _contrast(bench, base, arm, comparisons)
        if isinstance(contrast.ratio, Missing) or not contrast.differs:
            continue
        if contrast.ratio.high < 1 or arm.setting.drafts_nothing:
            told.append(f"{arm.setting.name} {contrast.ratio.value:.2f} ×")
    return f" ({', '.join(told)})" if told else ""


def verdict_of(outcomes: Sequence[Outcome], skipped: Mapping[str, str], stopped: str) -> Verdict:
    """What the groups say together; a winner only where all are judged and no other wins."""
    if stopped:
        return Verdict(kind="none", text=f"It was stopped ({stopped}): the arms above stand.")
    if not outcomes:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        return Verdict(
            kind="none", text=f"Nothing to compare: {reasons or 'one arm has a figure'}."
        )
    judged = [outcome for outcome in outcomes if outcome.contrast.kind != "none"]
    text = "; ".join(outcome.text for outcome in outcomes) + "."
    if not judged:
        return Verdict(kind="none", text=f"No verdict. {text}")
    strongest = max(judged, key=_strength)
    winners = {outcome.winner for outcome in judged if outcome.winner}
    if not winners:
        return Verdict(kind="no difference", text=text, ratio=strongest.contrast.ratio)
    unjudged = len(judged) < len(outcomes)
    winner = winners.pop() if len(winners) == 1 and not unjudged else ""
    ending = "" if winner or unjudged else " No fixed setting wins everywhere."
    return Verdict(
        kind="difference",
        text=text + ending,
        winner=winner,
        ratio=strongest.contrast.ratio,
        paste=line_for(winner),
    )


def _strength(outcome: Outcome) -> float:
    found = outcome.contrast.ratio
    return 0.0 if isinstance(found, Missing) else abs(log(found.value))
