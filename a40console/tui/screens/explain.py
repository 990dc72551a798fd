"""Why slow: the ranking of causes, live while it is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.geometry import Size

from a40console.errors import ConsoleError
from a40console.model.explanation import Cause, Explanation
from a40console.model.snapshot import Snapshot
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.panels import why
from a40console.tui.panels.findings import all_findings, ranked
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

MODE = "why"
_BACK = "overview"


def toggle(app: ConsoleApp) -> None:
    """Show the explanation, or go back to the view it was asked from."""
    screen = app.screen_stack[0]
    if isinstance(screen, ExplainScreen):
        app.switch_mode(screen.came_from)
        return
    came_from = app.current_mode
    app.switch_mode(MODE)
    front = app.screen_stack[0]
    if isinstance(front, ExplainScreen):
        front.came_from = came_from


class ExplainScreen(MonitorScreen):
    """Asks the service why, again with each snapshot; two columns where there is room."""

    CSS_PATH = ["monitor.tcss", "explain.tcss"]
    VIEW = "limit.why"
    AUTO_FOCUS = "#scroll"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self.came_from = _BACK
        self._explanation: Explanation | None = None
        self._trouble = ""

    def compose_body(self) -> ComposeResult:
        """The causes and findings, and beside or below them the verdicts on the others."""
        with VerticalScroll(id="scroll"), Horizontal(id="columns"):
            yield Panel(self._causes, dom_id="causes")
            yield Panel(self._verdicts, dom_id="verdicts")

    def show(self, reading: Reading) -> None:
        """Draw what is known, and ask for the reading's own explanation."""
        super().show(reading)
        newest = reading.snapshot.seq == self.app.reading.snapshot.seq
        if newest and self._seq != reading.snapshot.seq and reading.link.state == "live":
            self._ask()

    def action_back(self) -> None:
        """Back to where it was asked."""
        self.app.switch_mode(self.came_from)

    @property
    def _seq(self) -> int:
        return self._explanation.seq if self._explanation else -1

    @work(group="why", exclusive=True)
    async def _ask(self) -> None:
        try:
            client = await self.app.feed.client()
            self._explanation = await client.why()
            self._trouble = ""
        except ConsoleError as error:
            self._trouble = error.message
        for panel in (self.query_one("#causes", Panel), self.query_one("#verdicts", Panel)):
            panel.show(self.app.drawn)

    def _causes(self, reading: Reading, size: Size) -> list[Line]:
        hint = reading.keymap.hint
        width = size.width - 1
        explanation = self._explanation or _of_snapshot(reading.snapshot)
        trouble = wrap(f"✖ {clean(self._trouble)}", width, Role.BAD) if self._trouble else []
        lines = [*trouble, *why.causes(explanation, width, hint)]
        return [*lines, *self._findings(reading, width)] if self._is_wide else lines

    def _verdicts(self, reading: Reading, size: Size) -> list[Line]:
        width = size.width - 1
        lines = [line(Span(f"  – {_unexplained(reading)}", Role.MUTED))]
        if self._explanation is not None:
            lines = why.verdicts(self._explanation, width)
        return lines if self._is_wide else [*lines, *self._findings(reading, width)]

    @property
    def _is_wide(self) -> bool:
        """Whether there are two columns: the findings stand below the first, else at the end."""
        return self.has_class("-wide")

    def _findings(self, reading: Reading, width: int) -> list[Line]:
        return [(), *all_findings(ranked(reading.snapshot), width, reading.keymap.hint)]


def _unexplained(reading: Reading) -> str:
    """Why there is no explanation."""
    if reading.paused_s is None:
        return "the service has not explained it yet"
    key = reading.keymap.hint("view.pause")
    return "not asked while the picture is paused" + (f"; {key} resumes" if key else "")


def _of_snapshot(snapshot: Snapshot) -> Explanation:
    """What the snapshot alone tells, until the service has answered."""
    limit = snapshot.limit
    known = Cause(cause=limit.cause, strength="cause", text=limit.text, evidence=limit.evidence)
    return Explanation(
        seq=snapshot.seq,
        at=snapshot.at,
        simulated=snapshot.simulated,
        causes=(known,),
        ruled_out=(),
        unjudged=(),
    )
