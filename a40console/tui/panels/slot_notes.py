"""What the status line says of the row under the cursor: who it is, and why a dash is a dash."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import RecentRequest, Session, Slot
from a40console.tui.format import clock, known
from a40console.tui.ink import clean

_METHODS = {
    "engine": "counted by the engine",
    "usage": "counted from usage",
    "apportioned": "apportioned by characters (≈)",
}


_PASSES = Missing("kept of live requests alone")


def reasons(figures: Iterable[tuple[str, object]]) -> str:
    """Why named figures are missing, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, figure in figures:
        if isinstance(figure, Missing):
            by_reason.setdefault(figure.reason, []).append(name)
    return " · ".join(f"{', '.join(names)} –: {reason}" for reason, names in by_reason.items())


def row_notes(row: Slot | Session | RecentRequest) -> str:
    """The row's identity, then the reasons of its dashes."""
    named: tuple[tuple[str, object], ...]
    match row:
        case Slot():
            return _slot_notes(row)
        case Session():
            who = f"session {row.session}, {row.turns} turns, {row.requests} requests"
            named = (("tool", row.tool), ("since", row.phase_s), ("reused", row.hit_ratio))
        case RecentRequest():
            who = f"request {row.request_id}, ended at {clock(row.ended_at)}"
            named = _of_ended(row)
    return _joined(who, reasons(named))


def _of_ended(row: RecentRequest) -> tuple[tuple[str, object], ...]:
    return (
        ("session", row.session),
        ("client", row.client),
        ("model", row.model),
        ("ended", row.finish_reason),
        ("queue", row.queue_s),
        ("context", row.prompt_tokens),
        ("reused", row.cached_tokens),
        ("re-read", row.reread_tokens),
        ("gen", row.generated_tokens),
        ("limit", row.max_tokens),
        ("tok/s", row.tokens_per_s),
        ("TTFT", ended_ttft(row)),
        ("age", row.age_s),
        ("method", row.method),
        ("pass/s, tok/pass", _PASSES),
    )


def ended_ttft(request: RecentRequest) -> Figure:
    """Time to first token of an ended request; none was seen of an answer that came as a whole."""
    ttft = request.ttft_s
    if isinstance(ttft, Missing) and ttft.reason.startswith("no token yet"):
        return Missing("not known: it was not streamed, or ended before its first token")
    return ttft


def _slot_notes(slot: Slot) -> str:
    named = (
        ("session", slot.session),
        ("client", slot.client),
        ("context", slot.prompt_tokens),
        ("reused", slot.cached_tokens),
        ("re-read", slot.reread_tokens),
        ("gen", slot.generated_tokens),
        ("progress", slot.prefill_ratio if slot.phase == "prefill" else 0),
        ("tok/s", slot.tokens_per_s),
        ("pass/s", slot.passes_per_s),
        ("tok/pass", slot.tokens_per_pass),
        ("TTFT", slot.ttft_s),
        ("age", slot.age_s),
    )
    model = known(slot.model, "")
    told = (f"slot {slot.slot}", slot.request_id, model, _METHODS[slot.method])
    return _joined(", ".join(filter(None, told)), reasons(named))


def _joined(who: str, why: str) -> str:
    return clean(f"{who} · {why}" if why else who)
