"""What the doctor says of the terminal: by what the console itself goes by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from a40console.model.check import Check, CheckState
from a40console.tui.abilities import Abilities, cannot_draw, examine

GROUP = "terminal"
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_COLOURS = {
    "truecolor": "true colour",
    "256": "256 colours",
    "16": "16 colours",
    "mono": "no colours",
}


def terminal_checks(
    environment: Mapping[str, str], abilities: Abilities, *, named: bool
) -> Iterator[Check]:
    """What is drawn with, and what keeps it from more.

    Args:
        environment: As this process was started.
        abilities: What the console draws with here.
        named: Whether the operator named the characters, so that nothing was found out.
    """
    yield _terminal(environment, abilities)
    yield _characters(environment, abilities, named=named)
    yield _tmux(environment)


def no_terminal() -> Check:
    """The one row where nobody's terminal is at the other end."""
    return _check("terminal", "unchecked", "no terminal is at the other end")


def _check(name: str, state: CheckState, text: str, mend: str = "") -> Check:
    return Check(group=GROUP, name=name, state=state, text=text, mend=mend)


def _terminal(environment: Mapping[str, str], abilities: Abilities) -> Check:
    if why := cannot_draw(environment):
        return _check("terminal", "warn", why, "export TERM=xterm-256color")
    colours = _COLOURS[abilities.depth]
    if environment.get("NO_COLOR"):
        colours += ", NO_COLOR is set"
    return _check("terminal", "ok", f"{environment['TERM']}, {colours}")


def _characters(environment: Mapping[str, str], abilities: Abilities, *, named: bool) -> Check:
    if named or not abilities.ascii:
        return _check("characters", "ok", "ASCII" if abilities.ascii else "Unicode")
    without = {name: value for name, value in environment.items() if name not in _LOCALE}
    locale = next((name for name in _LOCALE if environment.get(name)), "")
    if not locale or examine(without).ascii:
        return _check("characters", "ok", "ASCII, which is all that this terminal takes")
    text = f"ASCII, because {locale} is {environment[locale]}"
    return _check("characters", "warn", text, "export LC_ALL=C.UTF-8, or --unicode")


def _tmux(environment: Mapping[str, str]) -> Check:
    if environment.get("TMUX"):
        return _check("tmux", "ok", "this is one")
    found = shutil.which("tmux", path=environment.get("PATH", os.defpath))
    if found:
        return _check("tmux", "ok", found)
    if environment.get("SSH_CONNECTION"):
        text = "not installed: a lost link closes the console, but neither service nor engine"
        return _check("tmux", "warn", text, f"{_installer()} tmux")
    return _check("tmux", "ok", "not installed, and not needed here")


def _installer() -> str:
    """How this machine installs a program."""
    tools = {"apt-get": "apt-get install", "dnf": "dnf install", "apk": "apk add"}
    return next((words for tool, words in tools.items() if shutil.which(tool)), "Install")
