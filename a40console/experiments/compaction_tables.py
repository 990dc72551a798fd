"""Tables and plots of a compaction run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from a40console.experiments.compaction_score import AGES, ArmScore, age_of, recall_is_judged
from a40console.experiments.costs import dollars
from a40console.experiments.planted import FACT_KINDS, Fact, FactKind
from a40console.experiments.session_log import SessionLog, TurnLog, middle, p95, pooled
from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.run_result import Cell, Column, Interval, Plot, Point, Series, Table
from a40console.model.statistics import median

_SCORE_NOTE = (
    "Seconds hold the summaries, tokens do not. Answers are written beforehand, so every turn "
    "reads the one before as new, in all arms alike."
)

Chosen = Callable[[Fact], bool]


def tables(
    scores: Sequence[ArmScore], *, turns: int, usd_per_h: Figure, notes: Sequence[str]
) -> list[Table]:
    """Score, turns, and recall where facts were asked for and the answers say something."""
    told = [_score(scores, turns, usd_per_h, notes), _turns(scores)]
    if any(score.recalls for score in scores) and recall_is_judged(scores):
        told += [_recall(scores, turns), _recall_by_kind(scores)]
    return told


def plots(scores: Sequence[ArmScore]) -> list[Plot]:
    """Seconds and context of each turn, the median of the repeats."""
    return [
        _by_turn(scores, "Seconds a turn", "s", lambda turn: turn.seconds),
        _by_turn(scores, "Context a turn", "tokens", lambda turn: turn.prompt_tokens),
        _by_turn(scores, "Read again a turn", "tokens", lambda turn: turn.reread_tokens),
    ]


def _score(
    scores: Sequence[ArmScore], turns: int, usd_per_h: Figure, notes: Sequence[str]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for score in scores:
        wall = score.wall_s
        bounds = score.wall_interval
        cost = dollars(wall, usd_per_h)
        tokens = middle([log.generated_tokens for log in score.complete])
        rows.append(
            (
                score.label,
                wall,
                bounds.low if isinstance(bounds, Interval) else bounds,
                bounds.high if isinstance(bounds, Interval) else bounds,
                middle([log.tokens_per_s for log in score.complete]),
                cost,
                combine(lambda usd, made: usd / made * 1e6 if made else None, cost, tokens),
                len(score.complete),
            )
        )
    return Table(
        title=f"The same {turns} turns, by arm",
        columns=(
            Column(title="arm"),
            Column(title="wall", unit="s"),
            Column(title="from", unit="s"),
            Column(title="to", unit="s"),
            Column(title="sustained", unit="tok/s"),
            Column(title="session", unit="$", digits=4),
            Column(title="1M tokens", unit="$", digits=3),
            Column(title="sessions", digits=0),
        ),
        rows=tuple(rows),
        note=" ".join(
            [
                _SCORE_NOTE,
                *(f"{note[0].upper()}{note[1:]}." for note in notes if note),
                *(f"{score.label}: {score.why_not}." for score in scores if score.why_not),
            ]
        ),
    )


def _turns(scores: Sequence[ArmScore]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for score in scores:
        seconds = pooled(score.logs, lambda turn: turn.seconds)
        rows.append(
            (
                score.label,
                median(seconds),
                p95(seconds),
                max(seconds) if seconds else Missing("no turn"),
                _of(score.logs, lambda log: log.shrinks),
                _of(score.logs, lambda log: log.turns_to_recover),
                _of(score.logs, lambda log: log.reread_tokens),
                _of(score.logs, lambda log: log.summary_s),
            )
        )
    return Table(
        title="Turns",
        columns=(
            Column(title="arm"),
            Column(title="median", unit="s", digits=2),
            Column(title="p95", unit="s", digits=2),
            Column(title="worst", unit="s", digits=2),
            Column(title="shrinks", digits=0),
            Column(title="recovers in", unit="turns"),
            Column(title="read again", unit="tokens", digits=0),
            Column(title="summaries", unit="s"),
        ),
        rows=tuple(rows),
        note="Recovers in: turns from a shrink until all but 5 % of the prompt is cached or "
        "the turn's own. Read again: what the session had sent before and the engine "
        "computed once more.",
    )


def _recall(scores: Sequence[ArmScore], turns: int) -> Table:
    rows = []
    for score in scores:
        cells = [_told(score, _aged(age, turns)) for age in AGES]
        rows.append((score.label, *cells, str(score.known()), str(score.kept())))
    return Table(
        title="Planted facts by age",
        columns=tuple(
            Column(title=title) for title in ("arm", *AGES, "answered", "in the context")
        ),
        rows=tuple(rows),
        note="Answered rightly of asked; in brackets those that stood in the context at all. Asked "
        "on a fork after the end, in no score.",
    )


def _recall_by_kind(scores: Sequence[ArmScore]) -> Table:
    rows = []
    for score in scores:
        cells = [_told(score, _of_kind(kind)) for kind in FACT_KINDS]
        rows.append((score.label, *cells))
    titles = ("arm", "path", "number", "decision", "failed attempt")
    return Table(
        title="Planted facts by kind",
        columns=tuple(Column(title=title) for title in titles),
        rows=tuple(rows),
    )


def _told(score: ArmScore, chosen: Chosen) -> str:
    return f"{score.known(chosen)} ({score.kept(chosen).yes})"


def _aged(age: str, turns: int) -> Chosen:
    return lambda fact: age_of(fact, turns) == age


def _of_kind(kind: FactKind) -> Chosen:
    return lambda fact: fact.kind == kind


def _by_turn(
    scores: Sequence[ArmScore], title: str, unit: str, of: Callable[[TurnLog], Figure]
) -> Plot:
    return Plot(
        title=title,
        x_label="turn",
        y_label=unit,
        series=tuple(
            Series(name=score.label, points=tuple(_points(score.logs, of))) for score in scores
        ),
    )


def _points(logs: Sequence[SessionLog], of: Callable[[TurnLog], Figure]) -> list[Point]:
    at: dict[int, list[float]] = {}
    for log in logs:
        for turn in log.turns:
            value = number(of(turn))
            if value is not None:
                at.setdefault(turn.turn, []).append(value)
    # No bounds: the least and the most of a few repeats would be taken for such.
    middles = ((turn, number(median(values))) for turn, values in sorted(at.items()))
    return [Point(x=turn, y=value) for turn, value in middles if value is not None]


def _of(logs: Sequence[SessionLog], figure: Callable[[SessionLog], Figure]) -> Figure:
    return middle([figure(log) for log in logs if log.turns])
