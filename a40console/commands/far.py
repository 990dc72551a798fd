"""`a40console --ssh`: the console of this machine for the service of another."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from a40console.errors import NoServiceError, UsageError
from a40console.link.connection import SSH_FAILED
from a40console.link.opening import MayStart, open_link
from a40console.link.place import LinkPlace
from a40console.link.target import parse_target
from a40console.paths import Paths

_HERE = frozenset({"env", "links"})
"""Commands whose answer is about this machine, or which are the same from here."""

PULL = ("runs", "pull")
"""The one verb that brings something here."""

_NOT_THERE = {
    "serve": "It would end with this connection. In the background: "
    "a40console --ssh {target} endpoint --start",
    "demo": "It is SIMULATED and needs no other machine: a40console demo",
}
"""Commands that are of no use at the end of a link, and what to do instead."""


_SIGNALLED = 128
"""As shells report a process that a signal ended."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Where a call goes on: with these paths here, or it has run over there."""

    paths: Paths
    code: int | None = None


def lead(
    paths: Paths,
    target: str,
    *,
    there: str | None,
    words: Sequence[str],
    options: Sequence[str] = (),
) -> Lead:
    """Open the link, and run there what is to run there.

    Args:
        paths: This machine's.
        target: The other machine, as the operator wrote it.
        there: The console's command on it; None for the one that was said last.
        words: The command with its arguments; none for the console itself.
        options: What was said before the command of how to draw, for the command over there.

    Raises:
        ConsoleError: If the link cannot be had.
    """
    console = tuple(shlex.split(_known(paths, target) if there is None else there))
    if not console:
        raise UsageError("--there names no command")
    if words and words[0] == "links":
        return Lead(paths)
    here = not words or words[0] in _HERE or tuple(words[:2]) == PULL
    if words and words[0] in _NOT_THERE:
        raise UsageError(
            f"{words[0]} does not run over a link",
            remedy=_NOT_THERE[words[0]].format(target=parse_target(target)),
        )
    link = open_link(
        paths,
        parse_target(target),
        console=console,
        environment=os.environ,
        may_start=_may_start() if here else None,
    )
    if here:
        return Lead(link.paths(paths))
    words, told = off_the_line(words)
    terminal = told is None and sys.stdin.isatty() and sys.stdout.isatty()
    call = link.there([*options, *words], terminal=terminal)
    code = subprocess.run(call, input=told, check=False).returncode
    if code == SSH_FAILED:
        raise NoServiceError(
            f"The link to {link.target} broke while {words[0]} ran",
            evidence="what it does over there may go on",
            remedy="See how the link stands: a40console links; and then: "
            f"a40console --ssh {link.target} status",
        )
    return Lead(paths, code if code >= 0 else _SIGNALLED - code)


def _known(paths: Paths, target: str) -> str:
    """The command by which the console was found over there, or its plain name."""
    record = LinkPlace(paths, parse_target(target)).record()
    return (record.console if record else "") or "a40console"


def off_the_line(words: Sequence[str]) -> tuple[Sequence[str], bytes | None]:
    """A call over there without the question that is asked, and the question for its input.

    A command line can be read by everybody on a machine; `ask -` reads its standard input.

    Raises:
        UsageError: If the question is in several words, which would be read as well.
    """
    if not words or words[0] != "ask":
        return words, None
    from a40console.commands.ask import command

    def read(arguments: Sequence[str]) -> dict[str, object]:
        ctx = click.Context(command, info_name="ask", resilient_parsing=True)
        if command.parse_args(ctx, list(arguments)):
            raise UsageError("ask takes one text", remedy='In quotes: a40console ask "…"')
        return ctx.params

    asked = read(words[1:])
    text = asked.get("text")
    if not isinstance(text, str) or text == "-":
        return words, None
    for place, word in enumerate(words[1:], 1):
        without = [*words[:place], "-", *words[place + 1 :]]
        if word == text and read(without[1:]) == {**asked, "text": "-"}:
            return without, text.encode("utf-8", "surrogateescape")
    return words, None


def _may_start() -> MayStart:
    """Asks at the terminal; without one the answer is no, since nobody was asked."""
    if sys.stdin.isatty():
        return lambda question: click.confirm(question, default=True, err=True)
    return lambda question: False
