"""What a run wrote into its own file."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from a40console.model.figures import Figure, Missing
from a40console.model.run import Run, RunEnvironment, RunPlan, RunProgress
from a40console.model.run_record import (
    ArmEnd,
    Doubted,
    Ended,
    Found,
    Progressed,
    Record,
    Sample,
    Started,
)
from a40console.model.run_result import RunResult
from tests.make_runs.results import NO_SPECULATION, REPEATS, TURN_S
from tests.make_runs.settings import ARMS

TURNS = 12


def samples(of: Run, *, repeats: int = REPEATS, turns: int = TURNS) -> tuple[Sample, ...]:
    """What its requests measured: a warm-up each arm, one error, one answer without usage."""
    made: list[Sample] = []
    clock_s = 0.0
    for arm in arms(of):
        random = Random(f"{of.spec.seed} {arm}")
        for repeat in range(repeats):
            for turn in range(turns):
                total_s = TURN_S.get(arm, 2.0) * (0.7 + 0.6 * random.random())
                made.append(_sample(arm, repeat, turn, clock_s, total_s))
                clock_s += total_s + 0.05
    if len(made) > 2 * turns:
        made[turns + 1] = replace(
            made[turns + 1],
            error="HTTP 500: the engine died",
            ttft_s=Missing("it failed"),
            total_s=Missing("it failed"),
            gaps_s=(),
        )
        untold = Missing("no usage")
        made[turns + 2] = replace(made[turns + 2], generated_tokens=untold, cached_tokens=untold)
    return tuple(made)


def _sample(arm: str, repeat: int, turn: int, at_s: float, total_s: float) -> Sample:
    return Sample(
        arm=arm,
        repeat=repeat,
        index=turn,
        warm_up=turn == 0,
        due_s=round(at_s, 4),
        sent_s=round(at_s + 0.0004, 4),
        ttft_s=round(total_s * 0.2, 4),
        total_s=round(total_s, 4),
        gaps_s=(0.013, 0.012, 0.014),
        prompt_tokens=8000 + 400 * turn,
        cached_tokens=7600 + 400 * turn,
        generated_tokens=256,
        role="turn" if turn else "probe",
    )


def arms(of: Run) -> tuple[str, ...]:
    """The arms of a run's samples."""
    if of.spec.experiment == "compaction":
        return ARMS
    return ("1", "2", "4") if of.spec.experiment == "sweep" else ("prose", "code edit")


def arm_ends(of: Run, *, repeats: int = REPEATS) -> tuple[ArmEnd, ...]:
    """What the counters did around each arm."""
    made = []
    for arm in arms(of):
        for repeat in range(repeats):
            wall_s = TURN_S.get(arm, 2.0) * TURNS * (1 + 0.01 * repeat)
            counted: dict[str, Figure] = {
                "requests": TURNS,
                "prompt_tokens": 122_400,
                "cached_tokens": 117_600,
                "generated_tokens": 256 * TURNS,
            }
            made.append(
                ArmEnd(
                    arm=arm,
                    repeat=repeat,
                    wall_s=wall_s,
                    usd=wall_s * 0.44 / 3600,
                    server=counted | {"drafted_tokens": NO_SPECULATION},
                    client=counted | {"loop_lag_p99_s": 0.0008, "cpu_cores": 0.06},
                    machine={"vcpu_throttled_s": 0.0, "gpu_throttled_s": Missing("no GPU")},
                )
            )
    return tuple(made)


def records(of: Run) -> tuple[Record, ...]:
    """The lines of its own file."""
    made: list[Record] = []
    if isinstance(of.environment, RunEnvironment) and isinstance(of.plan, RunPlan):
        started = of.started_at if isinstance(of.started_at, str) else of.asked_at
        made.append(
            Started(at=started, environment=of.environment, plan=of.plan, settled=of.settled)
        )
    ends = {(end.arm, end.repeat): end for end in arm_ends(of)}
    last: tuple[str, int] | None = None
    for sample in samples(of):
        key = (sample.arm, sample.repeat)
        if last is not None and key != last:
            made.append(ends[last])
        last = key
        made.append(sample)
    if last is not None:
        made.append(ends[last])
    if isinstance(of.progress, RunProgress):
        made.append(Progressed(progress=of.progress))
    if isinstance(of.result, RunResult):
        made += [Doubted(doubt=doubt) for doubt in of.result.doubts]
        made.append(Found(result=of.result))
    if isinstance(of.ended_at, str):
        made.append(Ended(at=of.ended_at, state=of.state, reason=of.reason))
    return tuple(made)
