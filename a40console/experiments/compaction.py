"""The compaction experiment: the same session under different ways of keeping its context small."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from a40console.experiments.asking import settle_asking
from a40console.experiments.bench import ArmFailedError, ArmRepeat, Bench, Known
from a40console.experiments.calibration import calibrate
from a40console.experiments.compaction_offer import (
    AS_IS,
    OFFER,
    Arm,
    Conditions,
    ImpossibleError,
    conditions,
)
from a40console.experiments.compaction_plan import plan
from a40console.experiments.compaction_score import ArmScore, no_recall, recall_is_judged
from a40console.experiments.compaction_session import Session, Stage
from a40console.experiments.compaction_tables import plots, tables
from a40console.experiments.compaction_verdict import verdict
from a40console.experiments.repeats import rotated
from a40console.experiments.result_words import percent
from a40console.experiments.saturation import leave_out
from a40console.experiments.session_log import SessionLog
from a40console.experiments.workload import transcript
from a40console.model.experiment import Experiment, Value
from a40console.model.figures import Missing, number
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import Doubt, RunResult, Verdict

UNEQUAL_SHARE = 0.02
"""Answers may be so far from the length that they had to have; beyond, work was not equal."""

NOT_ASKED = Missing("not asked yet")

_UNSURE: Mapping[str, str] = {
    "none": ", without a verdict",
    "no difference": ", no faster than the next beyond noise",
}


@dataclass(slots=True)
class _Progress:
    """What is known of the run so far."""

    fixed: Conditions | None = None
    window_tokens: int | Missing = NOT_ASKED
    logs: list[tuple[Arm, SessionLog]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    done_turns: int = 0


class Compaction:
    """Runs whole sessions, rotated over the arms; remembers the run it is in."""

    offer: Experiment = OFFER

    def __init__(self) -> None:
        self._progress = _Progress()

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """What it would take; `refusal` where it cannot be run so."""
        return plan(settled, known, target)

    async def run(self, bench: Bench) -> RunResult:
        """Measure and conclude.

        Raises:
            ArmFailedError: If the engine stops answering, tells no usage, or nothing fits.
            RunStoppedError: If the run is to end.
        """
        self._progress = progress = _Progress()
        progress.window_tokens = await bench.engine.window_tokens()
        try:
            depth = await bench.engine.speculation_depth()
            progress.fixed = conditions(bench.settled, progress.window_tokens, depth)
        except ImpossibleError as error:
            raise ArmFailedError(str(error)) from error
        progress.notes += progress.fixed.notes
        stage = await self._stage(bench, progress.fixed)
        fixed = progress.fixed
        for repeat in range(fixed.repeats):
            for setting in rotated(fixed.speculation, repeat):
                if not await self._speculates(bench, setting):
                    progress.done_turns += len(fixed.arms) * len(fixed.lengths.turns)
                    continue
                for arm in rotated(fixed.arms, repeat):
                    await self._session(stage, arm, setting, repeat)
        return self._result(bench, "")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The result of what was measured until it was stopped."""
        return self._result(bench, why)

    async def _stage(self, bench: Bench, fixed: Conditions) -> Stage:
        window_tokens = self._progress.window_tokens
        asking = await settle_asking(bench)
        rates = await calibrate(bench, asking, window_tokens)
        return Stage(
            bench=bench,
            asking=asking,
            conditions=fixed,
            transcript=transcript(fixed.lengths, rates, seed=bench.seed, facts=fixed.facts),
            rates=rates,
            window_tokens=window_tokens,
        )

    async def _speculates(self, bench: Bench, setting: str) -> bool:
        """Whether a setting is in force."""
        if setting == AS_IS:
            return True
        refused = await bench.engine.speculation(setting)
        if refused is None:
            return True
        self._note(f"speculation {setting} was not measured: {refused.reason}")
        return False

    async def _session(self, stage: Stage, arm: Arm, setting: str, repeat: int) -> None:
        bench, fixed, progress = stage.bench, stage.conditions, self._progress
        label = fixed.label(arm, setting)
        log = SessionLog(
            label=label, setting=setting, repeat=repeat, turns_asked=len(fixed.lengths.turns)
        )
        progress.logs.append((arm, log))
        if fixed.reset_cache and (kept := await bench.engine.reset_cache()) is not None:
            self._note(f"the cache was not emptied between sessions ({kept.reason}): a nonce alone")
        turns = len(fixed.lengths.turns)
        total = turns * fixed.repeats * len(fixed.speculation) * len(fixed.arms)
        began = progress.done_turns

        async def tick(turn: int) -> None:
            text = f"session {repeat + 1} of {fixed.repeats}, turn {turn} of {turns}"
            await bench.step(label, began + turn - 1, total, text)

        # Not seeded: a cache outlives a run, and the next run of this seed must not find it.
        session = Session(stage, arm, log, secrets.randbits(48))
        async with bench.arm(label, repeat):
            await session.go(tick)
        progress.done_turns = began + turns
        await bench.step(label, progress.done_turns, total, f"session {repeat + 1} ended")
        if fixed.facts and not log.overflow:
            await session.recall(recall_label(label))  # no arm: nothing of it is timed

    def _result(self, bench: Bench, why: str) -> RunResult:
        fixed = self._progress.fixed
        labels = dict.fromkeys(log.label for _, log in self._progress.logs)
        left_out, doubts = leave_out(bench, labels)
        scores = self._scores(left_out)
        if fixed is None or not scores:
            text = ". ".join(
                ["Nothing was measured", *self._progress.notes, *([why] if why else [])]
            )
            return RunResult(headline=text, verdict=Verdict(kind="none", text=text))
        turns = len(fixed.lengths.turns)
        found = verdict(
            scores,
            turns=turns,
            seed=bench.seed,
            window_tokens=self._progress.window_tokens,
            scaled=fixed.scaled,
        )
        doubts += _unequal(scores)
        notes = [*self._progress.notes, *([f"it ended early: {why}"] if why else [])]
        if not recall_is_judged(scores):
            kept = ", ".join(f"{score.label} {score.kept()}" for score in scores if score.recalls)
            notes.append(f"{no_recall(simulated=bench.simulated)}; in the context stood {kept}")
        return RunResult(
            headline=_headline(scores, found, turns),
            verdict=found,
            tables=tuple(tables(scores, turns=turns, usd_per_h=bench.usd_per_h, notes=notes)),
            plots=tuple(plots(scores)),
            doubts=tuple(doubts),
        )

    def _scores(self, left_out: Collection[ArmRepeat]) -> list[ArmScore]:
        grouped: dict[str, list[tuple[Arm, SessionLog]]] = {}
        for arm, log in sorted(self._progress.logs, key=lambda each: self._place(each[0])):
            grouped.setdefault(log.label, []).append((arm, log))
        return [
            ArmScore(
                label,
                listed[0][0],
                listed[0][1].setting,
                [log for _, log in listed if (label, log.repeat) not in left_out],
            )
            for label, listed in grouped.items()
        ]

    def _place(self, arm: Arm) -> int:
        return self._progress.fixed.arms.index(arm) if self._progress.fixed else 0

    def _note(self, text: str) -> None:
        if text not in self._progress.notes:
            self._progress.notes.append(text)


def recall_label(label: str) -> str:
    """The arm that the questions after an arm's end are recorded under."""
    return f"{label} recall"


def _unequal(scores: Sequence[ArmScore]) -> list[Doubt]:
    worst = max(
        ((log.unequal_share, log) for score in scores for log in score.complete),
        key=lambda each: each[0],
        default=None,
    )
    if worst is None or worst[0] <= UNEQUAL_SHARE:
        return []
    share, log = worst
    return [
        Doubt(
            code="unequal-output",
            text=f"answers of {log.label} are {percent(share)} off the length that they had to "
            "have: the server takes no order for it, and the arms did unequal work",
            invalidates=True,
            arm=log.label,
        )
    ]


def _headline(scores: Sequence[ArmScore], found: Verdict, turns: int) -> str:
    ways = [s for s in scores if s.arm.way != "none" and number(s.wall_s) is not None]
    if not ways:
        return f"no way did all {turns} turns"
    best = min(ways, key=lambda s: number(s.wall_s) or 0.0)
    name = found.winner or best.label
    wall = number(best.wall_s) or 0.0
    return f"{name}: {turns} turns in {wall:,.1f} s{_UNSURE.get(found.kind, '')}"
