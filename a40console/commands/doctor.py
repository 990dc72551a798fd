"""`a40console doctor`: what this machine lacks, each with the line that mends it."""

from __future__ import annotations

import os

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import (
    print_json,
    print_lines,
    stdout_is_terminal,
    terminal_width,
)
from a40console.commands.terminal_checks import no_terminal, terminal_checks
from a40console.config import Settings
from a40console.errors import Exit
from a40console.model.check import Check
from a40console.operations.doctor import blocks, examine
from a40console.tui.abilities import as_started


@click.command()
@json_option
@click.pass_obj
def command(invocation: Invocation, *, as_json: bool) -> int:
    """Look at what serving needs here; exit code 6 where something stands in the way."""
    settings, problems = invocation.lenient_settings()
    checks = (
        *examine(invocation.paths, settings, os.environ, problems=problems),
        *_of_terminal(invocation, settings),
    )
    if as_json:
        print_json({"blocked": blocks(checks), "checks": checks})
    else:
        from a40console.tui.ink import Role, Span, line
        from a40console.tui.panels.checks import groups_text, verdict

        told = line(Span(verdict(checks), Role.STRONG))
        print_lines(invocation, [*groups_text(checks, terminal_width()), (), told])
    return Exit.CHECK_FAILED if blocks(checks) else Exit.DONE


def _of_terminal(invocation: Invocation, settings: Settings) -> tuple[Check, ...]:
    if not stdout_is_terminal():
        return (no_terminal(),)
    glyphs = settings.console.glyphs
    named = invocation.ascii is not None or glyphs != "auto"
    return tuple(terminal_checks(as_started(), invocation.abilities(glyphs), named=named))
