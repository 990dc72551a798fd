"""Where a session is: in the engine, at the client with its tool, or idle. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a40console.gateway.session_records import Entry, Record
from a40console.model.request import Phase
from a40console.model.session import SessionPhase

CLIENT_FOR_S = 900.0
"""A tool that has run for longer is believed to run no more: the client is gone or waits."""

_FORWARD: tuple[Phase, ...] = ("decode", "prefill", "queued", "held")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a session or an agent is, and since when."""

    phase: SessionPhase
    since_s: float
    """Unix time."""

    tool: str | None = None


def standing(
    record: Record, slots: Mapping[str, Phase], now_s: float, agent: str | None = None
) -> Standing:
    """Where a session is, or one agent of it; of several requests the one furthest on counts.

    Args:
        record: The session.
        slots: Phase by request id, as the engine's telemetry has it.
        now_s: Unix time.
        agent: Of this agent alone.
    """
    live = [entry for entry in record.live if agent in (None, entry.agent)]
    phases = [(_phase(entry, slots), entry) for entry in live]
    for phase in _FORWARD:
        for found, entry in phases:
            if found == phase:
                return Standing(phase, _since(entry, phase))
    waits_s = [at_s for of, at_s in record.held.values() if agent in (None, of)]
    if waits_s:
        return Standing("held", min(waits_s))
    calls = [tool for of, tool in record.open_tools.values() if agent in (None, of)]
    if calls:
        newest = max(calls, key=lambda tool: tool.called_s)
        began_s = min(tool.called_s for tool in calls if tool.name == newest.name)
        if now_s - began_s <= CLIENT_FOR_S:
            return Standing("client", began_s, _named(newest.name, len(calls)))
    return Standing("idle", _last_s(record, agent))


def _phase(entry: Entry, slots: Mapping[str, Phase]) -> Phase:
    told = slots.get(entry.request_id)
    if told is not None and told != "idle":
        return told
    passage = entry.passage
    if passage is None or passage.sent_at_s is None:
        return "held"
    return "prefill" if passage.first_token_at_s is None else "decode"


def _since(entry: Entry, phase: Phase) -> float:
    passage = entry.passage
    if passage is None:
        return entry.at_s
    began_s = {
        "decode": passage.first_token_at_s,
        "prefill": passage.sent_at_s,
        "queued": passage.sent_at_s,
        "held": passage.held_at_s,
    }.get(phase)
    return entry.at_s + max(0.0, (began_s or passage.received_at_s) - passage.received_at_s)


def _named(tool: str, running: int) -> str:
    return tool if running == 1 else f"{tool} +{running - 1}"


def _last_s(record: Record, agent: str | None) -> float:
    if agent is None:
        return record.last_s
    known = record.agents.get(agent)
    last = known.last if known else None
    return record.last_s if last is None or last.ended_s is None else last.ended_s
