"""Findings about what requests lose: cache, prefixes, and what speculation costs."""

from __future__ import annotations

from a40console.advisor import drafting, load
from a40console.advisor.evidence import Evidence
from a40console.advisor.judgement import Spoken, as_finding
from a40console.advisor.readings import KV_FULL_RATIO, Readings, shown
from a40console.advisor.wording import count, duration, percent, sentence, whole
from a40console.model.event import Finding
from a40console.model.figures import number
from a40console.model.snapshot import Snapshot


def kv_full(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Running requests hold nearly all of the KV cache."""
    readings = Readings(snapshot, extra)
    held = readings.kv_held_ratio
    if not readings.serving or held is None or held < KV_FULL_RATIO:
        return None
    waiting = "" if readings.waiting is None else shown(snapshot.requests.waiting, whole)
    return Finding(
        code="kv-full",
        severity="warn",
        title="The KV cache is full",
        evidence=sentence(
            [
                f"{shown(snapshot.kv_cache.held_ratio, percent)} held",
                f"{waiting} waiting" if waiting else "",
                shown(snapshot.requests.preemptions, _preemptions),
            ]
        ),
        since=snapshot.at,
        remedy=load.FEWER,
    )


def kv_preempts(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Requests were put back and are computed again."""
    readings = Readings(snapshot, extra)
    if not readings.serving or not number(extra.trends.preemptions):
        return None
    held = readings.kv_held_ratio
    lost = shown(extra.trends.preemptions, _preemptions)
    return Finding(
        code="kv-preempts",
        severity="warn",
        title="Requests lose their KV blocks to others and are computed again",
        evidence=sentence(
            [
                f"{lost} in the last {duration(extra.trends.long_s)}",
                f"{shown(snapshot.kv_cache.held_ratio, percent)} held" if held is not None else "",
            ]
        ),
        since=snapshot.at,
        remedy=load.FEWER,
    )


def prefix_cache_lost(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Prompts are computed again that the cache held."""
    readings = Readings(snapshot, extra)
    verdict = load.cache(readings) if readings.serving else None
    if not isinstance(verdict, Spoken) or verdict.strength == "weak":
        return None
    return as_finding("prefix-cache-lost", verdict, snapshot)


def spec_loses_at_load(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Slower than was measured without speculation: never by acceptance alone."""
    readings = Readings(snapshot, extra)
    verdict = drafting.speculation(readings) if readings.serving else None
    if not isinstance(verdict, Spoken) or verdict.strength != "cause":
        return None
    return as_finding("spec-loses-at-load", verdict, snapshot)


def _preemptions(number_of: float) -> str:
    return count(number_of, "preemption")
