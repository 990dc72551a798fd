"""Asking the operator before something is done that costs or cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from a40console.commands.output import printable
from a40console.errors import RefusedError, UsageError

yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


def confirm(question: str, *, yes: bool, lost: Sequence[str] = ()) -> None:
    """Return where the operator agrees.

    Args:
        question: What is asked.
        yes: Whether it is answered already.
        lost: What a yes costs, in sentences.

    Raises:
        RefusedError: If not.
        UsageError: If nobody is here to be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "Nobody is here to be asked",
            evidence=" ".join((question, *lost)),
            remedy="Say --yes to do it without asking.",
        )
    for sentence in lost:
        click.echo(printable(sentence), err=True)
    if not click.confirm(printable(question), err=True):
        raise RefusedError("Not confirmed: nothing was done")
