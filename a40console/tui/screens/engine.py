"""The engine: identity, phases, settings asked and in force, its end, its sources; and buttons."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size
from textual.widgets import Button

from a40console.errors import ConsoleError
from a40console.model.command import BY_ID
from a40console.model.control import EngineStart
from a40console.model.engine import EngineState
from a40console.tui.availability import offered, why_not
from a40console.tui.ink import Line
from a40console.tui.keymap import short
from a40console.tui.panels.engine import engine_facts
from a40console.tui.panels.findings import first_finding
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel

_STARTS = 20
_ASK_EVERY_S = 5.0

BUTTONS = (
    "engine.start",
    "engine.stop",
    "engine.restart",
    "engine.switch",
    "engine.speculation",
    "request.test",
    "client.env",
    "engine.clean",
    "profile.fix",
)


class EngineScreen(MonitorScreen):
    """Everything about the one engine, and what can be done with it."""

    CSS_PATH = ["monitor.tcss", "engine.tcss"]
    VIEW = "view.engine"
    AUTO_FOCUS = "#scroll"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "app.focus_previous", "Button before", show=False),
        Binding("right", "app.focus_next", "Next button", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._starts: Sequence[EngineStart] = ()
        self._trouble = ""
        self._facts_panel = Panel(self._facts, dom_id="facts")

    def compose_body(self) -> ComposeResult:
        """The buttons, the facts, the first finding."""
        with Horizontal(id="buttons"):
            for command_id in BUTTONS:
                yield Button(
                    self._caption(command_id),
                    name=command_id,
                    id=command_id.replace(".", "-"),
                    compact=True,
                )
        with VerticalScroll(id="scroll"):
            yield self._facts_panel
        yield Panel(first_finding, dom_id="finding")

    @on(ScreenResume)
    def _begin(self) -> None:
        self._ask()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "starts")

    @work(group="starts", exclusive=True)
    async def _ask(self) -> None:
        """Read the starts that are recorded, again and again: phases follow each other."""
        while True:
            try:
                client = await self.app.feed.client()
                self._starts = await client.starts(_STARTS)
                self._trouble = ""
            except ConsoleError as error:
                self._trouble = error.message
            self._facts_panel.show(self.app.drawn)
            await asyncio.sleep(_ASK_EVERY_S)

    def _facts(self, reading: Reading, size: Size) -> list[Line]:
        return engine_facts(reading, size, self._starts, self._trouble)

    def _caption(self, command_id: str) -> str:
        key = self.app.keys.hint(command_id)
        word = short(BY_ID[command_id])
        return f"{key} {word}" if key else word

    def show(self, reading: Reading) -> None:
        """Draw the facts, and grey the buttons that would do nothing.

        Where all of them do not fit, nobody connects a client to what an engine left behind, or
        to one that a change of its profile must mend first.
        """
        super().show(reading)
        left_over = reading.snapshot.engine.state is EngineState.ORPHANED
        mendable = offered("profile.fix", reading.snapshot)
        self.query_one("#engine-clean").display = left_over
        self.query_one("#profile-fix").display = mendable
        crowded = (left_over or mendable) and self.has_class("-narrow")
        self.query_one("#client-env").display = not crowded
        for button in self.query(Button):
            reason = why_not(BY_ID[button.name or ""], reading)
            if button.disabled is not (reason is not None):
                button.disabled = reason is not None
            help_text = BY_ID[button.name or ""].help
            button.tooltip = f"{help_text} Not now: {reason}." if reason else help_text

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        self.app.action_command(event.button.name or "")
