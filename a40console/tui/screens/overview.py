"""The overview: who is served, how fast, what limits it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from a40console.tui.panels import measures, panel_notes
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.speed import speed_chart, speed_heading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.slot_table import SlotTable


class OverviewScreen(MonitorScreen):
    """Requests, speed over time, and the instruments that explain it."""

    CSS_PATH = "overview.tcss"
    VIEW = "view.overview"
    AUTO_FOCUS = "#slots"

    def compose_body(self) -> ComposeResult:
        """The table above; the chart and the instruments below, or their compact stand-in."""
        yield SlotTable(id="slots")
        yield Panel(speed_heading, id="speed-heading")
        with Horizontal(id="below"):
            with Vertical(id="left"):
                yield Panel(speed_chart, notes=panel_notes.speed_notes, id="chart")
                yield Panel(
                    measures.latencies, notes=panel_notes.latency_notes, id="latencies"
                )
            with Vertical(id="right"):
                yield Panel(
                    measures.speculation, notes=panel_notes.speculation_notes, id="speculation"
                )
                yield Panel(measures.caches, notes=panel_notes.cache_notes, id="caches")
                yield Panel(measures.machine, notes=panel_notes.machine_notes, id="machine")
        yield Panel(measures.compact, notes=panel_notes.machine_notes, id="compact")
        yield Panel(first_finding, id="finding")
