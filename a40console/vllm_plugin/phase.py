"""What can be said of a request that has not given its first token yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

PREFILL = "prefill"
QUEUED = "queued"
DECODE = "decode"


class Report(NamedTuple):
    """What the scheduler said of itself at the end of its newest step."""

    running: int
    """Sequences in the batch."""
    waiting: int
    """Sequences outside it, deferred ones included, as vLLM's own gauge counts them."""
    deferred: int
    """The waiting ones that something else than room holds back."""
    kv_cache_usage_ratio: float
    """KV blocks held by running sequences, of all."""
    at_unix_s: float
    """When it arrived here."""

    @property
    def idle(self) -> bool:
        """Whether nothing ran and nothing waited."""
        return self.running == 0 and self.waiting == 0

    @classmethod
    def joined(cls, reports: Iterable[Report]) -> Report | None:
        """The reports of several engines as one: counts added, the fuller cache, the later time."""
        every = list(reports)
        if len(every) <= 1:
            return every[0] if every else None
        return cls(
            running=sum(report.running for report in every),
            waiting=sum(report.waiting for report in every),
            deferred=sum(report.deferred for report in every),
            kv_cache_usage_ratio=max(report.kv_cache_usage_ratio for report in every),
            at_unix_s=max(report.at_unix_s for report in every),
        )

    def told(self) -> dict[str, Any]:
        """The scheduler's part of the answer."""
        return {
            "running": self.running,
            "waiting": self.waiting,
            "kv_cache_usage_ratio": self.kv_cache_usage_ratio,
            "at_unix_s": self.at_unix_s,
        }


def told_phases(
    report: Report,
    undecided: Sequence[str],
    *,
    decoding: int,
    took_part: int,
    removed: int,
    in_order: bool,
) -> dict[str, str]:
    """Phases, as of a report, of the requests that have given no token; the rest stay unknown.

    vLLM tells when a request was queued and scheduled only with its first token, so until then
    the counts must do. Of the running sequences at most ``decoding`` were decoding and at least
    ``took_part`` were, and ``removed`` may be gone here but not there yet: that bounds how many
    ran their prompts, and where requests are admitted in order they were the oldest. The ones
    beyond waited, if running and waiting account for every request, so that none was still on
    its way. A preempted sequence gives no tokens, which only widens the bounds.

    Args:
        report: The scheduler's newest report.
        undecided: Requests without a token, oldest first.
        decoding: Live requests that have given tokens.
        took_part: Those of them that gave tokens in the reported step.
        removed: Requests ended here that the scheduler may still have counted.
        in_order: Whether the scheduler admits strictly by age.
    """
    least = report.running - decoding - removed
    most = report.running - took_part
    if least >= len(undecided):
        return dict.fromkeys(undecided, PREFILL)
    alive = decoding + len(undecided)
    accounted = removed == 0 and report.running + report.waiting == alive
    if not in_order:
        return dict.fromkeys(undecided, QUEUED) if accounted and most <= 0 else {}
    phases = dict.fromkeys(undecided[: max(least, 0)], PREFILL)
    if accounted:
        phases.update(dict.fromkeys(undecided[max(most, 0) :], QUEUED))
    return phases
