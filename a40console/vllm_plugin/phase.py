"""What can be said of a request that has not given its first token yet."""

from __future__ import annotations

from collections.abc import Sequence
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
    the counts must do. Of the running sequences at most ``decoding`` were decoding, and
    ``removed`` may be gone here but not there yet: the remainder ran their prompts, and where
    requests are admitted in order they are the oldest. The others waited, if running and waiting
    account for every request and each decoding one took part in the step (a preempted one takes
    no part, and would make these counts ambiguous).

    Args:
        report: The scheduler's newest report.
        undecided: Requests without a token, oldest first.
        decoding: Live requests that have given tokens.
        took_part: Those of them that gave tokens in the reported step.
        removed: Requests ended here that the scheduler may still have counted.
        in_order: Whether the scheduler admits strictly by age.
    """
    least = report.running - decoding - removed
    if least >= len(undecided):
        return dict.fromkeys(undecided, PREFILL)
    if not in_order:
        return {}
    phases = dict.fromkeys(undecided[: max(least, 0)], PREFILL)
    exact = removed == 0 and least == report.running - took_part
    if exact and report.running + report.waiting == decoding + len(undecided):
        phases.update(dict.fromkeys(undecided[least:], QUEUED))
    return phases
