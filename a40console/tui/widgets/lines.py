"""Widgets of plain lines: one cached strip a row, and only what changed is repainted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from a40console.tui.ink import EMPTY, Line, Role, Span, faded, width_of
from a40console.tui.reading import Reading
from a40console.tui.repaint import changed_spans
from a40console.tui.theming import ink_styles

Draw = Callable[[Reading, Size], Sequence[Line]]
"""A panel's content for a reading and the room it has."""

Notes = Callable[[Reading], str]
"""What the status line says of a panel that has the focus."""


class Lines(Widget):
    """Lines of spans, painted row by row.

    Own code rather than DataTable or Static: those render every cell through Rich on each change,
    three quarters of the CPU budget of a live screen.
    """

    ALLOW_SELECT = False

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._lines: list[Line] = []
        self._strips: dict[int, Strip] = {}
        self._styles: dict[Role, Style] = {}

    @property
    def lines(self) -> Sequence[Line]:
        """What is painted."""
        return self._lines

    @property
    def plain(self) -> str:
        """The text alone."""
        return "\n".join("".join(span.text for span in row) for row in self._lines)

    def paint(self, lines: Sequence[Line]) -> None:
        """Show these lines; rows that stayed the same cost nothing."""
        new, old = list(lines), self._lines
        if new == old:
            return
        self._lines = new
        changed = [
            y
            for y in range(max(len(new), len(old)))
            if (new[y] if y < len(new) else None) != (old[y] if y < len(old) else None)
        ]
        for y in changed:
            self._strips.pop(y, None)
        if len(new) != len(old) and self.styles.auto_dimensions:
            self.refresh(layout=True)
        else:
            self.refresh(*self._changed_regions(old, changed))

    def _changed_regions(self, old: Sequence[Line], rows: Sequence[int]) -> Iterator[Region]:
        for y in rows:
            before, after = (lines[y] if y < len(lines) else EMPTY for lines in (old, self._lines))
            for first, last in changed_spans(before, after, self.size.width):
                yield Region(first, y, last - first, 1)

    def render_line(self, y: int) -> Strip:
        """The strip of one row, from the cache while neither text nor theme changed."""
        strip = self._strips.get(y)
        width = self.size.width
        if strip is None or strip.cell_length != width:
            strip = self._strips[y] = self._strip(y, width)
        return strip

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as the widest line."""
        return max(map(width_of, self._lines), default=0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row a line."""
        return len(self._lines)

    def notify_style_update(self) -> None:
        """Forget what was painted in the colours of another theme."""
        super().notify_style_update()
        self._styles.clear()
        self._strips.clear()

    def _strip(self, y: int, width: int) -> Strip:
        spans = self._lines[y] if y < len(self._lines) else ()
        segments = [Segment(span.text, self._style(span)) for span in spans]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _style(self, span: Span) -> Style:
        style = self._styles.get(span.role)
        if style is None:
            style = self.rich_style + ink_styles(self.app.theme_variables)[span.role]
            self._styles[span.role] = style
        return style + Style(meta={"@click": span.action}) if span.action else style


class Panel(Lines):
    """Lines drawn from a reading by a pure function, again whenever the size changes."""

    def __init__(
        self,
        draw: Draw,
        *,
        notes: Notes | None = None,
        dom_id: str | None = None,
        fades: bool = True,
    ) -> None:
        super().__init__(dom_id=dom_id)
        self._draw = draw
        self._notes = notes
        self._fades = fades
        self._reading: Reading | None = None
        self.can_focus = notes is not None

    @property
    def reading(self) -> Reading | None:
        """What it was last shown."""
        return self._reading

    def show(self, reading: Reading) -> None:
        """Draw the reading; greyed as a whole where it is stale."""
        self._reading = reading
        if self.size.width:
            self.paint(self.compose_lines(reading))

    def compose_lines(self, reading: Reading) -> list[Line]:
        """The lines for a reading at the present size."""
        lines = list(self._draw(reading, self.size))
        return faded(lines) if self._fades and reading.stale else lines

    def notes(self, reading: Reading) -> str:
        """What the status line says while this panel has the focus."""
        return self._notes(reading) if self._notes else ""

    def on_resize(self) -> None:
        """Draw again for the new room."""
        if self._reading is not None:
            self.paint(self.compose_lines(self._reading))
