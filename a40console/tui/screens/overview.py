"""The overview: who is served, how fast, what limits it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.css.scalar import Scalar
from textual.geometry import Size

from a40console.tui.ink import Line
from a40console.tui.instant import at_instant
from a40console.tui.panels import caches, compact, frame, latency, machine, panel_notes, speculation
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.gpus import gpus
from a40console.tui.panels.recent_events import newest_events
from a40console.tui.panels.speed import speed_chart, speed_heading
from a40console.tui.panels.trends import chosen, trend_chart, trends
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Draw, Panel
from a40console.tui.widgets.slot_table import SlotTable

_ROWS_AT_ONCE = 4
"""The chart gives way to the table in steps: one row with each request would be unrest."""

_CHART_SHARE = 0.48
"""Of the rows that table and chart share, what the chart keeps however many requests ended."""

_TABLE_ROWS = 6
_CHART_ROWS = 13
_TALL_CHART_ROWS = 17
_CURVE_ROWS = 6
_ENGINE = ("engine-heading", "speculation", "caches", "latencies", "queue")
_CHARTS = {
    "prefill": ("prefill_tokens_per_s",),
    "held": ("kv_held_ratio",),
    "load": ("gpu_utilization_ratio", "cpu_used_vcpu"),
    "strain": ("gpu_power_w", "throttled_ms_per_s"),
}
"""What the charts below the instruments draw: of a machine without a GPU its CPU."""

_MACHINE = ("machine-heading", "machine", "gpus")


def _heading(title: str) -> Draw:
    def draw(reading: Reading, size: Size) -> Sequence[Line]:
        return [frame.heading(title, "", size.width)]

    return draw


class OverviewScreen(MonitorScreen):
    """Requests, speed over time, and the instruments that explain it."""

    CSS_PATH = ["monitor.tcss", "overview.tcss"]
    VIEW = "view.overview"
    FOLLOWS_TIME = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (184, "-wide")]
    """Three columns only where the chart keeps its width beside them."""

    AUTO_FOCUS = "#slots"

    def compose_body(self) -> ComposeResult:
        """The table above; the chart and the instruments below, or their compact stand-in."""
        notes = panel_notes
        yield SlotTable(dom_id="slots")
        with Horizontal(id="below"):
            with Vertical(id="left"):
                yield Panel(speed_heading, dom_id="speed-heading")
                yield Panel(speed_chart, notes=notes.speed_notes, dom_id="chart")
                yield Panel(self._trends, notes=notes.trend_notes, dom_id="trends")
            with Container(id="side"):
                with Vertical(id="engine"):
                    yield Panel(_heading("Engine"), dom_id="engine-heading")
                    yield Panel(
                        self._speculation, notes=notes.speculation_notes, dom_id="speculation"
                    )
                    yield Panel(caches.caches, notes=notes.cache_notes, dom_id="caches")
                    yield Panel(latency.latencies, notes=notes.latency_notes, dom_id="latencies")
                    yield Panel(latency.queue, notes=notes.queue_notes, dom_id="queue")
                    yield Panel(trend_chart(*_CHARTS["prefill"]), dom_id="prefill")
                    yield Panel(trend_chart(*_CHARTS["held"]), dom_id="held")
                with Vertical(id="box"):
                    yield Panel(_heading("Machine"), dom_id="machine-heading")
                    yield Panel(machine.machine, notes=notes.machine_notes, dom_id="machine")
                    yield Panel(gpus, notes=notes.gpu_notes, dom_id="gpus")
                    yield Panel(newest_events, dom_id="events")
                    yield Panel(trend_chart(*_CHARTS["load"]), dom_id="load")
                    yield Panel(trend_chart(*_CHARTS["strain"]), dom_id="strain")
        yield Panel(compact.compact, notes=notes.machine_notes, dom_id="compact")
        yield Panel(first_finding, dom_id="finding")

    def on_mount(self) -> None:
        """Find the panels that show the instant that is looked at: the others show now."""
        self._body = [*self.query("#slots, #below Panel, #compact").results(Panel)]
        super().on_mount()

    def show(self, reading: Reading) -> None:
        """Draw a reading, and share the rows for it."""
        then = at_instant(reading)
        self.make_room_for_clock(reading)
        self._share_rows(then)
        for panel in self._panels:
            if panel.display:
                panel.show(then if panel in self._body else reading)

    def on_resize(self) -> None:
        """Draw for the new layout, then share the rows once the panels have theirs."""
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        self.show(self.app.drawn)
        self.call_after_refresh(lambda: self._share_rows(at_instant(self.app.drawn)))

    def _share_rows(self, reading: Reading) -> None:
        """Give the chart the rows that the table does not need, beside those that are its own."""
        below = self.query_one("#below")
        others = [child for child in self.children if child.display and child is not below]
        fixed = [child.size.height for child in others if child.id != "slots"]
        if not below.display or 0 in fixed:
            return
        rows = self._rows_below(reading, self.size.height - sum(fixed))
        if below.styles.height != Scalar.from_number(rows):
            below.styles.height = rows

    def _speculation(self, reading: Reading, size: Size) -> list[Line]:
        """With rows of its own for the acceptance curve where there are many."""
        roomy = self.has_class("-wide") and self.has_class("-tall")
        rows = _CURVE_ROWS if roomy else 0
        return speculation.speculation(reading, Size(size.width, rows))

    def _trends(self, reading: Reading, size: Size) -> list[Line]:
        """The figures over time that no chart beside them draws already."""
        panels = [(self.query_one(f"#{name}", Panel), names) for name, names in _CHARTS.items()]
        drawn = {chosen(reading, panel.size, *names) for panel, names in panels if panel.display}
        return trends(reading, size, drawn)

    def _rows_below(self, reading: Reading, room: int) -> int:
        """The chart's and the instruments' part of the rows that they share with the table."""
        table = self.query_one(SlotTable)
        live, wanted = table.rows_wanted(reading)
        chart = _TALL_CHART_ROWS if self.has_class("-tall") else _CHART_ROWS
        least = max(chart, self._instrument_rows())
        own = max(least, round(_CHART_SHARE * room))
        rows = max(own, room - wanted)
        if room - rows < live:
            rows = max(least, room - -(-live // _ROWS_AT_ONCE) * _ROWS_AT_ONCE)
        return max(0, min(rows, room - min(wanted, _TABLE_ROWS)))

    def _instrument_rows(self) -> int:
        """Rows that the instruments take: one column below the other, or side by side."""
        if not self.query_one("#side").display:
            return 0
        columns = [
            sum(len(panel.lines) for panel in self._shown(names)) for names in (_ENGINE, _MACHINE)
        ]
        return max(columns) if self.has_class("-wide") else sum(columns)

    def _shown(self, names: Sequence[str]) -> list[Panel]:
        panels = [self.query_one(f"#{name}", Panel) for name in names]
        return [panel for panel in panels if panel.display]
