"""The engine screen's text: who it is, how it started, what it runs, how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from a40console.model.control import EngineStart
from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.snapshot import Difference, EngineInfo, Snapshot, SourceStatus
from a40console.model.switching import SwitchInfo
from a40console.tui import format as fmt
from a40console.tui.availability import LIVING
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, width_of, wrap
from a40console.tui.panels.frame import heading
from a40console.tui.panels.starts import STARTING, command_line, history, present_start
from a40console.tui.panels.verdict import STEPS
from a40console.tui.reading import Reading

_LABEL = 16
_TWO_COLUMNS = 100
_MANY = 3
"""So many facts unknown for one reason are named together."""

_SOURCE_MARKS = {
    "ok": ("●", Role.GOOD),
    "stale": ("▲", Role.WARN),
    "failed": ("✖", Role.BAD),
    "absent": ("○", Role.MUTED),
}


def engine_facts(
    reading: Reading, size: Size, starts: Sequence[EngineStart] = (), trouble: str = ""
) -> list[Line]:
    """All facts of the engine, in two columns where there is room.

    A start that is under way comes first, else what runs otherwise than asked.
    """
    width = size.width - 2
    if width < 18:
        return []
    snapshot = reading.snapshot
    engine = snapshot.engine
    wide = width + 2 >= _TWO_COLUMNS
    column = (width - 2) // 2 if wide else width
    asked = _asked(engine, width) if engine.state in LIVING else []
    title = "This start" if engine.state in LIVING else "The last start"
    start = _section(title, present_start(reading, starts), column)
    identity = _identity(engine, snapshot.requests.gate, column)
    sources = _sources(snapshot.sources, column)
    last = _end(engine, column)
    argv = _command_line(engine, starts, width)
    earlier = _history(starts, trouble, snapshot, width)
    if not wide:
        first = [start, asked] if engine.state in STARTING else [asked, start]
        first = [*first, last] if engine.state in LIVING else [last, *first]
        facts = [_title("Identity", width), *(entry for fact in identity for entry in fact)]
        return _indented(_stacked(*first, facts, sources, earlier, argv), width)
    leads = engine.state in STARTING or (bool(last) and engine.state not in LIVING)
    told = _stacked(start, last) if engine.state in LIVING else _stacked(last, start)
    pair = _beside(told, sources, column)
    facts = [_title("Identity", width), *_in_columns(identity, column)]
    blocks = [pair, asked] if leads else [asked, pair]
    return _indented(_stacked(*blocks, facts, earlier, argv), width)


def _stacked(*blocks: list[Line]) -> list[Line]:
    """The blocks one below the other, a blank line between them."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [(), *block] if lines else block
    return lines


def _section(title: str, body: list[Line], width: int) -> list[Line]:
    return [_title(title, width), *(fit(entry, width) for entry in body)]


def _indented(lines: list[Line], width: int) -> list[Line]:
    return [fit(line(" ", entry), width + 1) if entry else () for entry in lines]


def _beside(left: list[Line], right: list[Line], column: int) -> list[Line]:
    height = max(len(left), len(right))
    left = left + [()] * (height - len(left))
    right = right + [()] * (height - len(right))
    return [line(pad(a, column), "  ", b) for a, b in zip(left, right, strict=True)]


def _title(text: str, width: int) -> Line:
    return heading(text, "", width)


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


def _identity(engine: EngineInfo, gate: str | None, width: int) -> list[list[Line]]:
    """The facts of who it is, each as its lines; what is unknown for one reason is one fact."""
    facts = _facts(engine, gate)
    reasons = [value.reason for _, value in facts if isinstance(value, Missing)]
    common = {reason for reason in reasons if reasons.count(reason) >= _MANY}
    listed = [
        _fact(label, value, width)
        for label, value in facts
        if not (isinstance(value, Missing) and value.reason in common)
    ]
    for reason in sorted(common):
        names = [n for n, value in facts if isinstance(value, Missing) and value.reason == reason]
        listed.append(wrap(f"{DASH} {reason}: {', '.join(names)}", width, Role.MUTED))
    return listed


