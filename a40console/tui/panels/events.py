"""The events screen's text: the rows of the journal, what one entry says, what is listed."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.command import BY_ID, Command
from a40console.model.event import NOTE_KIND, Event
from a40console.model.instants import unix_s
from a40console.tui import format as fmt
from a40console.tui.availability import why_not
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, pad, spread, width_of, wrap
from a40console.tui.journal import JournalPages
from a40console.tui.keymap import action
from a40console.tui.panels.findings import GLYPHS
from a40console.tui.panels.frame import heading
from a40console.tui.panels.moments import WIDEST, day_of, when
from a40console.tui.reading import Reading

_NOTE_GLYPH = "◆"
_WORD = 7
_KIND = 22
_NARROW_KIND = 15
_NARROW = 100
_LABEL = 12
_TOLD_APART = frozenset({"remedy", "command"})
"""Evidence that is shown on a line of its own."""

_MENDS = {"engine.failed": "engine.start", "engine.left_behind": "engine.clean"}
"""The command that answers entries of a kind, where they name none themselves."""


def mark_of(event: Event) -> tuple[str, Role]:
    """The glyph of an entry and its role; the word beside it says the same."""
    if event.kind == NOTE_KIND:
        return _NOTE_GLYPH, Role.KEY
    return GLYPHS[event.severity]


def header(width: int) -> Line:
    """The columns' names."""
    kind = _kind_width(width)
    return fit(
        line(
            Span(f"   {'time':<{WIDEST}} {'':<{_word_width(width)}} ", Role.LABEL),
            Span(f"{'what':<{kind}} ", Role.LABEL),
            Span("text", Role.LABEL),
        ),
        width,
    )


def row(event: Event, width: int, *, unread: bool, here: bool, today: str) -> Line:
    """One entry on one line; a bold dot before those that are new."""
    glyph, role = mark_of(event)
    word = "note" if event.kind == NOTE_KIND else event.severity
    kind = _kind_width(width)
    cursor = Span("▸" if here else " ", Role.KEY)
    news = Span("•" if unread else " ", Role.KEY)
    body = Role.STRONG if unread or here else Role.TEXT
    told = line(
        cursor,
        news,
        Span(f" {when(event.at, today):<{WIDEST}} ", Role.MUTED),
        Span(f"{glyph} {word}".ljust(_word_width(width))[: _word_width(width)] + " ", role),
    )
    name = pad(line(Span(clean(event.kind), Role.MUTED)), kind)
    return fit(line(told, name, " ", Span(clean(event.text), body)), width)


def _word_width(width: int) -> int:
    """Cells of the severity: its glyph, and the word that says the same where there is room."""
    return _WORD if width >= _NARROW else 1


def _kind_width(width: int) -> int:
    return _KIND if width >= _NARROW else _NARROW_KIND


def command_of(event: Event) -> Command | None:
    """The command that applies the entry's remedy, where the table has it."""
    return BY_ID.get(event.data.get("command") or _MENDS.get(event.kind, ""))


def detail(event: Event | None, width: int, reading: Reading) -> list[Line]:
    """Everything that one entry says, its remedy and the command that applies it."""
    if event is None:
        return [heading("Entry", "none chosen", width)]
    glyph, role = mark_of(event)
    at_s, now_s = unix_s(event.at), unix_s(reading.snapshot.at)
    ago = "" if at_s is None or now_s is None else f"{fmt.age(max(0.0, now_s - at_s))} ago"
    told = f"{day_of(event.at)} {fmt.clock(event.at)}  {ago}".strip()
    lines = [heading(clean(event.kind), told, width)]
    lines += [
        line(Span(f" {glyph} " if index == 0 else "   ", role), part)
        for index, part in enumerate(wrap(event.text, width - 4, Role.STRONG))
    ]
    for name, value in event.data.items():
        if value and name not in _TOLD_APART:
            lines += _paragraph(name, value, width)
    return [*lines, *_remedy(event, width, reading)]


def _remedy(event: Event, width: int, reading: Reading) -> list[Line]:
    lines = _paragraph("remedy", event.data.get("remedy", ""), width)
    command = command_of(event)
    if command is None:
        return lines
    reason = why_not(command, reading)
    said = f"  not now: {reason}" if reason else f"  {command.help}"
    offer = line(
        Span(" " * (_LABEL + 3)),
        Span("enter", Role.KEY, "screen.apply"),
        Span(f" {command.title}", Role.MUTED if reason else Role.TEXT, action(command)),
        Span(clean(said), Role.MUTED),
    )
    return [*lines, fit(offer, width)]


def cut(lines: list[Line], size: Size) -> list[Line]:
    """As many lines as there are rows; the last says that there is more."""
    if len(lines) <= size.height or size.height < 2:
        return lines[: size.height]
    more = len(lines) - size.height + 1
    told = f"   … {fmt.plural(more, 'more line')}"
    return [*lines[: size.height - 1], line(Span(told, Role.MUTED))]


def about(event: Event | None, place: int, journal: JournalPages, trouble: str, width: int) -> Line:
    """The keys of this screen, which entry is chosen, and of how much of the journal."""
    if trouble:
        return fit(line(Span(f" ✖ {clean(trouble)}", Role.BAD)), width)
    narrowed = journal.filter
    severity = {"info": "all", "warn": "warn and error", "error": "error"}[narrowed.severity]
    find = f"find {clean(narrowed.text)!r}" if narrowed.text else "find"
    command = command_of(event) if event else None
    items = [_key("enter", command.title, "screen.apply")] if command else []
    items += [
        _key("/", find, "screen.search", chosen=bool(narrowed.text)),
        _key("v", severity, "screen.severity", chosen=narrowed.severity != "info"),
    ]
    if narrowed.narrows:
        items.append(_key("esc", "everything", "screen.end_search"))
    if event is not None:
        items.append(_key("o", f"overview at {fmt.clock(event.at)}", "screen.look"))
    held = line(Span(_held(journal, place), Role.MUTED))
    return spread(line(" ", flow(items, width - width_of(held) - 4, "   ")), held, width - 1)


def _key(key: str, word: str, doing: str, *, chosen: bool = False) -> Line:
    return line(
        Span(f"{key} ", Role.KEY, doing), Span(word, Role.WARN if chosen else Role.MUTED, doing)
    )


def _held(journal: JournalPages, place: int) -> str:
    """Which entry is chosen, how many are listed, and of how many."""
    found = fmt.plural(len(journal.entries), "event")
    if len(journal.entries) > 1:
        found = f"entry {fmt.count(place + 1)} · {found}"
    if journal.filter.narrows:
        found += f" of {fmt.count(journal.read)}"
    if journal.whole:
        return f"{found}, all there are"
    return f"{found}, older below"


def _paragraph(label: str, text: str, width: int) -> list[Line]:
    name = clean(label.replace("_", " "))[: _LABEL - 1]
    return [
        line(Span(f"   {name if index == 0 else '':<{_LABEL}}", Role.LABEL), part)
        for index, part in enumerate(wrap(text, width - _LABEL - 4))
    ]
