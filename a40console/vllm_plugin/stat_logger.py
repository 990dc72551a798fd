"""vLLM's ``vllm.stat_logger_plugins`` entry point: one call at the end of each engine step."""

from __future__ import annotations

from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase

from .shared import WATCH  # noqa: TID252 - the folder is installed under another name


class ConsoleStatLogger(StatLoggerBase):  # type: ignore[misc]  # vLLM is not installed here
    """Passes vLLM's step reports on to the watch."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        scheduler = getattr(vllm_config, "scheduler_config", None)
        speculation = getattr(vllm_config, "speculative_config", None)
        engines = getattr(getattr(vllm_config, "parallel_config", None), "data_parallel_size", 1)
        WATCH.reports_come(
            # The queues of several engines are not one queue.
            in_order=getattr(scheduler, "policy", None) == "fcfs" and engines == 1,
            draft_tokens=getattr(speculation, "num_speculative_tokens", None) or 0,
        )

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Called by vLLM once a step; never raises."""
        WATCH.record(scheduler_stats, iteration_stats, engine_idx)

    def log_engine_initialized(self) -> None:
        """Nothing to say: the routes tell it."""
