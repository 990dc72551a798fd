"""The overview: who is served, how fast, what limits it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from a40console.tui.panels import caches, compact, latency, machine, panel_notes, speculation
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.speed import speed_chart, speed_heading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.slot_table import SlotTable


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
