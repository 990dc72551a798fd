"""Hypotheses, and two runs side by side."""

from __future__ import annotations

from typing import Any

from a40console.model.figures import Missing
from a40console.model.run import ArmRatio, Comparison, Difference, Hypothesis
from a40console.model.run_result import Interval


def hypotheses() -> tuple[Hypothesis, ...]:
    """One in each state."""
    at = "2026-11-30T12:00:00Z"
    return (
        Hypothesis(
            id=1,
            text="block compaction beats per-turn pruning",
            state="confirmed",
            at=at,
            runs=("20261130-094501-compaction-1f3a",),
            why="1.47 × [1.41, 1.52]",
        ),
        Hypothesis(id=2, text="n=12 is better than n=5 for code", state="open", at=at),
        Hypothesis(
            id=3,
            text="speculation is lossless here",
            state="refuted",
            at=at,
            runs=("20261129-190000-lossless-d1e2",),
            why="2 of 24 probes are corrupt",
        ),
        Hypothesis(
            id=4, text="DSpark gives 1.2 ×", state="retracted", at=at, why="it never loaded"
        ),
    )


def comparison(**changes: Any) -> Comparison:
    """Two compactions that differ in one variable."""
    values: dict[str, Any] = {
        "left": "20261130-094501-compaction-1f3a",
        "right": "20261130-160000-compaction-beef",
        "differences": (
            Difference(name="effective.speculation", left="ngram, 5 tokens", right="off"),
            Difference(name="environment.host", left="a91f03", right="77c2d1", weight="note"),
        ),
        "ratios": (
            ArmRatio(
                arm="block",
                figure="wall_s",
                left=360.0,
                right=488.2,
                ratio=Interval(value=1.356, low=1.31, high=1.40, confidence=0.95, repeats=3),
            ),
            ArmRatio(
                arm="per-turn",
                figure="wall_s",
                left=528.0,
                right=Missing("not measured"),
                ratio=Missing("not measured"),
            ),
        ),
        "verdict": "effective.speculation is the one variable that differs: off, block takes"
        " 1.36 × as long.",
        "attributable": True,
    }
    return Comparison(**(values | changes))
