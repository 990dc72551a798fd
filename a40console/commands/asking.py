"""Asking the operator before something is done that costs or cannot be undone."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
    with _interruptible():
        agreed = click.confirm(printable(question), err=True)
    if not agreed:
        raise RefusedError("Not confirmed: nothing was done")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the question: an event loop would only note it, and go on waiting."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
