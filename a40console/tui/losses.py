"""What is lost, and what clients feel, by a command that steers the engine. Pure."""

from __future__ import annotations

from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Slot, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import clean

_HELD = (
    "New requests wait at the gateway, so many and so long as [gateway] hold_requests and hold_s "
    "say; the others are told to come back."
)

APPLY_BY_RESTART = (
    "Restart the engine with it? Clients wait; what still runs after the drain is cut."
)

_ANSWERING = frozenset({EngineState.SERVING, EngineState.DRAINING, EngineState.HUNG})


def at_stake(snapshot: Snapshot) -> list[str]:
    """Whose requests are cut or kept waiting where the engine stops, a line each.

    Empty where nobody loses anything: nothing runs, and nobody is held at the gateway.
    """
    lines = []
    if snapshot.engine.state in _ANSWERING:
        running = _running(snapshot)
        if isinstance(running, Missing):
            lines.append(f"How many requests run is not known: {running.reason}.")
        elif count := number(running):
            lines.append(f"{fmt.plural(count, 'request')} running now.")
        if queued := number(snapshot.requests.waiting):
            lines.append(f"{fmt.plural(queued, 'request')} queued in the engine.")
    if snapshot.requests.held:
        lines.append(f"{fmt.plural(snapshot.requests.held, 'request')} held at the gateway.")
    return lines


def _running(snapshot: Snapshot) -> Figure:
    """What the engine tells, else what the gateway sees of it."""
    running, slots = snapshot.requests.running, snapshot.slots
    if not isinstance(running, Missing) or isinstance(slots, Missing):
        return running
    return sum(slot.phase != "held" for slot in slots)


def losses(command_id: str, snapshot: Snapshot) -> list[str]:
    """In sentences, for the question that comes before; of a command that stops the engine so."""
    match command_id:
        case "cache.reset":
            return _cache(snapshot)
        case "engine.sleep":
            return [
                *_cache(snapshot),
                "What still runs after the drain is cut; then every request is refused.",
            ]
        case "engine.drain" | "admission.pause":
            return [_HELD]
        case "engine.stop" | "engine.restart" | "engine.apply" | "engine.speculation":
            return _read_again(snapshot) if snapshot.engine.state in _ANSWERING else []
        case _:
            return []


def known_of_level(level: str) -> list[str]:
    """What is known against a sleep of that level."""
    deep = "The weights are dropped: it may wake to gibberish, and the canary then refuses it."
    return [deep] if level == "2" else []


def _cache(snapshot: Snapshot) -> list[str]:
    cache = snapshot.kv_cache.reusable_tokens
    lost = (
        f"How many tokens are lost is not known: {cache.reason}."
        if isinstance(cache, Missing)
        else f"{shown(cache, fmt.count)} tokens that could be used again are lost."
    )
    return [lost, *_read_again(snapshot)]


def _read_again(snapshot: Snapshot) -> list[str]:
    sessions = () if isinstance(snapshot.sessions, Missing) else snapshot.sessions
    contexts = [number(session.context_tokens) for session in sessions]
    known = [tokens for tokens in contexts if tokens]
    if not known:
        return []
    whose = fmt.plural(len(known), "session")
    return [f"{whose} will have {fmt.count(sum(known))} tokens read again."]


def lost_with(slot: Slot) -> list[str]:
    """What ends with one request."""
    whose = [fmt.known(slot.client, "a client that is not known")]
    if not isinstance(slot.session, Missing):
        whose.append(f"session {fmt.known(slot.session)}")
    generated = shown(slot.generated_tokens, fmt.count)
    prompt = shown(slot.prompt_tokens, fmt.count)
    return [
        f"Slot {slot.slot}: {clean(slot.request_id)}, of {clean(', '.join(whose))}.",
        f"It is in {slot.phase}: {prompt} prompt tokens, {generated} generated.",
        f"It runs for {shown(slot.age_s, fmt.duration)} in all.",
        "The client gets no more of this answer and may ask for it again.",
    ]
