"""How commands print: JSON for scripts, text made safe for a terminal, notes on stderr."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from a40console.model.codec import encode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from a40console.commands.invocation import Invocation
    from a40console.tui.ink import Line

_SEQUENCES = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
_SEQUENCE = re.compile(_SEQUENCES)
_CONTROLS = re.compile(_SEQUENCES + r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_DIRECTIONS = re.compile("[\\u202a-\\u202e\\u2066-\\u2069]")
"""Embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9)."""

WIDTH_WITHOUT_TERMINAL = 120
NARROWEST_TEXT, WIDEST_TEXT = 60, 120

LINE_STYLES = {
    "title": "bold",
    "strong": "bold",
    "label": "bold",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "muted": "dim",
    "rule": "dim",
    "key": "cyan",
}
"""Rich's styles for the roles of a panel's text."""


def print_json(value: Any, *, one_line: bool = False) -> None:
    """Print a model value or plain data as JSON: one line for a script, indented for a person."""
    indent = 2 if stdout_is_terminal() and not one_line else None
    click.echo(json.dumps(encode(value), indent=indent, allow_nan=False))


def note(text: str) -> None:
    """Tell the operator something beside the output proper: one line on stderr."""
    with suppress(OSError):  # beside the output: its loss ends nothing
        click.echo(printable(text), err=True)


def printable(text: str) -> str:
    """The text without escape sequences and control characters but newline and tab.

    Engine logs, model answers and error texts come from outside: they must not steer a terminal.
    What turns the direction of writing is printed as escapes: it could make one name of another.
    """
    return _DIRECTIONS.sub(_escaped, _CONTROLS.sub("", text))


def visible(name: str) -> str:
    """A name from a disk or a file, with escapes for all that could not be seen in it."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escape(char) for char in name)


def legible(text: str) -> str:
    """The text of an error, with escapes for all that could not be seen in the names it tells.

    Lines and tabs stay. Escape sequences are colours of an engine's output, and are taken out.
    """
    kept = _SEQUENCE.sub("", text)
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in kept)


def _escaped(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape(char: str) -> str:
    return ascii(char)[1:-1]


def stdout_is_terminal() -> bool:
    """Whether a person reads the output as it is written."""
    return sys.stdout.isatty()


def stderr_is_terminal() -> bool:
    """Whether notes can be refreshed in place."""
    return sys.stderr.isatty()


def terminal_width() -> int:
    """Columns of the terminal; a fixed width where there is none."""
    if stdout_is_terminal():
        return shutil.get_terminal_size().columns
    return WIDTH_WITHOUT_TERMINAL


def text_width() -> int:
    """Columns for tables and sentences: the terminal's, as far as they can be read in them."""
    return max(NARROWEST_TEXT, min(terminal_width(), WIDEST_TEXT))


def echo_text(invocation: Invocation, text: str) -> None:
    """Print a line made safe for a terminal, in ASCII where it takes no more."""
    click.echo(_drawable(invocation, printable(text)))


def _drawable(invocation: Invocation, text: str) -> str:
    if text.isascii() or not invocation.draws_ascii(is_terminal=stdout_is_terminal()):
        return text
    from a40console.tui.glyphs import to_ascii

    return to_ascii(text)


def print_rich(invocation: Invocation, *renderables: RenderableType) -> None:
    """Print Rich renderables, coloured as the invocation asks."""
    # Through a buffer: Rich's own handling of a closed pipe ends the process with 1.
    click.echo(rendered(invocation, *renderables), nl=False, color=True)


def print_lines(invocation: Invocation, rows: Iterable[Line]) -> None:
    """Print lines as the console's panels write them, coloured as the invocation asks."""
    from rich.text import Text

    print_rich(
        invocation,
        *(
            Text.assemble(*((printable(span.text), LINE_STYLES.get(span.role, "")) for span in row))
            for row in rows
        ),
    )


def rendered(invocation: Invocation, *renderables: RenderableType) -> str:
    """What `print_rich` prints."""
    from rich.console import Console

    is_terminal = stdout_is_terminal()
    system = invocation.color_system(is_terminal=is_terminal)
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=terminal_width(),
        force_terminal=system is not None,
        color_system=system,
        no_color=system is None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for renderable in renderables:
        console.print(renderable)
    lines = (line.rstrip() for line in buffer.getvalue().splitlines())
    return _drawable(invocation, "".join(f"{line}\n" for line in lines))
