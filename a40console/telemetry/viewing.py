"""Puts an engine's view together from its evidence. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from a40console.model.engine import EngineKind
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Requests
from a40console.telemetry.blocks import (
    Load,
    Source,
    kv_cache,
    latest_throughput,
    prefix_cache,
    read_bytes_per_s,
    requests,
    steady_tokens_per_s,
    throughput,
)
from a40console.telemetry.evidence import Evidence
from a40console.telemetry.feeds import LlamaFeed, VllmFeed
from a40console.telemetry.joining import Joined
from a40console.telemetry.latency import FirstTokens, latency
from a40console.telemetry.progress import Progress
from a40console.telemetry.reading import CounterName
from a40console.telemetry.speculation import speculation
from a40console.telemetry.view import Charged, EngineView
from a40console.telemetry.vllm import Identity


def build_view(
    *,
    evidence: Evidence,
    joined: Joined,
    identity: Identity,
    feed: VllmFeed | LlamaFeed,
    first_tokens: FirstTokens,
    kind: EngineKind,
    now_s: float,
) -> EngineView:
    """The view of this instant."""
    metrics, latest = evidence.metrics, evidence.metrics.latest
    shown = replace(_requests(evidence), held=joined.held)
    return EngineView(
        kind=kind,
        slots=joined.slots,
        recent=joined.recent,
        throughput=throughput(evidence.counters),
        latest_throughput=latest_throughput(evidence.counters, feed.shown_s),
        steady_tokens_per_s=steady_tokens_per_s(evidence.counters),
        requests=shown,
        latency=latency(metrics, first_tokens, now_s),
        prefix_cache=prefix_cache(metrics),
        speculation=speculation(
            evidence.speculation,
            enabled=evidence.speculating,
            live=evidence.live_depth,
            speeds=evidence.speeds,
        ),
        kv_cache=kv_cache(metrics, usage=_usage(evidence), load=Load(contexts=joined.contexts)),
        sources=feed.statuses(),
        version=identity.version,
        served_names=identity.served_names,
        max_model_len=identity.max_model_len,
        paused=_or_missing(evidence.paused, "only our plugin tells whether vLLM is paused"),
        asleep=_asleep(metrics.gauge("awake")),
        controls=evidence.controls,
        settings=latest.settings if latest is not None else {},
        progress=_progress(feed),
        generated_tokens=evidence.counters.counter("generated_tokens"),
        charged=_charged(metrics.counter) if kind == "attached" else None,
        charged_lately=_charged(metrics.moved) if kind == "attached" else None,
        ended_tokens_per_s=joined.ended_tokens_per_s,
        read_bytes_per_s=read_bytes_per_s(metrics),
        counters_reset_s=Missing("never seen")
        if feed.restarted_at_s is None
        else now_s - feed.restarted_at_s,
        gpus=feed.gpus,
        plugin_counts=feed.plugin_counts,
        told=joined.told,
    )


def _charged(read: Callable[[CounterName], Figure]) -> Charged:
    return Charged(
        prompt_tokens=read("charged_prompt_tokens"),
        cached_tokens=read("charged_cached_tokens"),
        generated_tokens=read("charged_generated_tokens"),
        untold_requests=read("charged_untold_requests"),
    )


def _requests(evidence: Evidence) -> Requests:
    waiting = None
    if evidence.paused and evidence.rows is not None:
        waiting = sum(1 for row in evidence.rows if row.phase == "queued")
    shown = requests(evidence.counters, paused_waiting=waiting)
    if evidence.counters is evidence.metrics:
        return shown
    others = requests(evidence.metrics)  # the metrics tell what the plugin does not
    return replace(shown, waiting_by_reason=others.waiting_by_reason, failed=others.failed)


def _usage(evidence: Evidence) -> Source | None:
    latest = evidence.counters.latest
    fresher = latest is not None and "kv_usage_ratio" in latest.gauges
    return evidence.counters if fresher else None


def _or_missing(flag: bool | None, reason: str) -> bool | Missing:
    return Missing(reason) if flag is None else flag


def _asleep(awake: Figure) -> bool | Missing:
    if isinstance(awake, Missing):
        return awake
    return number(awake) == 0


def _progress(feed: VllmFeed | LlamaFeed) -> Progress:
    return Progress(
        generation_flat_s=feed.standstill.flat_s("generated_tokens"),
        steps_flat_s=feed.standstill.flat_s("passes"),
        health_status=feed.health.shown(),
    )
