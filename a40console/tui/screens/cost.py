"""What it costs: the rate, the price of a million tokens, and the last day by the hour."""

from __future__ import annotations

import asyncio

from textual import on, work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size

from a40console.errors import ConsoleError
from a40console.model.control import SpendingReport
from a40console.tui.ink import Line
from a40console.tui.panels import cost as panel
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel

_ASK_EVERY_S = 30.0
_AFTER_TROUBLE_S = 3.0


class CostScreen(MonitorScreen):
    """Asks for the spending only while it is in front."""

    CSS_PATH = ["monitor.tcss", "cost.tcss"]
    VIEW = "view.cost"
    AUTO_FOCUS = "#scroll"

    def __init__(self) -> None:
        super().__init__()
        self._report: SpendingReport | None = None
        self._trouble = ""

    def compose_body(self) -> ComposeResult:
        """The figures, and below them the hours."""
        yield Panel(self._facts, dom_id="facts")
        yield Panel(
            lambda reading, size: panel.hours_heading(self._report, size.width),
            dom_id="hours-heading",
        )
        with VerticalScroll(id="scroll"):
            yield Panel(self._hours, dom_id="hours")

    @on(ScreenResume)
    def _begin(self) -> None:
        self._ask()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "spending")

    @work(group="spending", exclusive=True)
    async def _ask(self) -> None:
        while True:
            try:
                client = await self.app.feed.client()
                self._report = await client.spending()
                self._trouble = ""
            except ConsoleError as error:
                self._trouble = error.message
            self.show(self.app.reading)
            await asyncio.sleep(_AFTER_TROUBLE_S if self._trouble else _ASK_EVERY_S)

    def _facts(self, reading: Reading, size: Size) -> list[Line]:
        return panel.cost_facts(reading.snapshot, self._report, size.width)

    def _hours(self, reading: Reading, size: Size) -> list[Line]:
        return panel.hours(self._report, self._trouble, size.width, reading.snapshot.at)
