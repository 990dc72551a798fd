"""One point of the past for the charts, from a snapshot. Pure."""

from __future__ import annotations

from functools import partial

from a40console.model.control import HistoryPoint
from a40console.model.freshness import present
from a40console.model.snapshot import Snapshot


def history_point(snapshot: Snapshot, at_s: float) -> HistoryPoint:
    """What a chart keeps of a snapshot: a gap, not the last value, where its source was old.

    Args:
        snapshot: The snapshot.
        at_s: Unix time of it.
    """
    speed, requests = snapshot.throughput, snapshot.requests
    now = partial(present, interval_s=snapshot.interval_s)
    return HistoryPoint(
        at_s=at_s,
        generation_tokens_per_s=now(speed.generation_tokens_per_s, speed.age_s),
        prefill_tokens_per_s=now(speed.prefill_tokens_per_s, speed.age_s),
        running=now(requests.running, requests.age_s),
        waiting=now(requests.waiting, requests.age_s),
    )
