"""When an engine counts as hung: its work stands still, whatever its health route says."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.advisor.evidence import Evidence
from a40console.advisor.readings import fresh, shown
from a40console.advisor.wording import duration, whole
from a40console.model.engine import MESSAGES_SOURCE, EngineState
from a40console.model.figures import Missing, number
from a40console.model.snapshot import EngineInfo, Requests, Slot, SourceStatus

HUNG_AFTER_S = 30.0
HUNG_IN_PREFILL_AFTER_S = 300.0
"""Where nothing counts the progress of a prefill, a long prompt looks like a hang for longer."""

MACHINE_SOURCES = frozenset({"host", "nvml", MESSAGES_SOURCE})
"""Sources that the engine does not answer for, or does not go on answering for."""


def is_hung(
    engine: EngineInfo,
    requests: Requests,
    slots: tuple[Slot, ...] | Missing,
    extra: Evidence,
) -> bool:
    """Whether requests are open and nothing has moved for longer than work explains."""
    if engine.state not in (EngineState.SERVING, EngineState.HUNG) or engine.paused is True:
        return False
    open_requests = (
        fresh(requests.age_s, requests.running),
        fresh(requests.age_s, requests.waiting),
    )
    generation_s, steps_s = number(extra.generation_flat_s), number(extra.steps_flat_s)
    if generation_s is None or not any(open_requests):
        return False
    if steps_s is not None:
        return min(generation_s, steps_s) >= HUNG_AFTER_S
    in_prefill = isinstance(slots, Missing) or any(slot.phase == "prefill" for slot in slots)
    return generation_s >= (HUNG_IN_PREFILL_AFTER_S if in_prefill else HUNG_AFTER_S)


def silent_s(engine: EngineInfo, sources: Sequence[SourceStatus]) -> float | None:
    """Seconds since a serving engine last answered anything; None while it answers.

    A process that stands still answers no route, so its counters cannot tell that they do.
    """
    if engine.state not in (EngineState.SERVING, EngineState.HUNG):
        return None
    own = [source for source in sources if source.name not in MACHINE_SOURCES]
    ages = [number(source.age_s) for source in own if source.state != "absent"]
    known = [age for age in ages if age is not None]
    answers = any(source.state == "ok" for source in own)
    return None if answers or not known or min(known) < HUNG_AFTER_S else min(known)


def hang_evidence(requests: Requests, extra: Evidence) -> list[str]:
    """Progress and health, each on its own: one is known to lie about the other."""
    signs = []
    for name, figure in (("token", extra.generation_flat_s), ("step", extra.steps_flat_s)):
        if flat := shown(figure, duration):
            signs.append(f"no {name} for {flat}")
    for name, figure in (("running", requests.running), ("waiting", requests.waiting)):
        if value := shown(figure, whole):
            signs.append(f"{value} {name}")
    health = extra.health_status
    answer = f"is not known: {health.reason}" if isinstance(health, Missing) else f"says {health}"
    return [*signs, f"/health {answer}"]
