"""What the sessions together say of the prefix cache: the newest loss, what could hit. Pure."""

from __future__ import annotations

from a40console.gateway.session_records import Record
from a40console.model.figures import Figure, Missing, combine
from a40console.model.session import PrefixLoss
from a40console.model.snapshot import CacheLoss

NO_LOSS = Missing("no prefix was lost yet")
REUSABLE_OVER_S = 60.0


def last_loss(records: list[Record]) -> CacheLoss | Missing:
    """The newest prefix that a session lost, faults alone."""
    found: list[tuple[str, PrefixLoss]] = [
        (record.session, loss)
        for record in records
        for loss in record.losses
        if loss.kind in ("changed", "evicted")
    ]
    if not found:
        return NO_LOSS
    session, loss = max(found, key=lambda entry: entry[1].at)
    return CacheLoss(
        session=session, turn=loss.turn, tokens=loss.tokens, cause=loss.cause, at=loss.at
    )


def reusable_ratio(records: list[Record], now_s: float) -> Figure:
    """Share of the last minute's prompt tokens that were there: sent before, or found anyway."""
    shared: list[float] = []
    prompts: list[int] = []
    for record in records:
        for entry in reversed(record.entries):
            if entry.at_s < now_s - REUSABLE_OVER_S:
                break
            if entry.ended_s is None or not entry.worked:
                continue
            if entry.shared is None or entry.prompt_tokens is None:
                return Missing("not of every prompt in the window is known what it shares")
            sent = 0 if entry.restarted else entry.shared.tokens  # to an engine that is no more
            known = max(sent, entry.cached_tokens or 0)
            shared.append(min(known, entry.prompt_tokens))
            prompts.append(entry.prompt_tokens)
    if not prompts:
        return Missing("no prompt of a session in the window")
    return combine(lambda part, whole: part / whole if whole else None, sum(shared), sum(prompts))
