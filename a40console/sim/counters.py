"""What the simulated engine has counted since it began. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5)
FIRST_TOKEN_S = (*SECONDS, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
BETWEEN_TOKENS_S = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
REQUEST_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5)
PASS_TOKENS = (1.0, *(float(2**power) for power in range(3, 15)))


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound, cumulated only when they are read."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * len(self.bounds)

    def add(self, value: float) -> None:
        """Take in one sample."""
        self.total += value
        self.count += 1
        for index, bound in enumerate(self.bounds):
            if value <= bound:
                self.counts[index] += 1
                return

    def cumulated(self) -> list[tuple[float, int]]:
        """Samples up to each bound."""
        summed, below = [], 0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            below += count
            summed.append((bound, below))
        return summed


@dataclass(slots=True)
class Statistics:
    """The engine's counters; none ever falls."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_prompt_tokens: int = 0
    queried_tokens: int = 0
    hit_tokens: int = 0
    generated_tokens: int = 0
    preemptions: int = 0
    passes: int = 0
    prefill_only_passes: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_per_position: list[int] = field(default_factory=list)
    drafted_per_position: list[int] = field(default_factory=list)
    read_bytes: float = 0.0
    busy_s: float = 0.0
    started: int = 0
    finished: int = 0
    aborted: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    """Requests by the reason of their end."""

    first_token_s: Histogram = field(default_factory=lambda: Histogram(FIRST_TOKEN_S))
    between_tokens_s: Histogram = field(default_factory=lambda: Histogram(BETWEEN_TOKENS_S))
    per_token_s: Histogram = field(default_factory=lambda: Histogram(BETWEEN_TOKENS_S))
    queue_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_S))
    prefill_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_S))
    decode_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_S))
    whole_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_S))
    request_prompt_tokens: Histogram = field(default_factory=lambda: Histogram(TOKENS))
    request_generated_tokens: Histogram = field(default_factory=lambda: Histogram(TOKENS))
    pass_tokens: Histogram = field(default_factory=lambda: Histogram(PASS_TOKENS))

    def drafted(self, depth: int, accepted: int) -> None:
        """One draft of so many tokens, of which the first so many were right."""
        self.drafts += 1
        self.draft_tokens += depth
        self.accepted_tokens += accepted
        _grow(self.drafted_per_position, depth)
        _grow(self.accepted_per_position, depth)
        for position in range(depth):
            self.drafted_per_position[position] += 1
            self.accepted_per_position[position] += position < accepted


def _grow(counts: list[int], length: int) -> None:
    counts.extend([0] * (length - len(counts)))


def grown(counts: Sequence[int], length: int) -> list[int]:
    """The counts, with zeros up to a length."""
    return [*counts, *([0] * (length - len(counts)))]
