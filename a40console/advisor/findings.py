"""What is wrong or worth knowing: one rule a code, each citing its figures.

`CODES` is the list that scripts and the README rely on; every rule's code stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from a40console.advisor import engine_findings as engine
from a40console.advisor import machine_findings as machine
from a40console.advisor import profile_findings as profile
from a40console.advisor import session_findings as session
from a40console.advisor import speed_findings as speed
from a40console.advisor.evidence import Evidence
from a40console.model.event import Finding, Severity
from a40console.model.snapshot import Snapshot

CODES: Mapping[str, str] = {
    "unkillable": "processes of an engine outlived KILL: the pod must be restarted",
    "engine-orphaned": "the engine is gone, processes of it live on",
    "engine-hung": "no token or no answer for 30 s while requests are open, whatever /health says",
    "engine-failed": "the engine ended by itself, or its start failed; with the cause",
    "start-stalled": "a start no longer gets on; with the last line it wrote",
    "state-not-written": "the service cannot write events, history or sessions: memory keeps them",
    "service-unsupervised": "the service's supervisor is gone: nothing brings the service back",
    "keeper-gone": "the engine's keeper is gone: its output is not capped, its end not recorded",
    "telemetry-broken": "a source of figures fails while the engine serves",
    "gpu-degraded": "the GPU cannot be read, or its machine slows it down (heat, power brake)",
    "gpu-memory-held": "GPU memory is in use though no engine of ours runs",
    "oom-killed": "the kernel ended a process of this pod for want of memory",
    "memory-short": "memory or shared memory of the pod is nearly full",
    "disk-short": "less than 2 GB of disk are free",
    "disk-slow": "processes wait for the disk",
    "vcpu-throttled": "the pod's CPU quota slows the engine down",
    "thread-pinned": "an engine thread fills its core, and passes and GPU power fell with it",
    "kv-full": "the KV cache is full",
    "kv-preempts": "requests lose their KV blocks to others and are computed again",
    "client-window-wrong": "a client takes its window for larger than it is, or went beyond it",
    "auto-mode-unclassified": "a client in auto mode waits for a classifier that is not here",
    "answers-doubled": "a client asked again, without a stream, for an answer that had begun",
    "prefix-changed": "a client changed the beginning of its prompt; with the turn and the block",
    "prefix-cache-lost": "prompts are computed again that the prefix cache held",
    "count-tokens-off": "count_tokens differs from what the engine reads, or cannot be answered",
    "spec-loses-at-load": "slower with speculation than measured without it at this load",
    "parser-unfit": "the engine's parsers do not read what the model's chat template writes",
    "setting-not-in-force": "the engine runs otherwise than the profile asks",
    "profile-edited": "the running profile's file says something else than what runs, or is broken",
    "log-disagrees": "the log's throughput differs from the counters: the counters are shown",
    "counters-reset": "the engine's counters began again within the last minute",
    "cache-busters-removed": "what would change every prompt is taken out at the gateway",
}
"""Every code with what it means."""

Rule = Callable[[Snapshot, Evidence], Finding | None]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as its rule made it."""

    finding: Finding
    steady: bool
    """Whether it judges what flickers, a level or a source: it comes and goes with delay."""


_AT_ONCE: tuple[Rule, ...] = (
    engine.unkillable,
    engine.engine_orphaned,
    engine.engine_hung,
    engine.engine_failed,
    engine.start_stalled,
    engine.state_not_written,
    engine.service_unsupervised,
    engine.keeper_gone,
    machine.gpu_unread,
    machine.oom_killed,
    session.window_wrong,
    session.no_classifier,
    session.doubled_answers,
    session.prefix_changed,
    session.count_tokens_off,
    engine.parser_unfit,
    engine.setting_not_in_force,
    profile.profile_edited,
    engine.log_disagrees,
    engine.counters_reset,
    session.cache_busters,
)

_STEADY: tuple[Rule, ...] = (
    engine.telemetry_broken,
    machine.gpu_slowed,
    machine.gpu_memory_held,
    machine.memory_short,
    machine.disk_short,
    machine.disk_slow,
    machine.vcpu_throttled,
    machine.thread_pinned,
    speed.kv_full,
    speed.kv_preempts,
    speed.prefix_cache_lost,
    speed.spec_loses_at_load,
)

_ORDER: dict[Severity, int] = {"error": 0, "warn": 1, "info": 2}
_RANK = {code: rank for rank, code in enumerate(CODES)}


def find(snapshot: Snapshot, extra: Evidence) -> tuple[Found, ...]:
    """Everything that the rules find, one finding a code; `since` is this snapshot's time."""
    found: dict[str, Found] = {}
    for steady, rules in ((False, _AT_ONCE), (True, _STEADY)):
        for rule in rules:
            if (finding := rule(snapshot, extra)) is not None:
                found.setdefault(finding.code, Found(finding, steady))
    return tuple(found.values())


def ordered(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The worst first; equals in the order of the codes, so that no two change places."""
    return tuple(sorted(found, key=lambda entry: (_ORDER[entry.severity], _RANK[entry.code])))


def findings(snapshot: Snapshot, extra: Evidence) -> tuple[Finding, ...]:
    """The findings of one snapshot without any memory, worst first."""
    return ordered(tuple(entry.finding for entry in find(snapshot, extra)))
