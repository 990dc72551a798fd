"""The engine's output: bounded, plain text, searchable, and following its end until scrolled."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from a40console.tui.ink import Role, clean
from a40console.tui.theming import ink_styles

MAX_LINES = 5000
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_WARN = re.compile(r"\bWARN(ING)?\b")
_BAD = re.compile(r"\b(ERROR|CRITICAL|FATAL|Traceback|Error:)")


def plain(text: str) -> str:
    """One line of output without escape sequences; of a progress bar, its last state."""
    text = _ESCAPES.sub("", text).rstrip("\r")
    return clean(text.rsplit("\r", 1)[-1].expandtabs(4))


class LogView(ScrollView, can_focus=True):
    """Lines of output, painted by the line API; the oldest are dropped beyond the limit."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("left", "scroll_left", "Left", show=False),
        Binding("right", "scroll_right", "Right", show=False),
        Binding("home,g", "scroll_home", "First line", show=False),
        Binding("end,G", "scroll_end", "Last line", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
    ]

    class StateChanged(Message):
        """Following, searching or the number of lines changed."""

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self.following = True
        self.needle = ""
        self.current_match: int | None = None
        self._log: deque[str] = deque(maxlen=MAX_LINES)
        self._partial = ""
        self._dropped = 0
        self._widest = 0
        self._styles: dict[Role, Style] = {}

    @property
    def line_count(self) -> int:
        """Lines that are held."""
        return len(self._log)

    @property
    def held(self) -> Iterable[str]:
        """The lines that are held, oldest first."""
        return tuple(self._log)

    @property
    def dropped(self) -> int:
        """Lines that were dropped to stay within the limit."""
        return self._dropped

    def feed(self, text: str) -> None:
        """Append output; its last line may be continued by the next piece."""
        pieces = (self._partial + text).split("\n")
        self._partial = pieces.pop()
        before = len(self._log)
        for piece in pieces:
            self._append(plain(piece))
        overflow = before + len(pieces) - len(self._log)
        self._dropped += overflow
        self._settle(overflow)

    def note(self, text: str) -> None:
        """Append a line of our own, such as a rotation of the file."""
        self._partial = ""
        overflow = int(len(self._log) == MAX_LINES)
        self._append(f"── {text} ──")
        self._dropped += overflow
        self._settle(overflow)

    def _append(self, text: str) -> None:
        self._log.append(text)
        self._widest = max(self._widest, cell_len(text))

    def _settle(self, overflow: int) -> None:
        """Take in new lines: keep following, or keep what is being read in place."""
        self.virtual_size = Size(self._widest, len(self._log))
        if self.current_match is not None and overflow:
            self.current_match = max(0, self.current_match - overflow)
        if self.following:
            self._go_to_end()
        elif overflow:
            self.scroll_to(
                y=max(0, self.scroll_y - overflow), animate=False, immediate=True, force=True
            )
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling up ends the following, reaching the end begins it again."""
        super().watch_scroll_y(old_value, new_value)
        following = new_value >= self.max_scroll_y
        if following is not self.following and self.is_mounted:
            self.following = following
            self.post_message(self.StateChanged())

    def _go_to_end(self) -> None:
        # Forced: before the next layout the widget does not know yet that it can scroll.
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def on_resize(self) -> None:
        """Stay at the end when the window changes."""
        if self.following:
            self._go_to_end()

    def follow(self, follow: bool) -> None:
        """Follow the end, or stay here."""
        self.following = follow
        if follow:
            self._go_to_end()
        self.post_message(self.StateChanged())

    def search(self, needle: str) -> int:
        """Highlight a text, whatever its case; answers how many lines hold it."""
        self.needle = needle.casefold()
        self.current_match = None
        self.refresh()
        return sum(self.needle in text.casefold() for text in self._log) if needle else 0

    def go_to_match(self, step: int) -> bool:
        """Scroll to the next match below (1) or above (-1); answers whether there is one."""
        if not self.needle or not self._log:
            return False
        texts = list(self._log)
        start = self.current_match
        if start is None:
            bottom = round(self.scroll_y) + self.size.height
            start = bottom if step < 0 else round(self.scroll_y) - 1
        for offset in range(1, len(texts) + 1):
            index = (start + step * offset) % len(texts)
            if self.needle in texts[index].casefold():
                self._show_match(index)
                return True
        return False

    def _show_match(self, index: int) -> None:
        self.current_match = index
        middle = max(0, index - self.size.height // 2)
        self.scroll_to(y=middle, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.StateChanged())

    def render_line(self, y: int) -> Strip:
        """One visible line, cut to the window."""
        x, top = self.scroll_offset
        index = top + y
        width = self.size.width
        base = self.rich_style
        if index >= len(self._log):
            return Strip.blank(width, base)
        text = self._log[index]
        strip = Strip(self._segments(text, index == self.current_match))
        return strip.crop_extend(x, x + width, base)

    def _segments(self, text: str, current: bool) -> list[Segment]:
        style = self._style(self._role(text))
        if not self.needle:
            return [Segment(text, style)]
        match_style = self._style(Role.KEY) + Style(reverse=True, underline=current)
        folded = text.casefold()
        if len(folded) != len(text):  # case folding moved the places: mark the whole line
            return [Segment(text, match_style if self.needle in folded else style)]
        segments: list[Segment] = []
        place = 0
        while (found := folded.find(self.needle, place)) >= 0:
            segments.append(Segment(text[place:found], style))
            place = found + len(self.needle)
            segments.append(Segment(text[found:place], match_style))
        return [*segments, Segment(text[place:], style)]

    @staticmethod
    def _role(text: str) -> Role:
        if _BAD.search(text):
            return Role.BAD
        if _WARN.search(text):
            return Role.WARN
        return Role.MUTED if text.startswith("──") else Role.TEXT

    def _style(self, role: Role) -> Style:
        if role not in self._styles:
            self._styles[role] = self.rich_style + ink_styles(self.app.theme_variables)[role]
        return self._styles[role]

    def notify_style_update(self) -> None:
        """Forget the colours of another theme."""
        super().notify_style_update()
        self._styles.clear()
