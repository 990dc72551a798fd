"""Dialogs: a text to read, a question to answer, a choice to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Click, Key
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Button

from a40console.tui.ink import Line, Role, Span, line, rule, wrap
from a40console.tui.widgets.lines import Lines

Result = TypeVar("Result")
TextDraw = Callable[[int], Sequence[Line]]
"""A text's lines for a width."""

_WIDTH = 84
_FRAME_COLUMNS = 5
"""Padding on both sides and the scrollbar."""

_FRAME_ROWS = 7
"""Padding, the title, the keys, their blank lines, and one row of the screen below."""

_BUTTON_ROWS = 2
_HOTKEYS = "123456789abcdefghilmoprstuvwxyz"


class Fitted(Lines):
    """Lines drawn for the width that there is, again when it changes."""

    def __init__(self, draw: TextDraw, *, dom_id: str | None = None) -> None:
        super().__init__(dom_id=dom_id)
        self._draw = draw

    def redraw(self) -> None:
        """Draw for the present width."""
        self.paint(self._draw(self.size.width))

    def rows_at(self, width: int) -> int:
        """How many rows the text takes at a width."""
        return len(self._draw(width))

    def on_resize(self) -> None:
        """Draw for the new width."""
        self.redraw()


class Dialog(ModalScreen[Result]):
    """A framed box in the middle of the screen with a title and a line of keys."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]
    KEYS: tuple[tuple[str, str], ...] = (("escape", "close"),)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._answered = False

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with an answer; what comes after it, a second key at once, changes nothing."""
        if self._answered:
            return AwaitComplete()
        self._answered = True
        return super().dismiss(result)

    def compose(self) -> ComposeResult:
        """The frame with the dialog's own body inside."""
        with Vertical(id="dialog"):
            yield Fitted(self._heading, dom_id="heading")
            yield from self.compose_body()
            yield Fitted(self._keys, dom_id="keys")

    def compose_body(self) -> ComposeResult:
        """The dialog's own widgets."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Share the rows anew."""
        self.share_rows()

    def share_rows(self) -> None:
        """Give the text the rows it needs, or those that there are; then it scrolls."""
        if not self.query("#text"):
            return  # closing: what was inside is gone already
        width = self.text_width
        frame = _FRAME_ROWS + _BUTTON_ROWS * len(self.query("#buttons"))
        self.query_one("#dialog").styles.width = width + _FRAME_COLUMNS
        self.query_one("#scroll").styles.height = max(
            1, min(self.query_one("#text", Fitted).rows_at(width), self.size.height - frame)
        )

    @property
    def text_width(self) -> int:
        """Cells that the text has once the frame has its width, the scrollbar beside it."""
        return min(_WIDTH, self.size.width - 4) - _FRAME_COLUMNS

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def _heading(self, width: int) -> list[Line]:
        return [rule(line(Span(self._title, Role.TITLE)), width)]

    def _keys(self, width: int) -> list[Line]:
        parts: list[Span] = []
        for key, word in self.KEYS:
            parts += [Span(key, Role.KEY), Span(f" {word}   ", Role.MUTED)]
        return [line(*parts)]


class TextDialog(Dialog[None]):
    """A text to read, as long as it wants to be."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,q", "close", "Close", show=False)]
    KEYS: tuple[tuple[str, str], ...] = (("↑ ↓", "scroll"), ("escape", "close"))

    def __init__(self, title: str, draw: TextDraw) -> None:
        super().__init__(title)
        self._draw_text = draw

    def compose_body(self) -> ComposeResult:
        """The text, scrolling."""
        with VerticalScroll(id="scroll"):
            yield Fitted(self._draw_text, dom_id="text")


Consequences = Callable[[], Sequence[str]]
"""What follows from a yes, as things stand when it is called."""

_FOLLOW_PERIOD_S = 1.0


class ConfirmDialog(Dialog[bool]):
    """A question with what follows from a yes, as true as it is; nothing happens without one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n", "answer(False)", "No", show=False),
    ]
    KEYS = (("y", "yes"), ("n", "no"), ("escape", "no"))

    def __init__(self, title: str, question: str, consequences: Consequences) -> None:
        super().__init__(title)
        self._question = question
        self._consequences = consequences

    def compose_body(self) -> ComposeResult:
        """The question, what follows, and both answers as buttons."""
        with VerticalScroll(id="scroll"):
            yield Fitted(self._text, dom_id="text")
        with Horizontal(id="buttons"):
            yield Button("Yes", id="yes", compact=True)
            yield Button("No", id="no", compact=True)

    def on_mount(self) -> None:
        """The harmless answer has the focus; what follows is told anew while it is open."""
        self.query_one("#no").focus()
        self.set_interval(_FOLLOW_PERIOD_S, self._follow, name="follow")

    def _follow(self) -> None:
        text = self.query_one("#text", Fitted)
        rows = len(text.lines)
        text.redraw()
        if len(text.lines) != rows:
            self.on_resize()

    def _text(self, width: int) -> list[Line]:
        lines = wrap(self._question, width, Role.STRONG)
        for consequence in self._consequences():
            lines += wrap(consequence, width, Role.MUTED)
        return lines

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A clicked answer."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """An answer by key."""
        self.dismiss(yes)

    def action_close(self) -> None:
        """No answer is a no."""
        self.dismiss(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One entry of a picker."""

    value: str
    title: str
    detail: str = ""
    refused: str = ""
    """Why it cannot be chosen; empty where it can."""


