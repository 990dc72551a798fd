"""What a typed line means: a command of the table, or a word of the plain mode. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from a40console.model.command import COMMANDS, Command
from a40console.tui.keymap import Keymap, short

OWN: Mapping[str, str] = {
    "status": "What runs, how fast, what limits it, what it costs.",
    "findings": "What is wrong, with what to do.",
    "say": "How much is told unasked: say quiet, say normal, say all.",
    "again": "The last announcement once more.",
    "help": "These words.",
    "quit": "Leave; service and engine keep running.",
}
"""Words of this mode alone."""

_SAME = {
    "view.overview": "status",
    "help.show": "help",
    "console.quit": "quit",
}
"""Commands of the table that a word of our own does here."""


_ARGUMENTS = {
    "": "",
    "fix": "",  # it is shown and asked
    "changes": "",  # so are they
    "profile": "a profile",
    "mode": "on or off",
    "text": "a text",
    "engine": "yes or no, whether the engine stops too",
    "request": "a slot's number",
    "level": "1 or 2, how deep",
    "model": "a model's name",
    "session": "the beginning of a session's id, and on or off",
}
"""What a command is told, by the name of its argument."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a line asks for."""

    own: str = ""
    """A word of this mode."""

    command: Command | None = None
    argument: str = ""
    """The rest of the line."""

    problem: str = ""
    """Why nothing was understood."""


def understand(line: str, keys: Keymap) -> Meaning:
    """The meaning of a line; the longest name that it begins with counts.

    A key counts in its own case (`s` is not `S`), words in any. The beginning of a name is enough
    where it can mean only one.
    """
    text = " ".join(line.split())
    first, _, rest = text.partition(" ")
    for command in COMMANDS:
        if len(first) == 1 and first == keys.hint(command.id):
            return _of(command, rest)
    low = text.lower()
    for name, meant in _names():
        if low == name or low.startswith(f"{name} "):
            argument = text[len(name) :].strip()
            return _of(meant, argument) if meant else Meaning(own=name, argument=argument)
    begun = {id(meant): (name, meant) for name, meant in _names() if name.startswith(low)}
    if low and len(begun) == 1:
        [(name, meant)] = begun.values()
        return _of(meant, "") if meant else Meaning(own=name)
    near = get_close_matches(first.lower(), [name for name, _ in _names()], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return Meaning(problem=f"I do not know {first!r}.{hint} Type help for the words.")


def _of(command: Command, argument: str) -> Meaning:
    if command.id in _SAME:
        return Meaning(own=_SAME[command.id], argument=argument)
    return Meaning(command=command, argument=argument)


def _names() -> list[tuple[str, Command | None]]:
    """Every name with what it means, the longest first; of two alike the first of the table's."""
    found: dict[str, Command | None] = dict.fromkeys(OWN)
    for command in COMMANDS:
        for name in names_of(command):
            found.setdefault(name, command)
    return sorted(found.items(), key=lambda item: -len(item[0]))


def names_of(command: Command) -> Iterable[str]:
    """The words for a command: its short name, its title, its id, the verb of its id."""
    verb = command.id.partition(".")[2].replace("-", " ")
    return (short(command).lower(), command.title.lower(), command.id, verb)


def manual(commands: Iterable[Command], keys: Keymap) -> list[str]:
    """The help text: one line a word, no column to lose."""
    lines = ["Type a word and press enter. Nothing moves by itself; changes are told as they come."]
    lines += [f"{word}: {text}" for word, text in OWN.items()]
    for command in commands:
        if command.id in _SAME:
            continue
        key = keys.hint(command.id)
        word = next(iter(names_of(command)))
        told = _ARGUMENTS[command.argument]
        argument = f" with {told}" if told else ""
        lines.append(f"{word}{f', or {key}' if key else ''}{argument}: {command.help}")
    return lines
