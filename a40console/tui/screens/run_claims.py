"""Hypotheses: what is claimed, what runs said of it, and the keys that add and conclude one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from a40console.errors import ConsoleError
from a40console.model.calls import CALLABLE
from a40console.model.run import ENDED, Hypothesis, HypothesisState, Run
from a40console.tui.ink import Line, Role, Span, clean, line, wrap
from a40console.tui.panels.moments import second_of
from a40console.tui.screens.dialog import Choice, Fitted, PickDialog
from a40console.tui.screens.note import NoteDialog

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_NEW = "new"
_STATES: dict[HypothesisState, tuple[Role, str]] = {
    "confirmed": (Role.GOOD, "What was measured bears it out."),
    "refuted": (Role.BAD, "What was measured speaks against it."),
    "retracted": (Role.MUTED, "It was a mistake to claim it, or to conclude it."),
    "open": (Role.KEY, "Nothing measured has decided it."),
}
_FOLLOW_PERIOD_S = 1.0
_STATE = 9
_LEFT = 5
"""Cells before an entry: the cursor, its key, and blanks."""

_NONE = "No hypothesis is written down. n writes one, before it is measured."
_NEW_SAID = "A claim that runs are to confirm or refute. It travels with every run that decides it."


class ClaimsDialog(PickDialog):
    """Every claim with its state, why, and the runs that did it; its key concludes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("n", "new", "New", show=False)]
    KEYS = (("n", "new"), ("1 2 … enter", "conclude"), ("escape", "close"))

    app: ConsoleApp

    def __init__(self, title: str, claims: Sequence[Hypothesis]) -> None:
        super().__init__(title, _choices(claims))
        self._claims = {str(each.id): each for each in claims}

    def on_mount(self) -> None:
        """Others write claims down meanwhile."""
        self.set_interval(_FOLLOW_PERIOD_S, self._follow, name="follow")

    @work(group="claims", exclusive=True)
    async def _follow(self) -> None:
        try:
            told = await (await self.app.feed.client()).hypotheses()
        except ConsoleError:
            return  # what was told stands; the screen behind says that nothing is told
        claims = {str(each.id): each for each in told}
        if claims == self._claims or not self.is_attached:
            return
        here = self._choices[self._cursor].value if self._choices else ""
        self._claims, self._choices = claims, _choices(told)
        self._cursor = list(claims).index(here) if here in claims else 0
        self.query_one("#text", Fitted).redraw()
        self.on_resize()

    def claim(self, wanted: str) -> Hypothesis:
        """The claim of an answer, as it was told last."""
        return self._claims[wanted]

    def action_new(self) -> None:
        """Write another one down."""
        self.dismiss(_NEW)

    def _text(self, width: int) -> list[Line]:
        return super()._text(width) if self._claims else wrap(_NONE, width, Role.MUTED)

    def _entry(self, index: int, choice: Choice, width: int) -> list[Line]:
        claim = self._claims[choice.value]
        begin = _LEFT + _STATE + 2
        first, *rest = super()._entry(index, Choice(value=choice.value, title=""), width)
        role, _ = _STATES[claim.state]
        named = Role.STRONG if index == self._cursor else Role.TEXT
        texts = wrap(claim.text, width - begin, named) or [()]
        lines = [line(first, Span(f"{claim.state:<{_STATE}}  ", role), texts[0]), *rest]
        lines += [line(" " * begin, row) for row in texts[1:]]
        for said in _said(claim):
            lines += [line(" " * begin, row) for row in wrap(said, width - begin, Role.MUTED)]
        return lines


def _choices(claims: Sequence[Hypothesis]) -> list[Choice]:
    return [Choice(value=str(each.id), title=each.text) for each in claims]


def _said(claim: Hypothesis) -> list[str]:
    """Since when it is in its state and why, and the runs that did it."""
    why = f": {claim.why}" if claim.why else ""
    by = [f"by {', '.join(claim.runs)}"] if claim.runs else []
    return [clean(part) for part in (f"since {second_of(claim.at)}{why}", *by)]


async def claims(app: ConsoleApp, run: Run | None) -> None:
    """List the claims; write one down, or conclude one with the run under the cursor.

    Raises:
        ConsoleError: If the service does not tell them.
    """
    client = await app.feed.client()
    told = await client.hypotheses()
    listed = ClaimsDialog("Hypotheses", told)
    wanted = await app.push_screen_wait(listed)
    if wanted == _NEW:
        await _add(app)
    elif wanted is not None:
        await _conclude(app, listed.claim(wanted), run)


async def _add(app: ConsoleApp) -> None:
    from a40console.tui.actions import carry_out

    command = CALLABLE["hypotheses.add"]
    text = await app.push_screen_wait(NoteDialog(command.title, _NEW_SAID, "the claim"))
    if text:
        await carry_out(app, command, {"text": text}, named=text)


async def _conclude(app: ConsoleApp, claim: Hypothesis, run: Run | None) -> None:
    """Ask what it is now, and why; the run under the cursor did it, where it has ended."""
    from a40console.tui.actions import carry_out

    command = CALLABLE["hypotheses.conclude"]
    by = run.id if run is not None and run.state in ENDED else ""
    choices = [
        Choice(value=state, title=state.capitalize(), detail=said)
        for state, (_, said) in _STATES.items()
        if state != claim.state
    ]
    state = await app.push_screen_wait(PickDialog(f"Hypothesis {claim.id} is", choices))
    if state is None:
        return
    did = f"The run under the cursor did it: {by}." if by else "No run is named with it."
    said = f"{claim.text.rstrip('.')}: {state}. {did}"
    why = await app.push_screen_wait(NoteDialog(command.title, said, "why, in a sentence"))
    if why is None:
        return
    arguments = {"id": str(claim.id), "state": state, "runs": by, "why": why}
    named = f"hypothesis {claim.id} is {state}{f', by {by}' if by else ''}"
    await carry_out(app, command, arguments, named=named)