class PickDialog(Dialog[str]):
    """A list from which one key chooses."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]
    KEYS = (("1 2 …", "choose"), ("↑ ↓ enter", "choose"), ("escape", "cancel"))

    def __init__(self, title: str, choices: Sequence[Choice], at: str = "") -> None:
        """With the cursor on the choice of that value, else on the first that can be chosen."""
        super().__init__(title)
        self._choices = choices
        usable = [index for index, choice in enumerate(choices) if not choice.refused]
        wanted = [index for index in usable if choices[index].value == at]
        self._cursor = next(iter(wanted or usable), 0)
        self._rows: list[int] = []
        """The choice that each line belongs to."""

    def compose_body(self) -> ComposeResult:
        """The list, scrolling."""
        with VerticalScroll(id="scroll", can_focus=False):
            yield Fitted(self._text, dom_id="text")

    def on_resize(self) -> None:
        """Scroll to the cursor, which need not be at the top, once the list has its height."""
        super().on_resize()
        self.call_after_refresh(self.action_move, 0)

    def _text(self, width: int) -> list[Line]:
        lines: list[Line] = []
        self._rows = []
        for index, choice in enumerate(self._choices):
            entry = self._entry(index, choice, width)
            lines += entry
            self._rows += [index] * len(entry)
        return lines or [line(Span("– there is nothing to choose from", Role.MUTED))]

    def _entry(self, index: int, choice: Choice, width: int) -> list[Line]:
        here = index == self._cursor
        mark = Span("▸ " if here else "  ", Role.KEY)
        hotkey = Span(f"{_HOTKEYS[index] if index < len(_HOTKEYS) else ' '}  ", Role.KEY)
        usable = Role.STRONG if here else Role.TEXT
        name = Span(choice.title, Role.MUTED if choice.refused else usable)
        lines = [line(mark, hotkey, name)]
        for text, role in ((choice.detail, Role.MUTED), (choice.refused, Role.WARN)):
            words = f"not ready: {text}" if text and role is Role.WARN else text
            lines += [line("     ", part) for part in wrap(words, width - 5, role)]
        return lines

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        if not self.query("#text"):
            return  # closing: what was inside is gone already
        self._cursor = max(0, min(self._cursor + rows, len(self._choices) - 1))
        text = self.query_one("#text", Fitted)
        text.redraw()
        here = [y for y, index in enumerate(self._rows) if index == self._cursor]
        if here:
            region = Region(0, here[0], text.size.width, len(here))
            self.query_one("#scroll").scroll_to_region(region, animate=False)

    def action_choose(self) -> None:
        """Take the choice under the cursor."""
        self._take(self._cursor)

    def on_key(self, event: Key) -> None:
        """A hotkey chooses at once."""
        if event.character and event.character in _HOTKEYS:
            event.stop()
            self._take(_HOTKEYS.index(event.character))

    def on_click(self, event: Click) -> None:
        """A clicked choice."""
        text = self.query_one("#text", Fitted)
        if event.widget is text and 0 <= event.y < len(self._rows):
            self._take(self._rows[event.y])

    def _take(self, index: int) -> None:
        if index >= len(self._choices):
            return
        choice = self._choices[index]
        if choice.refused:
            self.notify(choice.refused, title=choice.title, severity="warning", markup=False)
            return
        self.dismiss(choice.value)
