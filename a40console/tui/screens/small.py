"""What is shown where nothing else fits: how small the terminal is, how large it must be."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen

from a40console.tui.ink import Line, Role, wrap
from a40console.tui.widgets.lines import Lines

MIN_COLUMNS = 40
MIN_ROWS = 10


def too_small(size: Size) -> bool:
    """Whether the screens would show nothing of use at this size."""
    return size.width < MIN_COLUMNS or size.height < MIN_ROWS


class TooSmallScreen(ModalScreen[None]):
    """Stands before everything else while the terminal is too small, and goes by itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Leave", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The words, as large as the terminal."""
        yield Lines(dom_id="words")

    def on_mount(self) -> None:
        """Say it."""
        self._say()

    def on_resize(self) -> None:
        """Say it again for the new size, or make way for what was here before."""
        self.settle()

    def on_screen_resume(self) -> None:
        """A dialog that had come before it is gone."""
        self.settle()

    def settle(self) -> None:
        """Go where there is room again; only the screen in front can."""
        if too_small(self.app.size):
            self._say()
        elif self.is_current:
            self.dismiss()

    def _say(self) -> None:
        size = self.app.size
        self.query_one("#words", Lines).paint(words(size))


def words(size: Size) -> list[Line]:
    """The notice for a size, cut to its rows; its beginning says the most."""
    lines = wrap("terminal too small", size.width, Role.STRONG)
    lines += wrap(f"is {size.width}×{size.height}", size.width)
    lines += wrap(f"needs {MIN_COLUMNS}×{MIN_ROWS}", size.width, Role.MUTED)
    lines += wrap("q leaves", size.width, Role.MUTED)
    return lines[: max(1, size.height)]
