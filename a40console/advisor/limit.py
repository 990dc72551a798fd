"""The ranked cause of the present speed, with its figures, and what was ruled out by figures.

Causes: `not-serving`, `idle`, `vcpu`, `queue`, `prefill`, `unknown`; what can be ruled out:
`vcpu`, `kv`, `queue`, `clocks`, `gate`, `prefill`. A figure that is missing rules nothing out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from a40console.advisor.readings import (
    KV_FULL_RATIO,
    THROTTLED_MS_PER_S,
    LimitEvidence,
    Readings,
)
from a40console.advisor.wording import brief, count, duration, percent, whole
from a40console.model.engine import EngineState
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Limit, Slot

PREFILL_TOKENS = 512
PREFILL_AGE_S = 1.0
"""A prompt is a limit when it has this many tokens to compute, or has taken this long."""

UNTHROTTLED_MS_PER_S = 10.0
SATURATED_RATIO = 0.95
"""Share of the vCPU from which on they are all in use."""

ROOM_RATIO = 0.90
"""Below this share of its capacity a resource is no limit."""


@dataclass(frozen=True, slots=True)
class _Cause:
    name: str
    text: str
    evidence: tuple[str, ...]


_Rule = Callable[[Readings], _Cause | None]


def limit(evidence: LimitEvidence) -> Limit:
    """The first cause, in order of rank, whose figures hold; else unknown, and it says so."""
    readings = Readings(evidence)
    causes = (rule(readings) for rule in _RANKED)
    cause = next((found for found in causes if found), None) or _unknown(readings)
    ruled_out = () if cause.name == "not-serving" else _ruled_out(readings)
    return Limit(
        cause=cause.name,
        text=cause.text,
        evidence=cause.evidence,
        ruled_out=tuple(name for name in ruled_out if name != cause.name),
    )


def _not_serving(readings: Readings) -> _Cause | None:
    if readings.serving:
        return None
    engine = readings.evidence.engine
    if engine.paused is True:
        return _Cause("not-serving", "the engine is paused", ("engine reports: paused",))
    if engine.state is EngineState.ABSENT:
        return _Cause("not-serving", "no engine runs", ("state absent",))
    text = engine.state.sentence
    if engine.state is EngineState.FAILED and not isinstance(engine.exit, Missing):
        return _Cause("not-serving", f"{text}: {engine.exit.cause}", (f"ended {engine.exit.at}",))
    if not isinstance(engine.phase, Missing) and engine.phase != "ready":
        text += f": {engine.phase}"
    evidence = [f"state {engine.state.value}"]
    if (phase_s := number(engine.phase_s)) is not None:
        evidence.append(f"for {duration(phase_s)}")
    if (eta_s := number(engine.eta_s)) is not None:
        evidence.append(f"≈ {duration(eta_s)} left")
    return _Cause("not-serving", text, tuple(evidence))


def _idle(readings: Readings) -> _Cause | None:
    if readings.running != 0 or readings.waiting != 0 or readings.held or readings.working_slots:
        return None
    evidence = ["0 running", "0 waiting", "0 held"]
    if rate := readings.generation_tokens_per_s:
        window_s = readings.evidence.throughput.window_s
        evidence.append(f"{brief(rate)} tok/s over the last {duration(window_s)}")
    return _Cause("idle", "no request: the engine waits for its clients", tuple(evidence))


def _vcpu(readings: Readings) -> _Cause | None:
    throttled, used, quota = (
        readings.throttled_ms_per_s,
        readings.vcpu_used,
        readings.vcpu_quota,
    )
    if not _works(readings):
        return None
    evidence = _vcpu_evidence(readings)
    if throttled is not None and throttled >= THROTTLED_MS_PER_S:
        return _Cause("vcpu", f"throttled vCPU: {brief(throttled)} ms/s", evidence)
    # Without a quota there is nothing that could count throttling: only use tells.
    unlimited = readings.evidence.host.quota_origin in ("affinity", "host")
    if unlimited and used is not None and quota and used >= SATURATED_RATIO * quota:
        return _Cause("vcpu", f"all {brief(quota)} vCPU are in use", evidence)
    return None


def _full(readings: Readings) -> _Cause | None:
    """A queue whose reason is known: our gate, max_running, no free KV."""
    if readings.held and not readings.waiting:
        text = f"{count(readings.held, 'request')} held at the gate"
        return _Cause("queue", text, (text, *_queue_evidence(readings)))
    if not readings.waiting:
        return None
    waiting = count(readings.waiting, "request")
    evidence = _queue_evidence(readings)
    if readings.kv_held_ratio is not None and readings.kv_held_ratio >= KV_FULL_RATIO:
        return _Cause("queue", f"{waiting} waiting: the KV cache is full", evidence)
    running, most = readings.running, readings.max_running
    if running is not None and most is not None and running >= most:
        text = f"{waiting} waiting: max_running {whole(most)} is reached"
        return _Cause("queue", text, evidence)
    return None


def _prefill(readings: Readings) -> _Cause | None:
    slots = readings.working_slots
    if slots is None:
        return _prefill_by_rate(readings)
    long = [slot for slot in slots if _is_long_prefill(slot)]
    if not long:
        return None
    largest = max(long, key=lambda slot: _tokens_left(slot) or 0)
    return _prefill_cause(readings, largest, len(long))


def _prefill_cause(readings: Readings, slot: Slot, prompts: int) -> _Cause:
    who = next((name for name in (slot.agent, slot.session) if not isinstance(name, Missing)), "")
    left, rate = _tokens_left(slot), readings.prefill_tokens_per_s
    size = f" of {whole(left)} tokens" if left is not None else ""
    text = f"prefill{size}" + (f" ({who})" if who else "")
    evidence = [f"{count(prompts, 'prompt')} in prefill"]
    if rate is not None:
        evidence.append(f"{brief(rate)} prompt tok/s computed")
    if left is not None and rate and isfinite(left / rate):
        text += f", ≈ {duration(left / rate)} left"
    if (age_s := number(slot.age_s)) is not None:
        evidence.append(f"for {duration(age_s)}")
    return _Cause("prefill", text, tuple(evidence))


def _prefill_by_rate(readings: Readings) -> _Cause | None:
    """Without slots only the counters tell: prompts are computed and nothing is generated."""
    rate = readings.prefill_tokens_per_s
    if not rate or readings.generation_tokens_per_s != 0:
        return None
    evidence = (f"{brief(rate)} prompt tok/s computed", "0 tok/s generated")
    return _Cause("prefill", "prefill: prompts are computed, nothing is generated yet", evidence)


def _queue(readings: Readings) -> _Cause | None:
    if not readings.waiting:
        return None
    text = f"{count(readings.waiting, 'request')} waiting in the engine"
    return _Cause("queue", text, _queue_evidence(readings))


_RANKED: tuple[_Rule, ...] = (_not_serving, _idle, _vcpu, _full, _prefill, _queue)
"""A throttled CPU slows whatever else is seen, so it comes before queue and prefill."""


def _unknown(readings: Readings) -> _Cause:
    running = readings.running
    if running is None:
        requests = readings.evidence.requests
        why = next(
            (
                figure.reason
                for figure in (requests.running, requests.age_s)
                if isinstance(figure, Missing)
            ),
            "the engine's figures are old",
        )
        return _Cause("unknown", f"unknown: {why}", ())
    evidence = [f"{whole(running)} running"]
    if (rate := readings.generation_tokens_per_s) is not None:
        evidence.append(f"{brief(rate)} tok/s")
    if (passes := readings.passes_per_s) is not None:
        evidence.append(f"{brief(passes)} passes/s")
    evidence += readings.throttle_words or ()
    thread = readings.evidence.host.busiest_engine_thread
    if not isinstance(thread, Missing) and thread.ratio >= SATURATED_RATIO:
        evidence.append(
            f"thread {thread.name} at {percent(thread.ratio)} of a core: a candidate, no proof"
        )
    return _Cause("unknown", "unknown: no figure here explains the speed", tuple(evidence))


def _ruled_out(readings: Readings) -> tuple[str, ...]:
    return tuple(
        name
        for name, excluded in (
            ("vcpu", _vcpu_is_free(readings)),
            ("kv", readings.kv_held_ratio is not None and readings.kv_held_ratio < ROOM_RATIO),
            ("queue", readings.waiting == 0),
            ("clocks", readings.throttle_words == ()),
            ("gate", readings.held == 0),
            ("prefill", _no_prefill(readings)),
        )
        if excluded
    )


def _vcpu_is_free(readings: Readings) -> bool:
    throttled, used, quota = (
        readings.throttled_ms_per_s,
        readings.vcpu_used,
        readings.vcpu_quota,
    )
    if used is None or not quota or used >= ROOM_RATIO * quota:
        return False
    if throttled is None:
        return readings.evidence.host.quota_origin in ("affinity", "host")
    return throttled < UNTHROTTLED_MS_PER_S


def _no_prefill(readings: Readings) -> bool:
    slots = readings.working_slots
    if slots is None:
        return readings.prefill_tokens_per_s == 0
    return all(slot.phase != "prefill" for slot in slots)


def _works(readings: Readings) -> bool:
    signs = (readings.running, readings.waiting, readings.held, readings.generation_tokens_per_s)
    return any(signs) or bool(readings.working_slots)


def _tokens_left(slot: Slot) -> float | None:
    """Prompt tokens still to compute, at most: what is cached or done is taken off if known."""
    prompt = number(slot.prompt_tokens)
    if prompt is None:
        return None
    computed = prompt - (number(slot.cached_tokens) or 0)
    return max(0.0, computed * (1 - (number(slot.prefill_ratio) or 0)))


def _is_long_prefill(slot: Slot) -> bool:
    left, age_s = _tokens_left(slot), number(slot.age_s)
    long = left is not None and left >= PREFILL_TOKENS
    return slot.phase == "prefill" and (long or (age_s is not None and age_s >= PREFILL_AGE_S))


def _vcpu_evidence(readings: Readings) -> tuple[str, ...]:
    host, evidence = readings.evidence.host, list[str]()
    if readings.throttled_ms_per_s is not None:
        evidence.append(f"throttled {brief(readings.throttled_ms_per_s)} ms/s")
    if readings.vcpu_used is not None and readings.vcpu_quota is not None:
        evidence.append(
            f"{brief(readings.vcpu_used)} of {brief(readings.vcpu_quota)} vCPU used"
            f" ({host.quota_origin})"
        )
    if not isinstance(thread := host.busiest_engine_thread, Missing):
        evidence.append(f"busiest thread {thread.name} at {percent(thread.ratio)} of a core")
    return tuple(evidence)


def _queue_evidence(readings: Readings) -> tuple[str, ...]:
    evidence = []
    if readings.waiting is not None:
        evidence.append(f"{whole(readings.waiting)} waiting in the engine")
    if readings.running is not None:
        most = readings.max_running
        at_most = f" of at most {whole(most)}" if most is not None else ""
        evidence.append(f"{whole(readings.running)} running{at_most}")
    if readings.kv_held_ratio is not None:
        evidence.append(f"KV {percent(readings.kv_held_ratio)} held")
    for reason, figure in readings.evidence.requests.waiting_by_reason.items():
        if waiting := number(figure):
            evidence.append(f"{whole(waiting)} for {reason}")
    return tuple(evidence)
