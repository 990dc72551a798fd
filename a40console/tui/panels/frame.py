"""What frames every screen: its tabs, the clock, the key hints."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size

from a40console.model.command import COMMANDS, Command
from a40console.model.engine import EngineState
from a40console.tui import format as fmt
from a40console.tui.availability import why_not
from a40console.tui.ink import Line, Role, Span, flow, line, rule, width_of
from a40console.tui.keymap import action, short
from a40console.tui.reading import Reading

_VIEWS = tuple(command for command in COMMANDS if command.id.startswith("view."))
_ALWAYS = ("help.show", "console.quit")
_HINTED = tuple(
    command
    for command in COMMANDS
    if command.key and command not in _VIEWS and command.id not in _ALWAYS
)
_LEAVING = tuple(command for command in COMMANDS if command.id in _ALWAYS)


def tabs(current: str) -> Callable[[Reading, Size], list[Line]]:
    """A drawer of the tab line with one view marked by a heavy rule and bold text."""

    def draw(reading: Reading, size: Size) -> list[Line]:
        parts: list[Span | str] = []
        for command in _VIEWS:
            here = command.id == current
            edge = Span("━" if here else "─", Role.TITLE if here else Role.RULE)
            name = Span(
                f" {reading.keymap.hint(command.id)} {command.title} ".replace("  ", " "),
                Role.TITLE if here else Role.MUTED,
                action(command),
            )
            parts += [edge, name, edge]
        head = line(*parts)
        return [line(head, Span("─" * max(0, size.width - width_of(head)), Role.RULE))]

    return draw


def clock(reading: Reading, size: Size) -> list[Line]:
    """How fresh the figures are, and how many events came since the operator looked."""
    if reading.snapshot.seq == 0:
        age = Span("no figures yet", Role.MUTED)
    elif reading.stale:
        age = Span(f"{fmt.age(reading.age_s)} old", Role.BAD)
    else:
        age = Span(f"live {fmt.clock(reading.snapshot.at)}")
    key = reading.keymap.hint("events.read")
    news = (
        Span(
            f"{fmt.plural(reading.unread, 'new event')} [{key}]",
            Role.KEY,
            "app.command('events.read')",
        )
        if reading.unread
        else Span("")
    )
    parts = [age] if not news.text else [age, Span(" ─ ", Role.RULE), news]
    body = line(Span(" ", Role.RULE), *parts, Span(" ─", Role.RULE))
    return [line(Span("─" * max(0, size.width - width_of(body)), Role.RULE), body)]


def hints(reading: Reading, size: Size) -> list[Line]:
    """The keys that do something now, and always how to get help and how to leave."""
    gap = "  " if size.width >= 100 else " "
    last = flow([_hint(reading, command) for command in _LEAVING], size.width, gap)
    usable = [_hint(reading, command) for command in _HINTED if _is_useful(command, reading)]
    room = size.width - width_of(last) - 1 - len(gap)
    first = flow([item for item in usable if item], room, gap)
    return [line(" ", first, gap if first else "", last)]


def _is_useful(command: Command, reading: Reading) -> bool:
    """Whether a hint earns its place: it can run, and there is something for it to do."""
    if command.id == "engine.clean" and reading.snapshot.engine.state is not EngineState.ORPHANED:
        return False
    return why_not(command, reading) is None


def _hint(reading: Reading, command: Command) -> Line:
    key = reading.keymap.hint(command.id)
    if not key:
        return line("")
    return line(
        Span(key, Role.KEY, action(command)),
        Span(f" {short(command).lower()}", Role.MUTED, action(command)),
    )


def heading(title: str, detail: str, width: int, role: Role = Role.LABEL) -> Line:
    """A panel's heading: its name and what its figures cover, on a thin rule."""
    tail = line(Span(f" {detail}", Role.MUTED)) if detail else line("")
    return rule(line(Span(title, role), tail), width)
