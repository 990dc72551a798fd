"""Runs as the ledger and the service tell them, for screens, reports and tests.

Figures are invented; those of the reference row stand in the seeds.
"""

from tests.make_runs.ledger import comparison, hypotheses
from tests.make_runs.lines import TURNS, arm_ends, arms, records, samples
from tests.make_runs.results import (
    REPEATS,
    compaction_result,
    regimes_result,
    sweep_result,
)
from tests.make_runs.settings import ARMS, environment, plan
from tests.make_runs.whole import (
    compaction,
    failed,
    invalid,
    lossless,
    partial,
    queued,
    reference,
    regimes,
    run,
    running,
    several,
    simulated,
    sweep,
)

__all__ = [
    "ARMS",
    "REPEATS",
    "TURNS",
    "arm_ends",
    "arms",
    "compaction",
    "compaction_result",
    "comparison",
    "environment",
    "failed",
    "hypotheses",
    "invalid",
    "lossless",
    "partial",
    "plan",
    "queued",
    "records",
    "reference",
    "regimes",
    "regimes_result",
    "run",
    "running",
    "samples",
    "several",
    "simulated",
    "sweep",
    "sweep_result",
]
