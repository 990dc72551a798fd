"""A transfer on stderr while it goes on: one line refreshed on a terminal, else a line a while."""

from __future__ import annotations

import shutil
import time
from types import TracebackType
from typing import Self

import click

from a40console.commands.output import note, printable, stderr_is_terminal
from a40console.engines.transfer import Transfer
from a40console.model.figures import Figure, Missing, is_estimate, number
from a40console.model.wording import duration, size

LINE_EVERY_S = 10.0
"""Without a terminal: for a log, not for an eye."""


class TransferLine:
    """Shows how far something is."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._refreshes = stderr_is_terminal()
        self._shown = False
        self._last_key = ""
        self._last_at_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self, label: str, transfer: Transfer | None = None, *, measures: str = "") -> None:
        """Bring the line up to date; without a terminal only a new label, or one after a while.

        Args:
            label: What is at hand.
            transfer: How far it is.
            measures: What its bytes are, where they are not those that come.
        """
        if self._quiet:
            return
        text = label if transfer is None else f"{label}  {in_words(transfer, measures)}"
        if self._refreshes:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{printable(text)[:width]}", err=True, nl=False, color=True)
            self._shown = True
            return
        now_s = time.monotonic()
        if label != self._last_key or now_s - self._last_at_s >= LINE_EVERY_S:
            note(text)
            self._last_key, self._last_at_s = label, now_s

    def clear(self) -> None:
        """Take the line away, for other output."""
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
            self._shown = False


def in_words(transfer: Transfer, measures: str = "") -> str:
    """`412 MB of 2.2 GB, 31.0 MB/s, ≈57 s left`; `412 MB of ≈2.2 GB unpacked, …`."""
    parts = [f"{_amount(transfer)} {measures}".rstrip()]
    if (rate := number(transfer.bytes_per_s)) is not None:
        parts.append(f"{rate / 1e6:.1f} MB/s")
        parts += _left(transfer)
    return ", ".join(parts)


def _amount(transfer: Transfer) -> str:
    done, whole = size(transfer.done_bytes), number(transfer.total_bytes)
    if whole is None:
        return done
    return f"{done} of {_mark(transfer.total_bytes)}{size(whole)}"


def _left(transfer: Transfer) -> list[str]:
    left = transfer.eta_s
    if isinstance(transfer.total_bytes, Missing):
        return []
    if isinstance(left, Missing):
        return [left.reason]
    return [f"{_mark(left)}{duration(number(left) or 0.0)} left"]


def _mark(figure: Figure) -> str:
    return "≈" if is_estimate(figure) else ""
