"""What stands below the engine's output: keys, state, and the meaning of a line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from a40console.model.control import EngineStart
from a40console.model.engine_log import LogMeaning
from a40console.model.log_line import Level
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, width_of, wrap

MEANING_ROWS = 3

_KEYS = (
    ("/", "search", "screen.ask('search')"),
    ("f", "filter", "screen.ask('filter')"),
    ("l", "level", "screen.level"),
    ("E", "first", "screen.first_error"),
    (", .", "error", "screen.error(1)"),
    ("F", "follow", "screen.follow"),
    ("o", "starts", "screen.choose_start"),
    ("W", "wrap", "screen.wrap"),
    ("v y", "copy", "screen.copy"),
)
_LEVELS = {Level.INFO: "info", Level.WARN: "warnings", Level.ERROR: "errors"}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the two lines below the output tell of it."""

    trouble: str
    path: str | None
    following: bool
    selecting: bool
    held: int
    shown: int
    dropped: int
    skipped: int
    waiting_bytes: int
    minimum: Level
    filter: str
    needle: str
    matches: int
    explained: bool
    """Whether a line that is held is marked as known."""

    start: EngineStart | None


def about(state: State, width: int) -> list[Line]:
    """Keys, and how much of the output is shown how."""
    head = _hints(width - 2)
    if state.trouble:
        return [head, fit(line(Span(f" ✖ {clean(state.trouble)}", Role.BAD)), width)]
    if state.path is None:
        nothing = " – there is no engine whose output could be shown"
        return [head, fit(line(Span(nothing, Role.MUTED)), width)]
    return [head, line(" ", flow(_facts(state), width - 2))]


def _hints(width: int) -> Line:
    """The keys, closer together where room is scarce."""
    keys = [
        line(Span(key, Role.KEY, action), Span(f" {word}", Role.MUTED))
        for key, word, action in _KEYS
    ]
    wide = sum(map(width_of, keys)) + 2 * len(keys) <= width
    return line(" ", flow(keys, width, "  " if wide else " "))


def _facts(state: State) -> list[Line]:
    return [
        _standing(state),
        *(line(Span(text, Role.WARN)) for text in _narrowed(state)),
        *_counted(state),
        line(Span(clean(state.path or ""), Role.MUTED)),
    ]


def _narrowed(state: State) -> Iterator[str]:
    """What is not the whole output of the present start."""
    if state.start is not None:
        yield f"start of {fmt.clock(state.start.started_at)}"
    if state.minimum in _LEVELS:
        above = "" if state.minimum is Level.ERROR else " and above"
        yield f"only {_LEVELS[state.minimum]}{above}"
    if state.filter:
        yield f"only with {clean(state.filter)!r}"
    if state.skipped:
        yield f"{fmt.count(state.skipped)} lines skipped"


def _counted(state: State) -> Iterator[Line]:
    count = fmt.count(state.held)
    if state.shown != state.held:
        count = f"{fmt.count(state.shown)} of {count}"
    yield line(Span(f"{count} lines", Role.MUTED))
    if state.needle:
        found = f"{fmt.count(state.matches)} lines with {state.needle!r}, n N"
        yield line(Span(found, Role.MUTED))
    if state.explained:
        yield line(Span("*", Role.KEY), Span(" explained", Role.MUTED))
    if state.dropped:
        yield line(Span(f"{fmt.count(state.dropped)} older dropped", Role.MUTED))


def _standing(state: State) -> Line:
    if state.following:
        return line(Span("following", Role.GOOD))
    if state.selecting:
        return line(Span("selecting: y copies", Role.KEY))
    more = f", {fmt.size(state.waiting_bytes)} not read" if state.waiting_bytes else ""
    return line(Span(f"held{more}, F follows", Role.WARN))


def meaning(
    known: LogMeaning | None, block: Sequence[str], width: int, *, asked: bool
) -> list[Line]:
    """What the line under the cursor means and what to do."""
    if known is None:
        plain = "nothing more is known of this line" if asked else "asking what this line means …"
        size = f" · {len(block)} lines belong together" if len(block) > 1 else ""
        return [fit(line(Span(f" – {plain}{size}", Role.MUTED)), width)]
    role, mark = (Role.TEXT, "*") if known.harmless else (Role.WARN, "✖")
    cause = line(Span(f" {mark} ", Role.KEY), Span(clean(known.cause), role))
    remedy = wrap(known.remedy, width - 4)
    rows = [fit(cause, width)]
    rows += [line("   ", entry) for entry in remedy[: MEANING_ROWS - 1]]
    if len(remedy) > MEANING_ROWS - 1:
        rows[-1] = fit(line(rows[-1], Span(" …")), width)
    return rows
