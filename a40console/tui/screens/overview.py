"""The overview: who is served, how fast, what limits it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.scalar import Scalar

from a40console.tui.panels import caches, compact, latency, machine, panel_notes, speculation
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.speed import speed_chart, speed_heading
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.slot_table import SlotTable

_ROWS_AT_ONCE = 4
"""The chart gives way to the table in steps: one row with each request would be unrest."""


class OverviewScreen(MonitorScreen):
    """Requests, speed over time, and the instruments that explain it."""

    CSS_PATH = ["monitor.tcss", "overview.tcss"]
    VIEW = "view.overview"
    AUTO_FOCUS = "#slots"

    def compose_body(self) -> ComposeResult:
        """The table above; the chart and the instruments below, or their compact stand-in."""
        yield SlotTable(dom_id="slots")
        yield Panel(speed_heading, dom_id="speed-heading")
        with Horizontal(id="below"):
            with Vertical(id="left"):
                yield Panel(speed_chart, notes=panel_notes.speed_notes, dom_id="chart")
                yield Panel(latency.latencies, notes=panel_notes.latency_notes, dom_id="latencies")
            with Vertical(id="right"):
                yield Panel(
                    speculation.speculation,
                    notes=panel_notes.speculation_notes,
                    dom_id="speculation",
                )
                yield Panel(caches.caches, notes=panel_notes.cache_notes, dom_id="caches")
                yield Panel(machine.machine, notes=panel_notes.machine_notes, dom_id="machine")
        yield Panel(compact.compact, notes=panel_notes.machine_notes, dom_id="compact")
        yield Panel(first_finding, dom_id="finding")

    def show(self, reading: Reading) -> None:
        """Draw a reading, and share the rows for it."""
        self._share_rows(reading)
        super().show(reading)

    def on_resize(self) -> None:
        """Share the rows anew once the other panels have theirs."""
        self.call_after_refresh(lambda: self._share_rows(self.app.reading))

    def _share_rows(self, reading: Reading) -> None:
        """Give the chart the rows that the table does not need, beside those that are its own."""
        below = self.query_one("#below")
        own = below.styles.base.height
        others = [child for child in self.children if child.display and child is not below]
        fixed = [child.size.height for child in others if child.id != "slots"]
        if not below.display or own is None or 0 in fixed:
            return
        wanted = -(-self.query_one(SlotTable).rows_wanted(reading) // _ROWS_AT_ONCE)
        rows = max(int(own.value), self.size.height - sum(fixed) - wanted * _ROWS_AT_ONCE)
        if below.styles.height != Scalar.from_number(rows):
            below.styles.height = rows
