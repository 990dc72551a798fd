"""Longer texts of the dialogs: answers, the manual."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.command import COMMANDS
from a40console.model.control import CommandResult
from a40console.tui import format as fmt
from a40console.tui.glossary import FIGURES, MARKS
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.keymap import Keymap

_NAME = 16

_LOG_KEYS = (
    ("/", "Search, whatever the case; n and N step through the matches, escape ends it."),
    ("f", "Only lines with a text, or /pattern/; an empty one shows all again."),
    ("l", "The lowest level that is shown: all, info, warnings, errors."),
    ("E", "The first error of the whole output; , and . go to the error before and the next."),
    ("↑ ↓", "Hold the output, with a cursor; below stands what its line means, where * marks it."),
    ("F", "Follow the end, or hold. Moving up holds, going below the last line follows."),
    ("o", "The output of another start."),
    ("v y", "Select lines; copy them, or the line under the cursor with its traceback."),
    ("W", "Break long lines; otherwise ← and → move along them."),
)


_EVENT_KEYS = (
    ("enter", "Run the command that mends the entry, after its question."),
    ("o", "The overview as it was at the entry's time."),
    ("/", "Find a text in kind, words and evidence; escape lists everything again."),
    ("v", "List warnings and errors, errors alone, or everything."),
    ("u", "Take away the dots of what is new."),
)


_SESSION_KEYS = (
    ("tab", "From the sessions to the chosen one's turns, and back."),
    ("enter", "The session, or the turn under the cursor, in full."),
    ("C", "Write the session's text to private files, after a question; or no more."),
)


_RUN_KEYS = (
    ("enter", "The run under the cursor alone, with all it found; escape goes back."),
    ("p", "The next of its plots; while it runs, the next thing that is drawn of each request."),
    ("v", "Mark a run, then on another: both side by side, and in what they differ."),
    ("x", "Cancel a run that waits or is under way; what it has measured is kept."),
    ("n", "Write a line about the run, kept with it."),
    ("f", "Write a report into a file: HTML with plots, Markdown, CSV or JSON."),
    ("i", "Mark the run invalid, with the reason."),
    ("h", "Hypotheses: n adds one; enter concludes one, by the run under the cursor."),
    ("s", "In the settings of an experiment: start it; ← and → change a row, enter edits it."),
)


_THERE = (
    ("view.logs", "In the logs", _LOG_KEYS),
    ("view.events", "In the events", _EVENT_KEYS),
    ("view.sessions", "In the sessions", _SESSION_KEYS),
    ("view.runs", "In the runs", _RUN_KEYS),
)


def _section(title: str) -> list[Line]:
    return [(), line(Span(title, Role.LABEL))]


def answer(result: CommandResult, width: int, *, before: str = "") -> list[Line]:
    """What a command answered: short values beside their names, long ones below."""
    lines: list[Line] = list(wrap(before, width, Role.WARN)) if before else []
    for name, value in result.result.items():
        label = clean(name.replace("_", " "))
        if "\n" not in value and len(value) <= width - _NAME:
            lines.append(line(Span(label.ljust(_NAME), Role.LABEL), clean(value)))
            continue
        lines.append(line(Span(label, Role.LABEL)))
        for row in value.splitlines():
            lines += [line("  ", part) for part in wrap(row, width - 2)] or [()]
    for event in result.events:
        lines += wrap(f"{fmt.clock(event.at)} {event.text}", width, Role.MUTED)
    if not (result.result or result.events):
        lines.append(line(Span("Done; the service sent nothing with it.", Role.MUTED)))
    return lines


def manual(keys: Keymap, width: int, view: str = "") -> list[Line]:
    """The keys of the view in front, every command with its key, the marks and the figures.

    Args:
        keys: As the operator has them.
        width: In cells.
        view: The command that leads to the view in front; empty for none.
    """
    there = {of: _keys(title, keys_there, width) for of, title, keys_there in _THERE}
    front = there.pop(view, [])
    lines: list[Line] = [*front[1:], ()] if front else []
    lines.append(line(Span("Commands", Role.LABEL)))
    for command in COMMANDS:
        text = f"{command.title}: {command.help}"
        if command.confirm:
            text += " Asks first."
        lines += _entry(keys.hint(command.id) or "–", text, width, 5)
    lines += _entry("ctrl+p", "Palette: every command by name.", width, 5)
    lines += _entry("tab", "Next panel; the line above the keys names its source.", width, 5)
    for rows in there.values():
        lines += rows
    lines += _section("Marks")
    for mark, text in MARKS:
        lines += _entry(mark, text, width, 5)
    lines += _section("Figures")
    for name, text in FIGURES:
        lines += _entry(name, text, width, 17)
    return lines


def _keys(title: str, keys: Sequence[tuple[str, str]], width: int) -> list[Line]:
    lines = _section(title)
    for key, text in keys:
        lines += _entry(key, text, width, 5)
    return lines


def _entry(name: str, text: str, width: int, room: int) -> list[Line]:
    indent = room + 4
    parts = wrap(text, width - indent)
    if len(name) > room + 1:
        indent = len(name) + 3
        parts = wrap(text, width - indent)
    return [
        line(Span(f"  {name if index == 0 else '':<{indent - 2}}", Role.KEY), part)
        for index, part in enumerate(parts)
    ]
