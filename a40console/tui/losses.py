"""What is lost, and what clients feel, by a command that steers the engine. Pure."""

from __future__ import annotations

from a40console.model.figures import Missing, number
from a40console.model.snapshot import Slot, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import clean

_HELD = (
    "New requests wait at the gateway, so many and so long as [gateway] hold_requests and hold_s "
    "say; the others are told to come back."
)


def losses(command_id: str, snapshot: Snapshot) -> list[str]:
    """In sentences, for the question that comes before."""
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
        case _:
            return []


def _cache(snapshot: Snapshot) -> list[str]:
    cache, sessions = snapshot.kv_cache.reusable_tokens, snapshot.sessions
    lines = (
        [f"How many tokens are lost is not known: {cache.reason}."]
        if isinstance(cache, Missing)
        else [f"{shown(cache, fmt.count)} tokens that could be used again are lost."]
    )
    if isinstance(sessions, Missing):
        return lines
    contexts = [number(session.context_tokens) for session in sessions]
    known = [tokens for tokens in contexts if tokens]
    if known:
        whose = fmt.plural(len(known), "session")
        lines.append(f"{whose} will have {fmt.count(sum(known))} tokens read again.")
    return lines


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
