"""What stands in place of the table while nothing is served: what happens, or what to do."""

from __future__ import annotations

from a40console.model.command import BY_ID
from a40console.model.engine import EngineState
from a40console.model.figures import number
from a40console.model.snapshot import Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, width_of, wrap
from a40console.tui.keymap import action
from a40console.tui.panels.findings import GLYPHS, ranked
from a40console.tui.panels.moments import in_local_time
from a40console.tui.panels.verdict import PHASES
from a40console.tui.reading import Reading

_SERVING = frozenset({EngineState.SERVING, EngineState.DRAINING})
_TROUBLED = frozenset({EngineState.FAILED, EngineState.ORPHANED, EngineState.HUNG})


def serves(snapshot: Snapshot) -> bool:
    """Whether the table of requests has something to say."""
    return snapshot.engine.state in _SERVING


def resting(reading: Reading, width: int) -> list[Line]:
    """The phases of a start, the findings of a failure, or the keys that begin something."""
    state = reading.snapshot.engine.state
    if reading.snapshot.seq == 0:
        return []
    if state in {EngineState.FETCHING, EngineState.STARTING}:
        body = [*phases(reading), (), *keys(reading, ("view.logs", "engine.stop"), width - 4)]
    elif state in _TROUBLED:
        body = _findings(reading, width - 4)
    else:
        offered = ("engine.start", "view.engine", "digest.show", "help.show")
        body = keys(reading, offered, width - 4)
    return [(), *(fit(line("  ", entry), width) for entry in body)]


def phases(reading: Reading) -> list[Line]:
    """The phases of this start that were watched from here, the present one marked."""
    engine = reading.snapshot.engine
    lines: list[Line] = []
    for phase in reading.past.phases:
        if phase.name == "ready":
            continue
        here = phase.name == engine.phase
        eta = number(engine.eta_s) if here else None
        tail = "" if eta is None else f"   ≈ {fmt.duration(eta)} left"
        glyph, role = ("◐", Role.WARN) if here else ("●", Role.GOOD)
        name = clean(PHASES.get(phase.name, phase.name))
        spent = shown(phase.seconds, fmt.duration)
        lines.append(line(Span(f"{glyph} ", role), f"{name:<26}{spent:>9}", Span(tail, Role.MUTED)))
    return lines


def keys(reading: Reading, command_ids: tuple[str, ...], width: int) -> list[Line]:
    """Keys worth pressing now, each with what it does, broken where it does not fit beside it."""
    commands = [BY_ID[command_id] for command_id in command_ids]
    name = max(len(command.title) for command in commands) + 2
    lines: list[Line] = []
    for command in commands:
        key = reading.keymap.hint(command.id)
        if not key:
            continue
        head = line(
            Span(f"{key:<3}", Role.KEY, action(command)),
            Span(command.title.ljust(name), Role.TEXT, action(command)),
        )
        parts = wrap(command.help, max(1, width - width_of(head)), Role.MUTED)
        lines += [
            line(head if index == 0 else " " * width_of(head), part)
            for index, part in enumerate(parts)
        ]
    return lines


def _findings(reading: Reading, width: int) -> list[Line]:
    lines: list[Line] = []
    commands: list[str] = []
    for finding in ranked(reading.snapshot):
        glyph, role = GLYPHS[finding.severity]
        head = f"{glyph} {finding.code}  "
        lines += [
            line(Span(head if index == 0 else " " * len(head), role), part)
            for index, part in enumerate(wrap(finding.title, width - len(head)))
        ]
        evidence = in_local_time(finding.evidence)
        for label, text in (("evidence", evidence), ("remedy", finding.remedy)):
            lines += [
                line(Span(f"  {label if index == 0 else '':<10}", Role.LABEL), part)
                for index, part in enumerate(wrap(text, width - 12))
            ]
        lines.append(())
        if finding.command in BY_ID and finding.command not in commands:
            commands.append(finding.command)
    return [*lines, *keys(reading, (*commands, "view.logs", "digest.show"), width)]
