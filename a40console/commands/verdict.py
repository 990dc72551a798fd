"""The verdict on a snapshot in lines of text: does it serve, what limits it, what does it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from a40console.model.captured import CAPTURE, captured
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.freshness import present_speed, speed_unit
from a40console.model.snapshot import EngineInfo, Snapshot
from a40console.tui.format import DASH, count, dollars, duration, rate, shown

Mood = Literal["good", "busy", "bad", "quiet"]

MARKS: Mapping[Mood, str] = {"good": "●", "busy": "◐", "bad": "✖", "quiet": "○"}
"""The sign before what is to be taken so, in colour or not."""

_MOODS: Mapping[EngineState, Mood] = {
    EngineState.ABSENT: "quiet",
    EngineState.FETCHING: "busy",
    EngineState.STARTING: "busy",
    EngineState.SERVING: "good",
    EngineState.DRAINING: "busy",
    EngineState.STOPPING: "busy",
    EngineState.STOPPED: "quiet",
    EngineState.FAILED: "bad",
    EngineState.ORPHANED: "bad",
    EngineState.HUNG: "bad",
    EngineState.ASLEEP: "quiet",
}
_SIGNS: Mapping[EngineState, str] = {EngineState.ORPHANED: "▲", EngineState.HUNG: "▲"}
"""States whose sign is another than their mood's: nothing has ended yet."""

MOVING = (EngineState.SERVING, EngineState.HUNG, EngineState.DRAINING)
"""States of an engine that may generate."""

GAP = "   "


def mood(state: EngineState) -> Mood:
    """How a state is to be taken; the word and the mark say the same."""
    return _MOODS[state]


def sign(state: EngineState) -> str:
    """The sign before a state, the same as on every screen."""
    return _SIGNS.get(state, MARKS[mood(state)])


def verdict_lines(snapshot: Snapshot) -> tuple[str, str, str]:
    """The three lines that stand on every screen."""
    return (
        f"{sign(snapshot.engine.state)} {_serving(snapshot)}",
        f"LIMIT  {limit_line(snapshot)}",
        f"COST   {cost_line(snapshot)}",
    )


def one_line(snapshot: Snapshot) -> str:
    """Everything that matters in one line, for a prompt or a status bar."""
    parts = [_serving(snapshot), f"limit: {snapshot.limit.cause}"]
    if snapshot.cost.kind == "hourly" and not isinstance(snapshot.cost.usd_per_hour, Missing):
        parts.append(f"{shown(snapshot.cost.usd_per_hour, dollars)}/h")
    return GAP.join(parts)


def _serving(snapshot: Snapshot) -> str:
    engine = snapshot.engine
    parts = [f"SIMULATED {state_word(engine)}" if snapshot.simulated else state_word(engine)]
    if names := captured(snapshot):
        parts.append(f"{CAPTURE} {names}")
    if engine.state in MOVING:
        parts.append(f"{shown(present_speed(snapshot), rate)} {speed_unit(snapshot)}")
        parts.append(_requests(snapshot))
        if snapshot.requests.gate:
            parts.append(snapshot.requests.gate)
    else:
        parts.append(phase_line(engine))
    parts.append(_identity(engine))
    return GAP.join(part for part in parts if part)


def state_word(engine: EngineInfo) -> str:
    """The state as it stands on every screen."""
    return "NO ENGINE" if engine.state is EngineState.ABSENT else engine.state.value.upper()


def phase_line(engine: EngineInfo) -> str:
    """Where a start is, or how the engine ended: `load 12 s, ≈ 30 s left`."""
    if engine.state in (EngineState.FAILED, EngineState.STOPPED, EngineState.ORPHANED):
        return "" if isinstance(engine.exit, Missing) else engine.exit.cause
    if isinstance(engine.phase, Missing):
        return ""
    spent = "" if isinstance(engine.phase_s, Missing) else f" {shown(engine.phase_s, duration)}"
    left = "" if isinstance(engine.eta_s, Missing) else f", {shown(engine.eta_s, duration)} left"
    return f"{engine.phase}{spent}{left}"


def _requests(snapshot: Snapshot) -> str:
    requests = snapshot.requests
    if isinstance(snapshot.slots, Missing):
        shares = [
            f"{shown(requests.running, count)} running",
            f"{shown(requests.waiting, count)} waiting",
        ]
    else:
        phases = [slot.phase for slot in snapshot.slots]
        shares = [f"{phases.count('decode')} decoding", f"{phases.count('prefill')} prefill"]
        if queued := phases.count("queued"):
            shares.append(f"{queued} queued")
    return " · ".join([*shares, f"{requests.held} held"])


def _identity(engine: EngineInfo) -> str:
    name = engine.served_name if isinstance(engine.profile, Missing) else engine.profile
    if isinstance(name, Missing):
        return ""
    known = [name]
    if not isinstance(engine.kind, Missing):
        version = "" if isinstance(engine.version, Missing) else f" {engine.version}"
        known.append(f"{engine.kind}{version}")
    if not isinstance(engine.uptime_s, Missing):
        known.append(f"up {shown(engine.uptime_s, duration)}")
    return "  ".join(known)


def limit_line(snapshot: Snapshot) -> str:
    """The cause of the present speed, and what it is not."""
    limit = snapshot.limit
    ruled_out = f"{GAP}ruled out: {' '.join(limit.ruled_out)}" if limit.ruled_out else ""
    return f"{limit.text or limit.cause}{ruled_out}"


def cost_line(snapshot: Snapshot) -> str:
    """Dollars a million tokens by span, and by the hour; the dash where no price is known."""
    cost = snapshot.cost
    spans = cost.usd_per_million
    prices = [
        f"{shown(value, dollars)}/1M {span}"
        for value, span in (
            (spans.now, "now"),
            (spans.session, "session"),
            (spans.since_rent, "since rent"),
        )
        if not isinstance(value, Missing)
    ]
    if cost.kind == "hourly" and not isinstance(cost.usd_per_hour, Missing):
        disk = " with disk" if cost.includes_disk else ""
        prices.append(f"{shown(cost.usd_per_hour, dollars)}/h{disk}")
    if not isinstance(cost.usd_so_far, Missing):
        prices.append(
            f"{shown(cost.usd_so_far, dollars)} since {cost.since.removeprefix('since ')}"
        )
    if not prices:
        return f"{DASH}  {_reason(snapshot)}"
    return GAP.join(prices)


def _reason(snapshot: Snapshot) -> str:
    price = snapshot.cost.usd_per_hour
    return price.reason if isinstance(price, Missing) else "no price is known"
