"""The ranked causes of the present speed, what figures rule out, and what cannot be judged.

A figure that is missing rules nothing out. The snapshot's `limit` is the first cause of the
ranking; where none explains the speed by itself it is `unknown`, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from a40console.advisor import drafting, hardware, life, load
from a40console.advisor.decoding import MUST_BE_CLEARED, bandwidth, decode
from a40console.advisor.evidence import Evidence
from a40console.advisor.judgement import Cleared, Judgement, Rule, Spoken, Unclear
from a40console.advisor.readings import Readings, shown
from a40console.advisor.wording import brief, whole
from a40console.model.explanation import Cause, Explanation, RuledOut, Strength, Unjudged
from a40console.model.figures import Missing
from a40console.model.snapshot import Limit, Snapshot

NOT_SERVING = "not-serving"
UNKNOWN = "unknown"
DECODE = "decode"
"""Judged last, by what became of all others."""

RANKED: tuple[tuple[str, Rule], ...] = (
    (NOT_SERVING, life.not_serving),
    ("download", life.download),
    ("client", life.client),
    ("idle", life.idle),
    ("memory", hardware.memory),
    ("vcpu", hardware.vcpu),
    ("clocks", hardware.clocks),
    ("disk", hardware.disk),
    ("thread", hardware.thread),
    ("gate", load.gate),
    ("kv", load.kv),
    ("queue", load.queue_at_limit),
    ("cache", load.cache),
    ("prefill", load.prefill),
    ("speculation", drafting.speculation),
    ("queue", load.queue),
)
"""A machine that is held up slows whatever else is seen, so it comes before queue and prefill; a
queue without a known reason explains less than the prefill or the speculation it waits behind."""

_OF_A_START = frozenset({NOT_SERVING, "download", "memory", "vcpu", "disk"})
"""What is judged of an engine on its way up; of one that is down only that it is."""

SHOWN_FIRST = (
    "vcpu",
    "kv",
    "queue",
    "clocks",
    "gate",
    "prefill",
    "cache",
    "speculation",
    "thread",
    "memory",
    "disk",
    "client",
)
"""Order of what is ruled out: a narrow screen shows the first ones only."""

_STRENGTHS: dict[Strength, int] = {"cause": 0, "candidate": 1, "weak": 2}


def explain(snapshot: Snapshot, extra: Evidence | None = None) -> Explanation:
    """Every cause that figures speak for, strongest first, and what became of the others."""
    readings = Readings(snapshot, extra or Evidence())
    judged = _judge(readings)
    spoken = {name: verdict for name, verdict in judged.items() if isinstance(verdict, Spoken)}
    causes = sorted(
        (_cause(name, verdict) for name, verdict in spoken.items()),
        key=lambda cause: _STRENGTHS[cause.strength],
    )
    if not causes or causes[0].strength != "cause":
        causes.insert(0, _unknown(readings, causes, judged))
    return Explanation(
        seq=snapshot.seq,
        at=snapshot.at,
        simulated=snapshot.simulated,
        causes=tuple(causes),
        ruled_out=tuple(
            RuledOut(cause=name, how=verdict.how)
            for name in SHOWN_FIRST
            if isinstance(verdict := judged.get(name), Cleared)
        ),
        unjudged=tuple(
            Unjudged(cause=name, reason=verdict.reason)
            for name in SHOWN_FIRST
            if isinstance(verdict := judged.get(name), Unclear)
        ),
    )


def limit(explanation: Explanation) -> Limit:
    """The snapshot's block: the first cause, and the names of what is ruled out."""
    first = explanation.causes[0]
    names = () if first.cause == NOT_SERVING else explanation.ruled_out
    return Limit(
        cause=first.cause,
        text=first.text,
        evidence=first.evidence,
        ruled_out=tuple(entry.cause for entry in names),
    )


def _judge(readings: Readings) -> dict[str, Judgement]:
    """Each cause's verdict, in order of rank; the first rule of a name that answers decides."""
    judged: dict[str, Judgement] = {}
    asked = _OF_A_START if hardware.starts(readings) else frozenset({NOT_SERVING})
    for name, rule in RANKED:
        if name in judged or not (readings.serving or name in asked):
            continue
        if (verdict := rule(readings)) is not None:
            judged[name] = verdict
    if isinstance(judged.get("client"), Spoken) and readings.is_idle:
        judged.pop("idle", None)  # the same silence, explained
    if (verdict := decode(readings, judged)) is not None:
        judged[DECODE] = verdict
    return judged


def _cause(name: str, verdict: Spoken) -> Cause:
    return Cause(
        cause=name,
        strength=verdict.strength,
        text=verdict.text,
        evidence=verdict.evidence,
        remedy=verdict.remedy,
        command=verdict.command,
    )


def _unknown(readings: Readings, candidates: list[Cause], judged: Mapping[str, Judgement]) -> Cause:
    requests, speed = readings.snapshot.requests, readings.snapshot.throughput
    if readings.running is None:
        figures = (requests.running, requests.age_s)
        reasons = (figure.reason for figure in figures if isinstance(figure, Missing))
        why = next(reasons, "the engine's figures are old")
        return Cause(cause=UNKNOWN, strength="cause", text=f"unknown: {why}")
    evidence = [f"{shown(requests.running, whole)} running"]
    window = readings.speed_window
    if readings.generation_tokens_per_s is not None:
        evidence.append(f"{shown(speed.generation_tokens_per_s, brief)} tok/s {window}")
    if readings.passes_per_s is not None:
        evidence.append(f"{shown(speed.passes_per_s, brief)} passes/s {window}")
    evidence += bandwidth(readings)
    evidence += [candidate.text for candidate in candidates if candidate.strength == "candidate"]
    evidence += [
        f"{name} not judged: {verdict.reason}"
        for name in ("vcpu", *MUST_BE_CLEARED, "prefill")
        if isinstance(verdict := judged.get(name), Unclear)
    ]
    text = "unknown: no figure here explains the speed"
    return Cause(cause=UNKNOWN, strength="cause", text=text, evidence=tuple(evidence))
