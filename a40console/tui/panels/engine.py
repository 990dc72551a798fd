"""The engine screen's text: who it is, how it started, what it runs, how it ended."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.snapshot import Difference, EngineInfo, SourceStatus
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, width_of, wrap
from a40console.tui.panels.resting import phases
from a40console.tui.reading import Reading

_LABEL = 16
_TWO_COLUMNS = 100
_SOURCE_MARKS = {
    "ok": ("●", Role.GOOD),
    "stale": ("▲", Role.WARN),
    "failed": ("✖", Role.BAD),
    "absent": ("○", Role.MUTED),
}


def engine_facts(reading: Reading, size: Size) -> list[Line]:
    """All facts of the engine, in two columns where there is room."""
    width = size.width
    if width < 20:
        return []
    engine = reading.snapshot.engine
    column = (width - 4) // 2 if width >= _TWO_COLUMNS else width - 2
    left = [*_identity(engine, column), (), *_start(reading, column)]
    right = [*_sources(reading.snapshot.sources, column), (), *_end(engine, column)]
    below = _differences(engine, width - 2)
    if width < _TWO_COLUMNS:
        return _indented([*left, (), *below, (), *right])
    return _indented([*_beside(left, right, column), (), *below])


def _indented(lines: list[Line]) -> list[Line]:
    return [line(" ", entry) if entry else () for entry in lines]


def _beside(left: list[Line], right: list[Line], column: int) -> list[Line]:
    height = max(len(left), len(right))
    left = left + [()] * (height - len(left))
    right = right + [()] * (height - len(right))
    return [line(pad(a, column), "  ", b) for a, b in zip(left, right, strict=True)]


def _title(text: str, width: int) -> Line:
    head = line(Span(text + " ", Role.TITLE))
    return line(head, Span("─" * max(0, width - width_of(head)), Role.RULE))


def _fact(label: str, value: Text | Figure | str | Line, width: int) -> list[Line]:
    head = Span(label.ljust(_LABEL), Role.LABEL)
    if isinstance(value, tuple):
        return [fit(line(head, value), width)]
    missing = isinstance(value, Missing)
    text = f"{DASH} {value.reason}" if isinstance(value, Missing) else str(value)
    parts = wrap(text, width - _LABEL, Role.MUTED if missing else Role.TEXT)
    return [line(head if index == 0 else " " * _LABEL, part) for index, part in enumerate(parts)]


def _figure(figure: Figure) -> Line | Missing:
    if isinstance(figure, Missing):
        return figure
    return line(shown(figure, fmt.count))


def _identity(engine: EngineInfo, width: int) -> list[Line]:
    up = engine.uptime_s
    pids = (
        engine.pid
        if isinstance(engine.pid, Missing)
        else line(f"{shown(engine.pid, _plain)}", Span("  session ", Role.MUTED), _session(engine))
    )
    return [
        _title("Identity", width),
        *_fact("state", engine.state.value, width),
        *_fact("kind", engine.kind, width),
        *_fact("version", engine.version, width),
        *_fact("profile", engine.profile, width),
        *_fact("model", engine.model, width),
        *_fact("served as", engine.served_name, width),
        *_fact("start", engine.id, width),
        *_fact("pid", pids, width),
        *_fact("listens on", engine.listen, width),
        *_fact("up", up if isinstance(up, Missing) else shown(up, fmt.duration), width),
        *_fact("restarts", str(engine.restarts), width),
        *_fact("context limit", _figure(engine.max_model_len), width),
        *_paused(engine, width),
        *_fact("argv digest", engine.argv_digest, width),
    ]


def _paused(engine: EngineInfo, width: int) -> list[Line]:
    """Whether it is paused, of an engine that can be."""
    paused = engine.paused
    if isinstance(paused, Missing):
        return _fact("paused", paused, width) if engine.kind == "vllm" else []
    return _fact("paused", "yes" if paused else "no", width)


def _plain(value: float) -> str:
    return f"{value:.0f}"


def _session(engine: EngineInfo) -> str:
    return shown(engine.session_id, _plain)


def _start(reading: Reading, width: int) -> list[Line]:
    """The phases of this start: those watched from here, and the present one."""
    lines = [_title("Phases of this start", width)]
    watched = phases(reading)
    if not watched:
        return [*lines, line(Span(f"{DASH} not watched from here", Role.MUTED))]
    return [*lines, *(fit(entry, width) for entry in watched)]


def _sources(sources: tuple[SourceStatus, ...], width: int) -> list[Line]:
    lines = [_title("Sources", width)]
    if not sources:
        return [*lines, line(Span(f"{DASH} no source has reported", Role.MUTED))]
    for source in sources:
        glyph, role = _SOURCE_MARKS[source.state]
        age = number(source.age_s)
        age_text = DASH if age is None else ("fresh" if age < 5 else f"{fmt.age(age)} old")
        head = line(
            Span(f"{glyph} {source.state:<7}", role), f"{clean(source.name):<22}{age_text:>9}"
        )
        lines.append(fit(head, width))
        reason = wrap(source.reason or "", width - 9, Role.MUTED)
        lines += [line(" " * 9, part) for part in reason]
    return lines


def _end(engine: EngineInfo, width: int) -> list[Line]:
    lines = [_title("Last end", width)]
    end = engine.exit
    if isinstance(end, Missing):
        return [*lines, line(Span(f"{DASH} {clean(end.reason)}", Role.MUTED))]
    code = end.code if isinstance(end.code, Missing) else str(end.code)
    return [
        *lines,
        *wrap(end.cause, width, Role.STRONG),
        *_fact("exit code", code, width),
        *_fact("signal", end.signal, width),
        *_fact("at", fmt.clock(end.at), width),
    ]


def _differences(engine: EngineInfo, width: int) -> list[Line]:
    """Every setting that runs otherwise than asked."""
    lines = [_title("Asked and in force", width)]
    known = engine.effective
    if isinstance(known, Missing):
        return [*lines, line(Span(f"{DASH} {clean(known.reason)}", Role.MUTED))]
    if not known:
        return [*lines, line(Span("✓ everything runs as it was asked", Role.GOOD))]
    lines.append(
        line(Span(f"{'setting':<28}{'asked':>12}  {'in force':>12}  evidence", Role.LABEL))
    )
    return [*lines, *(fit(_difference(entry), width) for entry in known)]


def _difference(entry: Difference) -> Line:
    effective = entry.effective
    force = DASH if isinstance(effective, Missing) else _value(effective)
    evidence = effective.reason if isinstance(effective, Missing) else entry.evidence
    return line(
        f"{clean(entry.setting):<28}{clean(_value(entry.asked)):>12}  ",
        Span(f"{clean(force):>12}", Role.WARN),
        Span(f"  {clean(evidence)}", Role.MUTED),
    )


def _value(value: str | int | float | bool | None) -> str:
    """A setting's value as an operator writes it."""
    match value:
        case None:
            return "default"
        case bool():
            return "on" if value else "off"
        case int():
            return fmt.count(value)
        case _:
            return str(value)
