"""Sums of what vLLM reports of speculation, step by step."""

from __future__ import annotations

from typing import Any


class SpeculationTotals:
    """Drafts, drafted and accepted tokens since the start, by position of the draft."""

    def __init__(self, draft_tokens: int) -> None:
        self.drafts = 0
        self.draft_tokens = 0
        self.accepted_tokens = 0
        self.accepted_per_position = [0] * draft_tokens
        self.drafted_per_position = [0] * draft_tokens

    def add(self, step: Any) -> None:
        """Adds one step's SpecDecodingStats."""
        self.drafts += step.num_drafts
        self.draft_tokens += step.num_draft_tokens
        self.accepted_tokens += step.num_accepted_tokens
        self.accepted_per_position = _summed(
            self.accepted_per_position, step.num_accepted_tokens_per_pos
        )
        self.drafted_per_position = _summed(
            self.drafted_per_position, step.num_draft_tokens_per_pos
        )

    @staticmethod
    def told(totals: SpeculationTotals | None) -> dict[str, Any]:
        """The sums as the answer names them, all None where the engine does not speculate."""
        names = (
            "drafts",
            "draft_tokens",
            "accepted_tokens",
            "accepted_per_position",
            "drafted_per_position",
        )
        return {name: getattr(totals, name, None) for name in names}


def _summed(sums: list[int], step: list[int]) -> list[int]:
    longer = max(len(sums), len(step))
    return [
        (sums[position] if position < len(sums) else 0)
        + (step[position] if position < len(step) else 0)
        for position in range(longer)
    ]
