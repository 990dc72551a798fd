"""A run before it starts: its settings by keyboard, and below them what it costs and disturbs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click
from textual.geometry import Region
from textual.widgets import Input

from a40console.errors import ConsoleError
from a40console.model.experiment import LONGEST_TEXT, Experiment
from a40console.model.run import RunPlan, RunSpec
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.panels.run_form import about, form_lines
from a40console.tui.panels.run_plan import GAP, plan_lines
from a40console.tui.run_form import RunForm
from a40console.tui.screens.dialog import ConfirmDialog, Dialog, Fitted

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_ASKED_AFTER_S = 0.2
"""A plan is asked for once the settings have stood still for so long."""

_ABOUT_ROWS = 2
_SCROLLBAR = 1
"""Cells beside the rows that the other texts have too."""

_PLAN_SHARE = 0.4
"""Of the rows that settings and plan share, what the plan takes at most."""


class Wanted(NamedTuple):
    """What is to be run."""

    spec: RunSpec
    key: str
    """What an address asks for: on its way to the service, and written nowhere."""


class RunFormDialog(Dialog[Wanted]):
    """Rows to set, each checked at once; nothing starts without `s` and, where others lose, yes."""

    AUTO_FOCUS = ""
    CSS_PATH: ClassVar[list[str]] = ["dialog.tcss", "run_form.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row above", show=False),
        Binding("down,j", "move(1)", "Row below", show=False),
        Binding("left,h", "turn(-1)", "Option before", show=False),
        Binding("right,l", "turn(1)", "Option after", show=False),
        Binding("space", "switch_option", "Turn on or off", show=False),
        Binding("enter", "edit", "Edit or change", show=False),
        Binding("s", "start", "Start", show=False),
    ]
    KEYS = (("↑ ↓", "row"), ("← →", "change"), ("enter", "edit"), ("s", "start"), ("esc", "cancel"))

    if TYPE_CHECKING:
        app: ConsoleApp

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment.title)
        self._form = RunForm(experiment)
        self._plan: RunPlan | None = None
        self._trouble = ""
        self._wanted = asyncio.Event()
        self._planned: RunSpec | None = None
        """What the plan was made for; None while it is asked for."""

    def compose_body(self) -> ComposeResult:
        """The question, the rows, what the chosen one sets, and the plan."""
        yield Fitted(self._question, dom_id="question")
        with VerticalScroll(id="scroll", can_focus=False):
            yield Fitted(self._rows, dom_id="text")
        edit = Input(id="edit", compact=True, max_length=LONGEST_TEXT)
        edit.display = False
        yield edit
        yield Fitted(self._about, dom_id="about")
        yield Fitted(self._plan_text, dom_id="plan")

    def on_mount(self) -> None:
        """Ask what it would cost as it stands."""
        self._ask()
        self._wanted.set()

    @work(group="plan", exclusive=True)
    async def _ask(self) -> None:
        """The plan of the settings as they stand, each time they have changed."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(_ASKED_AFTER_S)
            self._wanted.clear()
            if self._form.problem():
                continue
            spec = self._form.spec()
            try:
                client = await self.app.feed.client()
                self._plan, self._trouble = await client.plan_run(spec), ""
            except ConsoleError as error:
                self._plan, self._trouble = None, error.message
            self._planned = spec
            self._redraw()

    def share_rows(self) -> None:
        """The plan has what it needs, up to a part of them."""
        super().share_rows()
        if not self.query("#text"):
            return
        room = self.size.height - self._fixed_rows()
        text, plan = self.query_one("#text", Fitted), self.query_one("#plan", Fitted)
        # Counted for the width to come: what was drawn may have been for another.
        wanted, told = text.rows_at(self.text_width), plan.rows_at(self.text_width + _SCROLLBAR)
        told = min(told, max(2, round(room * _PLAN_SHARE), room - wanted))
        plan.styles.height = max(1, told)
        self.query_one("#scroll").styles.height = max(1, min(wanted, room - told))
        self.call_after_refresh(self._show_cursor)

    def _fixed_rows(self) -> int:
        """Heading, question, keys, what is said of the row, the blank lines, and one left free."""
        edit = 1 if self.query_one("#edit").display else 0
        blank = 6 if self._is_short else 9
        question = self.query_one("#question", Fitted).rows_at(self.text_width + _SCROLLBAR)
        return blank + _ABOUT_ROWS + edit + question

    @property
    def _is_short(self) -> bool:
        """Whether blank lines give way to rows."""
        return self.has_class("-short") or self.has_class("-tiny")

    def _question(self, width: int) -> list[Line]:
        return wrap(self._form.experiment.question, width, Role.MUTED)[:2]

    def _rows(self, width: int) -> list[Line]:
        return form_lines(self._form, width)[0]

    def _about(self, width: int) -> list[Line]:
        lines = about(self._form.row, width)[:_ABOUT_ROWS]
        return [*lines, *[()] * (_ABOUT_ROWS - len(lines))]

    def _plan_text(self, width: int) -> list[Line]:
        problem = self._form.problem()
        if problem:
            return wrap(f"✖ {problem}", width, Role.BAD)
        if self._trouble:
            return wrap(f"✖ {clean(self._trouble)}", width, Role.BAD)
        if self._plan is None:
            return [line(Span("– what it costs is asked for", Role.MUTED))]
        return plan_lines(self._plan, width)

    def _redraw(self) -> None:
        if not self.query("#text"):
            return  # closing: what was inside is gone already
        for name in ("#text", "#about", "#plan"):
            self.query_one(name, Fitted).redraw()
        self.share_rows()

    def _show_cursor(self) -> None:
        if not self.query("#text"):
            return
        text = self.query_one("#text", Fitted)
        _, at = form_lines(self._form, text.size.width)
        self.query_one("#scroll").scroll_to_region(Region(0, at, 1, 2), animate=False)

    def _changed(self) -> None:
        self._planned = None
        self._wanted.set()
        self._redraw()

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._form.move(rows)
        self._redraw()

    def action_turn(self, steps: int) -> None:
        """The next option."""
        self._form.turn(steps)
        self._changed()

    def action_switch_option(self) -> None:
        """Turn one of several on or off."""
        self._form.toggle()
        self._changed()

    def action_edit(self) -> None:
        """Edit a text; change what has options."""
        row = self._form.row
        if row.kind != "text":
            self.action_switch_option()
            return
        edit = self.query_one("#edit", Input)
        edit.password = row.secret
        edit.value = "" if row.secret else row.value
        edit.display = True
        edit.cursor_position = len(edit.value)
        self.set_focus(edit)  # at once: what is typed next is for it
        self._redraw()

    @on(Input.Submitted, "#edit")
    def _take(self, event: Input.Submitted) -> None:
        event.stop()
        self._form.put(self._form.row.key, clean(event.value))
        self._close_edit()
        self._changed()

    def _close_edit(self) -> None:
        self.query_one("#edit").display = False
        self.set_focus(None)

    def action_close(self) -> None:
        """First out of the line that is edited, then out of the form."""
        if self.query_one("#edit").display:
            self._close_edit()
            self._redraw()
        else:
            self.dismiss(None)

    def on_click(self, event: Click) -> None:
        """A clicked row gets the cursor; a click on it changes it."""
        text = self.query_one("#text", Fitted)
        if event.widget is not text:
            return
        starts = self._starts(text.size.width)
        index = max(at for at, start in enumerate(starts) if start <= event.y)
        if index == self._form.cursor:
            self.action_edit()
        else:
            self._form.move(index - self._form.cursor)
            self._redraw()

    def _starts(self, width: int) -> list[int]:
        """In which line each row begins."""
        here, starts = self._form.cursor, []
        for index in range(len(self._form.rows())):
            self._form.cursor = index
            starts.append(form_lines(self._form, width)[1])
        self._form.cursor = here
        return starts

    @work(group="start", exclusive=True)
    async def action_start(self) -> None:
        """Answer with what is set, unless it cannot start; ask where clients would lose by it."""
        problem = self._form.problem()
        if problem or self._trouble:
            self._say(problem or self._trouble)
            return
        spec = self._form.spec()
        if self._plan is None or self._planned != spec:
            self._say("What it costs is not known yet: a moment.")
        elif self._plan.refusal:
            self._say(self._plan.refusal)
        elif await self._accepted(self._plan):
            self.dismiss(Wanted(spec, self._form.key))

    async def _accepted(self, plan: RunPlan) -> bool:
        if plan.intrusion not in {"evicts", "restarts"} and not plan.consequences:
            return True
        question = f"Start {self._form.experiment.name}, {self._form.preset}?"
        dialog = ConfirmDialog(self._form.experiment.title, question, lambda: _consequences(plan))
        answer: bool | None = await self.app.push_screen_wait(dialog)
        return bool(answer)

    def _say(self, text: str) -> None:
        self.notify(text, title="Not started", severity="warning", markup=False)


def _consequences(plan: RunPlan) -> list[str]:
    """What the question is about: time and dollars, then whom it disturbs."""
    takes = "".join(span.text for span in plan_lines(plan, 200)[0])
    return [f"It {takes.replace(GAP, ', ')}.", *plan.consequences]
