"""The status in the width of a status bar: what matters most comes first. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from a40console.commands.verdict import MARKS, MOVING, Mood, mood, phase_line, sign, state_word
from a40console.model.engine import EngineState
from a40console.model.figures import Missing, number
from a40console.model.freshness import present_speed, speed_unit
from a40console.model.snapshot import Snapshot
from a40console.tui.format import count, dollars, rate, shown

_GAP = "  "
_COLOURS: dict[Mood, str] = {
    "good": "green",
    "busy": "yellow",
    "bad": "red,bold",
    "quiet": "default",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the bar; it is shown whole or not at all, but for the first."""

    text: str
    mood: Mood = "quiet"


def bar(snapshot: Snapshot, width: int | None, *, markup: bool = False) -> str:
    """The bar, at most `width` cells; with tmux's colour markup (`#[fg=…]`) where asked."""
    return compose(_parts(snapshot), width, markup=markup)


def without_service(width: int | None, *, markup: bool = False) -> str:
    """The bar where no service answers."""
    return compose([Part(f"{MARKS['quiet']} no service")], width, markup=markup)


def compose(parts: list[Part], width: int | None, *, markup: bool) -> str:
    """The parts that fit, in their order; the first is cut where even it does not."""
    taken: list[Part] = []
    room = width
    for part in parts:
        size = cell_len(part.text) + (len(_GAP) if taken else 0)
        if room is not None and size > room:
            if not taken:
                taken.append(Part(_cut(part.text, room), part.mood))
            break
        taken.append(part)
        room = None if room is None else room - size
    return _GAP.join(_marked(part) if markup else part.text for part in taken)


def _cut(text: str, width: int) -> str:
    return f"{set_cell_size(text, width - 1).rstrip()}…" if width > 1 else text[:width]


def _marked(part: Part) -> str:
    # tmux reads `#` in the output of its jobs: as itself it is written twice.
    text = part.text.replace("#", "##")
    colour = _COLOURS[part.mood]
    return text if colour == "default" else f"#[fg={colour}]{text}#[default]"


def _parts(snapshot: Snapshot) -> list[Part]:
    engine = snapshot.engine
    now = mood(engine.state)
    simulated = "SIMULATED " if snapshot.simulated else ""
    parts = [Part(f"{sign(engine.state)} {simulated}{state_word(engine)}", now)]
    errors = sum(finding.severity == "error" for finding in snapshot.findings)
    if errors:
        parts.append(Part(f"{MARKS['bad']} {errors} error{'s' if errors > 1 else ''}", "bad"))
    if engine.state in MOVING:
        parts.append(Part(f"{shown(present_speed(snapshot), rate)} {speed_unit(snapshot)}"))
        parts.append(Part(_requests(snapshot)))
    elif told := phase_line(engine):
        parts.append(Part(told))
    if engine.state is EngineState.SERVING and snapshot.limit.cause:
        parts.append(Part(snapshot.limit.cause))
    price = snapshot.cost.usd_per_hour
    if snapshot.cost.kind == "hourly" and not isinstance(price, Missing):
        parts.append(Part(f"{shown(price, dollars)}/h"))
    if isinstance(engine.profile, str):
        parts.append(Part(engine.profile))
    return parts


def _requests(snapshot: Snapshot) -> str:
    requests = snapshot.requests
    told = f"{shown(requests.running, count)} running"
    queued = (number(requests.waiting) or 0) + requests.held
    return f"{told} +{count(queued)} waiting" if queued else told
