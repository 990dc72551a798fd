"""One request as the console is told of it, and the ring of those that ended."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from .phase import DECODE  # noqa: TID252 - the folder is installed under another name

FINISHED_KEPT = 1024


@dataclass(slots=True)
class Progress:
    """What is counted here of one request, since vLLM keeps no count of passes."""

    state: Any
    """vLLM's RequestState."""
    generated_tokens: int = 0
    passes: int = 0
    """Outputs with tokens: the engine steps that this sequence took part in."""
    preemptions: int = 0
    cached_tokens: int | None = None
    """Prompt tokens taken from the prefix cache; None until the prompt is through."""
    last_token_unix_s: float | None = None
    finish_reason: str | None = None
    """The engine's newest reason; a request that is fed piece by piece outlives several."""


def request_row(state: Any, progress: Progress | None, phase: str | None) -> dict[str, Any]:
    """One request's row.

    Args:
        state: vLLM's RequestState.
        progress: What was counted of it; None before its first output.
        phase: queued, prefill, decode, or None where it cannot be told.
    """
    counted = progress or Progress(state)
    stats = state.stats
    queued = scheduled = first = 0.0
    if stats is not None:
        queued, scheduled, first = stats.queued_ts, stats.scheduled_ts, stats.first_token_ts
    return {
        "id": state.request_id,
        "external_id": state.external_req_id,
        "prompt_tokens": state.prompt_len,
        "cached_tokens": counted.cached_tokens,
        "max_tokens": state.max_tokens_param,
        "generated_tokens": counted.generated_tokens,
        "passes": counted.passes,
        "phase": phase,
        "arrival_unix_s": stats.arrival_time if stats is not None else None,
        "queued_s": scheduled - queued if queued and scheduled else None,
        "prefill_s": first - scheduled if scheduled and first else None,
        "first_token_s": stats.first_token_latency if stats is not None and first else None,
        "last_token_unix_s": counted.last_token_unix_s,
        "preemptions": counted.preemptions,
    }


class FinishedRows:
    """The last requests that ended, each with a sequence number that never repeats."""

    def __init__(self, kept: int = FINISHED_KEPT) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=kept)
        self.sequence = 0
        """The number of the newest row, which is also how many ended so far."""

    def append(
        self, state: Any, progress: Progress | None, finish_reason: str, ended_unix_s: float
    ) -> None:
        """Keeps the row of a request that has just ended."""
        row = request_row(state, progress, DECODE if progress and progress.passes else None)
        self.sequence += 1
        row["sequence"] = self.sequence
        row["finish_reason"] = finish_reason
        row["ended_unix_s"] = ended_unix_s
        self._rows.append(row)

    def since(self, sequence: int) -> tuple[list[dict[str, Any]], int]:
        """The rows after a sequence number, and how many of those are no longer kept."""
        rows = [row for row in self._rows if row["sequence"] > sequence]
        lost = max(0, self.sequence - max(sequence, 0) - len(rows))
        return rows, lost
