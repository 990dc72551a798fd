"""Decoding itself as the limit: nothing waits, and the time goes into the passes.

It is judged last, by what became of the other causes. It claims that the passes are the time, never
why one of them takes as long as it does: what may make them slow stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub

from a40console.advisor.hardware import UNTHROTTLED_MS_PER_S
from a40console.advisor.judgement import Cleared, Judgement, Spoken
from a40console.advisor.readings import Readings, shown
from a40console.advisor.wording import brief, count, duration, whole
from a40console.model.figures import combine, number

MUST_BE_CLEARED = ("kv", "queue", "gate")
"""Each of them could keep requests from the passes."""

MUST_NOT_SPEAK = ("memory", "disk", "cache", "prefill")
"""Time that goes elsewhere than into passes that decode; a weak sign of it proves nothing."""

WITHIN_A_PASS = ("vcpu", "clocks", "thread", "speculation")
"""What makes the passes themselves slow: as a candidate it is told, as a cause it is the limit."""

YOUNG_S = 2.0
"""So long after its first token a request's passes need not be in the counters yet."""

_SHARE = "Nothing is wrong: more requests at once share each pass; for one of them alone,"
_LIGHTER = "a smaller or a quantised model."


def decode(readings: Readings, judged: Mapping[str, Judgement]) -> Judgement:
    """Requests decode, and nothing but their passes takes time.

    Args:
        readings: The figures.
        judged: What became of all other causes.
    """
    decoding = _decoding(readings, judged)
    if not decoding or not _alone(judged) or not _runs_free(readings, judged):
        return None
    throughput, window = readings.snapshot.throughput, readings.speed_window
    if not readings.generation_tokens_per_s or not readings.passes_per_s:
        return _begun(readings, decoding)
    rate = shown(throughput.passes_per_s, brief)
    return Spoken(
        text=f"decode: {decoding}, {rate} passes/s, nothing waits",
        evidence=(
            f"{shown(throughput.generation_tokens_per_s, brief)} tok/s {window}",
            f"{rate} passes/s {window}",
            "0 waiting, 0 held, no long prompt in prefill",
            *bandwidth(readings),
            *_slowing(judged),
            *_cores(readings, judged),
        ),
        remedy=_remedy(readings),
    )


def _remedy(readings: Readings) -> str:
    """What one request alone would gain by; never what is on already, or is refused."""
    block = readings.snapshot.speculation
    offered = block.mode == "off" and block.locked_reason is None
    return f"{_SHARE} {f'speculation, {_LIGHTER}' if offered else _LIGHTER}"


def _begun(readings: Readings, decoding: str) -> Judgement:
    """Before the counters have moved only the slots tell, of requests that have just begun."""
    ages = [
        number(combine(sub, slot.age_s, slot.ttft_s))
        for slot in readings.slots or ()
        if slot.phase == "decode" and number(slot.generated_tokens)
    ]
    if not ages or not all(age_s is not None and age_s <= YOUNG_S for age_s in ages):
        return None
    text = f"decode: {decoding}, just begun, nothing waits"
    evidence = (f"{decoding} in decode for at most {duration(YOUNG_S)}", "0 waiting, 0 held")
    return Spoken(text=text, evidence=evidence, remedy=_remedy(readings))


def bandwidth(readings: Readings) -> list[str]:
    """The engine's own estimate of what its GPUs read, which is no proof of anything."""
    told = []
    for gpu in readings.fresh_gpus:
        read, peak = shown(gpu.read_bytes_per_s, _giga), shown(gpu.peak_bytes_per_s, _giga)
        if read and peak not in ("", "0"):
            share = f"{read} of {peak} GB/s"
            told.append(f"GPU {gpu.index} reads {share} by the engine's estimate")
    return told


def _decoding(readings: Readings, judged: Mapping[str, Judgement]) -> str:
    """How many requests decode; without slots those that run while no prompt is computed."""
    slots = readings.slots
    if slots is not None:
        decoding = sum(slot.phase == "decode" for slot in slots)
        return count(decoding, "request") if decoding else ""
    if not readings.running or not isinstance(judged.get("prefill"), Cleared):
        return ""
    return shown(readings.snapshot.requests.running, lambda running: count(running, "request"))


def _alone(judged: Mapping[str, Judgement]) -> bool:
    """Whether what else could take the time is excluded, or there is nothing of its kind."""
    if not all(isinstance(judged.get(name), Cleared) for name in MUST_BE_CLEARED):
        return False
    told = {name: each for name, each in judged.items() if isinstance(each, Spoken)}
    return not any(
        name in told and told[name].strength != "weak" for name in MUST_NOT_SPEAK
    ) and not any(name in told and told[name].strength == "cause" for name in WITHIN_A_PASS)


def _runs_free(readings: Readings, judged: Mapping[str, Judgement]) -> bool:
    """Whether no quota stops the engine within its passes; cores in use are no stop."""
    if isinstance(judged.get("vcpu"), Cleared):
        return True
    used, throttled = readings.vcpu_used, readings.throttled_ms_per_s
    if used is None or not readings.vcpu_quota:
        return False
    return readings.unlimited if throttled is None else throttled < UNTHROTTLED_MS_PER_S


def _cores(readings: Readings, judged: Mapping[str, Judgement]) -> list[str]:
    """How much of the vCPU is in use, where that leaves little room."""
    return [] if isinstance(judged.get("vcpu"), Cleared) else [readings.vcpu_use]


def _slowing(judged: Mapping[str, Judgement]) -> list[str]:
    spoken = [judged.get(name) for name in WITHIN_A_PASS]
    return [
        verdict.text
        for verdict in spoken
        if isinstance(verdict, Spoken) and verdict.strength == "candidate"
    ]


def _giga(value: float) -> str:
    return whole(value / 1e9)
