"""The engine's phases on stderr while a command waits for it."""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import Self

import click

from a40console.commands.output import note, printable, stderr_is_terminal
from a40console.commands.verdict import mood, phase_line
from a40console.model.figures import Missing
from a40console.model.snapshot import EngineInfo, Snapshot


class Progress:
    """Shows what is under way: one line refreshed on a terminal, else a line a change."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._refreshes = stderr_is_terminal()
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._refreshes and self._last:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
            self._last = ""

    def show(self, snapshot: Snapshot) -> None:
        """Bring what is shown up to date."""
        engine = snapshot.engine
        if self._quiet or mood(engine.state) != "busy":
            return
        if self._refreshes:
            self._refresh(f"{engine.state.value}  {phase_line(engine)}")
        elif (line := _without_times(engine)) != self._last:
            note(line)
            self._last = line

    def _refresh(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"\r\x1b[K{printable(text)[:width]}", err=True, nl=False, color=True)
        self._last = text


def _without_times(engine: EngineInfo) -> str:
    """What changes only when the phase does."""
    state = engine.state.value
    told = isinstance(engine.phase, Missing) or engine.phase == state
    return state if told else f"{state}: {engine.phase}"