def _facts(engine: EngineInfo, gate: str | None) -> list[tuple[str, Text | Line]]:
    up, session = engine.uptime_s, shown(engine.session_id, _plain)
    pid: Line | Missing = (
        engine.pid
        if isinstance(engine.pid, Missing)
        else line(shown(engine.pid, _plain), Span("  session ", Role.MUTED), session)
    )
    return [
        ("state", engine.state.value),
        ("profile", engine.profile),
        *([] if isinstance(engine.placement, Missing) else [("placement", engine.placement)]),
        *_switched(engine.switch),
        ("model", engine.model),
        ("served as", engine.served_name),
        ("kind", engine.kind),
        ("version", engine.version),
        ("context limit", _figure(engine.max_model_len)),
        ("up", up if isinstance(up, Missing) else shown(up, fmt.duration)),
        ("restarts", str(engine.restarts)),
        *_paused(engine),
        *([("gateway", line(Span(clean(gate), Role.WARN)))] if gate else []),
        ("pid", pid),
        ("listens on", engine.listen),
        ("start", engine.id),
        ("argv digest", engine.argv_digest),
    ]


def _switched(switch: SwitchInfo | Missing) -> list[tuple[str, Text | Line]]:
    """What is under way, and who asked for it; nothing where nothing is."""
    if isinstance(switch, Missing):
        return []
    told = f"{clean(switch.what)}, {STEPS[switch.step]}"
    return [("switch", line(Span(told, Role.WARN))), ("asked for by", switch.who)]


def _paused(engine: EngineInfo) -> list[tuple[str, Text | Line]]:
    """Whether it is paused, of an engine that can be."""
    paused = engine.paused
    if isinstance(paused, Missing):
        return [("paused", paused)] if engine.kind == "vllm" else []
    return [("paused", "yes" if paused else "no")]


def _in_columns(facts: list[list[Line]], column: int) -> list[Line]:
    """The facts in two columns, read down the left one first."""
    rows = sum(map(len, facts))
    left: list[Line] = []
    while facts and len(left) + len(facts[0]) <= -(-rows // 2):
        left += facts.pop(0)
    return _beside(left, [entry for fact in facts for entry in fact], column)


def _plain(value: float) -> str:
    return f"{value:.0f}"


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
    """How it ended, where it did; of an engine that runs, how the one before it did."""
    end = engine.exit
    if isinstance(end, Missing):
        return []
    title = "How the engine before it ended" if engine.state in LIVING else "How it ended"
    code = end.code if isinstance(end.code, Missing) else str(end.code)
    return [
        _title(title, width),
        *wrap(end.cause, width, Role.STRONG),
        *_fact("exit code", code, width),
        *_fact("signal", end.signal, width),
        *_fact("at", fmt.clock(end.at), width),
    ]


def _command_line(engine: EngineInfo, starts: Sequence[EngineStart], width: int) -> list[Line]:
    words = command_line(engine, starts, width)
    return [_title("Command line", width), *words] if words else []


def _history(
    starts: Sequence[EngineStart], trouble: str, snapshot: Snapshot, width: int
) -> list[Line]:
    if trouble:
        return [_title("Starts", width), line(Span(f"✖ {clean(trouble)}", Role.BAD))]
    return [_title("Starts", width), *history(starts, snapshot, width)]


def _asked(engine: EngineInfo, width: int) -> list[Line]:
    """Every setting that runs otherwise than asked."""
    lines = [_title("Asked and in force", width)]
    known = engine.effective
    if isinstance(known, Missing):
        return [*lines, line(Span(f"{DASH} {clean(known.reason)}", Role.MUTED))]
    if not known and engine.state in STARTING:
        return [*lines, line(Span("nothing has shown to be otherwise so far", Role.MUTED))]
    if not known:
        return [*lines, line(Span("✓ everything runs as it was asked", Role.GOOD))]
    rows = [_difference(entry, width) for entry in known]
    beside = "  evidence" if all(len(row) == 1 for row in rows) else ""
    lines.append(line(Span(f"{'setting':<28}{'asked':>12}  {'in force':>12}{beside}", Role.LABEL)))
    return [*lines, *(part for row in rows for part in row)]


def _difference(entry: Difference, width: int) -> list[Line]:
    """One setting; its evidence beside it, or below where there is no room."""
    effective = entry.effective
    force = DASH if isinstance(effective, Missing) else _value(effective)
    evidence = effective.reason if isinstance(effective, Missing) else entry.evidence
    values = line(
        f"{clean(entry.setting):<28}{clean(_value(entry.asked)):>12}  ",
        Span(f"{clean(force):>12}", Role.WARN),
    )
    told = line(Span(clean(evidence), Role.MUTED))
    if width_of(values) + 2 + width_of(told) <= width:
        return [line(values, "  ", told)]
    below = wrap(evidence, width - 4, Role.MUTED)
    return [fit(values, width), *(line("    ", part) for part in below)]


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
