"""Asking the operator before something is done that costs or cannot be undone."""

from __future__ import annotations

import sys

import click

from a40console.commands.output import printable
from a40console.errors import RefusedError, UsageError

yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


def confirm(question: str, *, yes: bool) -> None:
    """Return where the operator agrees.

    Raises:
        RefusedError: If not.
        UsageError: If nobody is here to be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nobody is here to be asked", remedy="Say --yes to do it without asking.")
    if not click.confirm(printable(question), err=True):
        raise RefusedError("Not confirmed: nothing was done")
