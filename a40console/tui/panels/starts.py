"""This start phase by phase beside the usual, and how the starts before it ended: pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.cells import cell_len

from a40console.model.control import EngineStart
from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import EngineInfo, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, wrap
from a40console.tui.panels.moments import WIDEST, day_of, when
from a40console.tui.panels.verdict import PHASES
from a40console.tui.reading import Reading

READY = "ready"
_STOPPED = "stopped by the operator"
_PHASE = 22
_SPENT = 9
_USUAL = 11
_TIME = 10
_PROFILE = 24
_NARROW_PROFILE = 17
_NARROW = 100
_INDENT = 2
_STALLED = "start-stalled"
STARTING = frozenset({EngineState.FETCHING, EngineState.STARTING})
_NOT_YET = Missing("not reached yet")
_NEVER = Missing("no earlier start is known")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """A phase of the present start."""

    name: str
    seconds: Figure
    usual_s: Figure
    """Median of the earlier starts of this profile."""

    here: bool = False
    """Whether the start is in it now."""


def present_start(reading: Reading, starts: Sequence[EngineStart]) -> list[Line]:
    """The phases of the present start with their usual length, what is left, and a verdict."""
    snapshot = reading.snapshot
    engine = snapshot.engine
    rows = phase_rows(reading, starts)
    if not rows:
        return [line(Span(f"{DASH} {_no_phases(engine)}", Role.MUTED))]
    earlier = len(earlier_starts(engine, starts))
    usual = f"usual ({earlier})" if earlier else ""
    head = f"  {'':<{_PHASE}}{'took':>{_SPENT}}{usual:>{_USUAL}}"
    return [
        line(Span(head, Role.LABEL)),
        *(_phase(row, engine) for row in rows),
        _served_after(engine, starts),
        *_stall(snapshot),
    ]


def _no_phases(engine: EngineInfo) -> str:
    if engine.state in STARTING:
        return "no phase has been seen yet"
    return "how this start went was not recorded"


def earlier_starts(engine: EngineInfo, starts: Iterable[EngineStart]) -> list[EngineStart]:
    """The starts of the same profile that came to serve, the present one apart."""
    return [
        start
        for start in starts
        if start.profile == known(engine.profile)
        and start.id != known(engine.id)
        and number(start.ready_after_s) is not None
    ]


def phase_rows(reading: Reading, starts: Sequence[EngineStart]) -> list[PhaseRow]:
    """The phases of the present start, and while it starts those that usually follow."""
    engine = reading.snapshot.engine
    usual = _usual(earlier_starts(engine, starts))
    took = _took(reading, starts)
    starting = engine.state in STARTING
    now = known(engine.phase, "") if starting else ""
    rows = [
        PhaseRow(name=name, seconds=spent, usual_s=usual.get(name, _NEVER), here=name == now)
        for name, spent in took.items()
    ]
    if starting and rows:
        to_come = [name for name in _after(now, usual) if name not in took]
        rows += [PhaseRow(name=name, seconds=_NOT_YET, usual_s=usual[name]) for name in to_come]
    return rows


def _took(reading: Reading, starts: Sequence[EngineStart]) -> dict[str, Figure]:
    """Seconds by phase: as recorded, else as watched from here; the present one as it runs."""
    engine = reading.snapshot.engine
    own = next((start for start in starts if start.id == known(engine.id)), None)
    recorded = () if own is None or isinstance(own.phases, Missing) else own.phases
    watched = reading.past.phases
    spent: dict[str, Figure] = {phase.name: phase.seconds for phase in watched}
    spent.update({phase.name: phase.seconds for phase in recorded})
    took = {
        name: spent[name]
        for name in _merged([[p.name for p in seen] for seen in (recorded, watched)])
    }
    if engine.state in STARTING and not isinstance(engine.phase, Missing):
        took.pop(engine.phase, None)
        took[engine.phase] = engine.phase_s
    return {name: spent for name, spent in took.items() if name != READY}


def _usual(earlier: Iterable[EngineStart]) -> dict[str, float]:
    """The median of each phase, in the order in which they follow each other."""
    lengths: dict[str, list[float]] = {}
    orders: list[list[str]] = []
    for start in earlier:
        if not isinstance(start.phases, Missing):
            orders.append([phase.name for phase in start.phases])
            for phase in start.phases:
                lengths.setdefault(phase.name, []).append(phase.seconds)
    return {name: median(lengths[name]) for name in _merged(orders)}


def _merged(orders: Iterable[Sequence[str]]) -> list[str]:
    """All names in one order: one that only a later order has stands before its next there."""
    merged: list[str] = []
    for names in orders:
        place = len(merged)
        for name in reversed(names):
            if name in merged:
                place = merged.index(name)
            else:
                merged.insert(place, name)
    return merged


def _after(now: str, usual: dict[str, float]) -> list[str]:
    names = [name for name in usual if name != READY]
    return names[names.index(now) + 1 :] if now in names else []


def _phase(row: PhaseRow, engine: EngineInfo) -> Line:
    glyph, role = ("◐", Role.WARN) if row.here else ("●", Role.GOOD)
    if row.seconds is _NOT_YET:
        glyph, role = "○", Role.MUTED
    name = clean(PHASES.get(row.name, row.name))
    return line(
        Span(f"{glyph} ", role),
        Span(f"{name:<{_PHASE}}", Role.MUTED if row.seconds is _NOT_YET else Role.TEXT),
        f"{shown(row.seconds, _length):>{_SPENT}}",
        Span(f"{_usual_length(row.usual_s):>{_USUAL}}", Role.MUTED),
        Span(_left(engine) if row.here else "", Role.STRONG),
    )


def _length(seconds: float) -> str:
    """`6.1 s`, `2 m 50 s`."""
    return f"{seconds:.1f} s" if seconds < 59.95 else fmt.duration(seconds)


def _left(engine: EngineInfo) -> str:
    if isinstance(engine.eta_s, Missing):
        return f"  ETA {DASH} {clean(engine.eta_s.reason)}"
    return f"  ≈ {shown(engine.eta_s, fmt.duration).lstrip('≈')} left"


def _served_after(engine: EngineInfo, starts: Sequence[EngineStart]) -> Line:
    """The start as a whole, beside the usual."""
    own = next((start for start in starts if start.id == known(engine.id)), None)
    whole = own.ready_after_s if own else Missing("not recorded")
    lengths = [number(start.ready_after_s) or 0.0 for start in earlier_starts(engine, starts)]
    usual: Figure = median(lengths) if lengths else _NEVER
    if isinstance(whole, Missing) and isinstance(usual, Missing):
        return ()
    return line(
        f"  {'until it served':<{_PHASE}}",
        Span(f"{shown(whole, _length):>{_SPENT}}", Role.STRONG),
        Span(f"{_usual_length(usual):>{_USUAL}}", Role.MUTED),
    )


def _usual_length(figure: Figure) -> str:
    """Blank where no start before this one tells what is usual."""
    return "" if figure is _NEVER else shown(figure, _length)


def _stall(snapshot: Snapshot) -> list[Line]:
    """What is wrong with a start that no longer gets on."""
    return [
        line(Span("▲ " if index == 0 else "  ", Role.BAD), part)
        for finding in snapshot.findings
        if finding.code == _STALLED
        for index, part in enumerate(
            [
                line(Span(clean(text), role))
                for text, role in (
                    (finding.title, Role.BAD),
                    (finding.evidence, Role.TEXT),
                    (finding.remedy, Role.STRONG),
                )
                if text
            ]
        )
    ]


def command_line(engine: EngineInfo, starts: Sequence[EngineStart], width: int) -> list[Line]:
    """The command line of the present start as a shell takes it, flags kept with their values."""
    own = next((start for start in starts if start.id == known(engine.id)), None)
    if own is None or isinstance(own.argv, Missing):
        return []
    words: list[str] = []
    for word in own.argv:
        quoted = shlex.quote(word)
        if words and words[-1].startswith("-") and " " not in words[-1] and word[:1] != "-":
            words[-1] += f" {quoted}"
        else:
            words.append(quoted)
    lines: list[Line] = []
    row = ""
    for word in words:
        if row and cell_len(row) + 1 + cell_len(word) > width - _INDENT:
            lines += wrap(row, width - _INDENT)
            row = word
        else:
            row = f"{row} {word}" if row else word
    lines += wrap(row, width - _INDENT)
    return [line(" " * _INDENT if index else "", entry) for index, entry in enumerate(lines)]


def history(starts: Sequence[EngineStart], snapshot: Snapshot, width: int) -> list[Line]:
    """One line a start, newest first: when, which profile, how long, and how it ended."""
    if not starts:
        return [line(Span(f"{DASH} no start is recorded", Role.MUTED))]
    profile = _PROFILE if width >= _NARROW else _NARROW_PROFILE
    head = (
        f"  {'started':<{WIDEST}}  {'profile':<{profile}}"
        f"{'ready in':>{_TIME}}{'served':>{_TIME}}  how it ended"
    )
    today, engine = day_of(snapshot.at), snapshot.engine
    rows = [
        entry
        for start in starts
        for entry in _start(start, _outcome(start, engine), width, profile, today)
    ]
    return [fit(line(Span(head, Role.LABEL)), width), *rows]


def _start(
    start: EngineStart, mark: tuple[str, Role], width: int, profile: int, today: str
) -> list[Line]:
    name = fit(line(clean(start.profile)), profile - 1)
    head = line(
        Span(f"{mark[0]} ", mark[1]),
        Span(f"{when(start.started_at, today):<{WIDEST}}  ", Role.MUTED),
        pad(name, profile),
        f"{shown(start.ready_after_s, _length):>{_TIME}}",
        f"{shown(start.served_s, fmt.duration):>{_TIME}}  ",
    )
    room = width - 2 - WIDEST - 2 - profile - 2 * _TIME - 2
    said = f"SIMULATED, {_end(start)}" if start.simulated else _end(start)
    ended = wrap(said, room) or [()]
    blank = " " * (width - room)
    return [line(head, ended[0]), *(line(blank, part) for part in ended[1:])]


def _outcome(start: EngineStart, engine: EngineInfo) -> tuple[str, Role]:
    """Running, stopped as asked, or ended otherwise."""
    if start.id == known(engine.id) and isinstance(start.end, Missing):
        return ("◐", Role.WARN) if engine.state in STARTING else ("●", Role.GOOD)
    if isinstance(start.end, Missing):
        return "·", Role.MUTED
    return ("○", Role.MUTED) if ended_as_asked(start) else ("✖", Role.BAD)


def ended_as_asked(start: EngineStart) -> bool:
    """Whether the engine ended well, or because the operator stopped it by whatever signal."""
    if isinstance(start.end, Missing):
        return False
    return start.end.code == 0 or start.end.cause.startswith(_STOPPED)


def _end(start: EngineStart) -> str:
    """The cause in words, with code or signal where the cause does not name it."""
    end = start.end
    if isinstance(end, Missing):
        return end.reason
    if isinstance(end.signal, str) and end.signal not in end.cause:
        return f"{end.signal}: {end.cause}"
    if isinstance(end.code, int) and end.code and "code" not in end.cause:
        return f"exit {end.code}: {end.cause}"
    return end.cause
