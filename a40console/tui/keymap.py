"""Keys of the commands: the table's own, moved by the operator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from textual.binding import Binding
from textual.keys import _character_to_key, format_key

from a40console.model.command import BY_ID, COMMANDS, Command

SHORT: Mapping[str, str] = {
    "engine.start": "start",
    "engine.stop": "stop",
    "engine.restart": "restart",
    "engine.switch": "model",
    "engine.apply": "apply",
    "engine.speculation": "spec",
    "engine.clean": "clean up",
    "profile.fix": "fix profile",
    "request.test": "test",
    "request.abort": "abort",
    "cache.reset": "reset cache",
    "engine.drain": "drain",
    "admission.pause": "pause admission",
    "admission.resume": "resume admission",
    "engine.sleep": "sleep",
    "engine.wake": "wake",
    "engine.probe": "probe",
    "router.load": "load model",
    "router.unload": "unload model",
    "limit.why": "why slow",
    "client.env": "connect",
    "view.sessions": "sess",
    "sessions.capture": "capture",
    "view.pause": "pause",
    "slot.show": "request",
    "time.back": "back",
    "time.forward": "forward",
    "time.now": "now",
    "time.shorter": "shorter",
    "time.longer": "longer",
    "digest.show": "unread",
    "note.add": "note",
    "experiment.compaction": "compaction",
    "experiment.choose": "bench",
    "alarms.mute": "mute",
    "help.show": "help",
    "console.quit": "leave",
    "service.stop": "stop service",
}
"""What the hint line and the buttons call a command; the title where there is none."""

RESERVED = frozenset({"ctrl+q", "ctrl+c", "ctrl+p", "tab", "shift+tab", "up", "down"})
"""Keys that the console itself needs."""


@dataclass(frozen=True, slots=True)
class Keymap:
    """Which key runs which command."""

    keys: Mapping[str, str]
    """Command id to key, as Textual names it; without an entry there is no key."""

    moved: Mapping[str, str]
    """The part that the operator set."""

    problems: tuple[str, ...]
    """What is wrong with the operator's part, one line each."""

    def hint(self, command_id: str) -> str:
        """The key as it is printed: `?`, `f5`; empty for none."""
        key = self.keys.get(command_id, "")
        return printed(key) if key else ""


def printed(key: str) -> str:
    """A key as people call it: `question_mark` → `?`, `left` → `←`, `enter` as it is."""
    return key if key == "enter" else format_key(key)


def short(command: Command) -> str:
    """The command's name where room is scarce."""
    return SHORT.get(command.id, command.title)


def action(command: Command) -> str:
    """The Textual action that performs the command."""
    return f"app.command('{command.id}')"


def bindings() -> list[Binding]:
    """The default bindings of the table."""
    return [_binding(command, command.key) for command in COMMANDS if command.key]


def _binding(command: Command, key: str) -> Binding:
    return Binding(
        key, action(command), command.title, tooltip=command.help, id=command.id, show=False
    )


def resolve(wanted: Mapping[str, str]) -> Keymap:
    """The table's keys with the operator's on top; on a clash the operator's key wins."""
    problems: list[str] = []
    moved: dict[str, str] = {}
    owner: dict[str, str] = {}
    for command_id, key in wanted.items():
        name = _key_name(key)
        if command_id not in BY_ID:
            problems.append(_unknown(command_id))
        elif not name or name in RESERVED:
            problems.append(f"{command_id}: the key {key!r} is not free")
        elif name in owner:
            problems.append(f"{command_id}: the key {key!r} is already given to {owner[name]}")
        else:
            moved[command_id] = name
            owner[name] = command_id
    keys = dict(moved)
    for command in COMMANDS:
        if command.id in moved or not command.key:
            continue
        if command.key in owner:
            problems.append(f"{command.id} lost the key {format_key(command.key)!r} to your keys")
        else:
            keys[command.id] = command.key
    return Keymap(keys=keys, moved=moved, problems=tuple(problems))


def _unknown(command_id: str) -> str:
    near = get_close_matches(command_id, BY_ID, n=1)
    return f"{command_id} is no command" + (f"; did you mean {near[0]}?" if near else "")


def _key_name(key: str) -> str:
    key = key.strip()
    return _character_to_key(key) if len(key) == 1 else key.lower()
