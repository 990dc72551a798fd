"""The canary as a run of its own: what every start and switch must stand, kept in the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.experiments.bench import Bench, Known
from a40console.experiments.checks import Check, plan_of, result_of
from a40console.experiments.offers import CANARY
from a40console.model.experiment import Experiment, Value
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_result import RunResult

ARM = "canary"
TITLE = "Canary"
_REQUESTS = 3
_PROMPT_TOKENS, _OUTPUT_TOKENS = 1000, 80


class Canary:
    """The canary."""

    offer: Experiment = CANARY

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """Three short requests."""
        return plan_of(
            ARM,
            known,
            answers=_REQUESTS,
            prompt_tokens=_PROMPT_TOKENS,
            output_tokens=_OUTPUT_TOKENS,
        )

    async def run(self, bench: Bench) -> RunResult:
        """All checks.

        Raises:
            RunStoppedError: Where the run is to end.
        """
        await bench.step(ARM, 0, 1, "asking")
        checks = [Check(*check) for check in await bench.engine.canary()]
        return result_of(TITLE, checks, "")

    def partial(self, bench: Bench, why: str) -> RunResult:
        """Nothing is known before all checks are through."""
        return result_of(TITLE, [], why)
