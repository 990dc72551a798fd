"""The change of a profile that mends its failed start: shown as a diff, asked, made, started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from a40console.model.command import BY_ID, Command
from a40console.model.engine import DOWN
from a40console.model.fix import FixOffer
from a40console.tui.ink import Line, Role, Span, clean, line, width_of, wrap
from a40console.tui.losses import at_stake
from a40console.tui.screens.dialog import ConfirmDialog

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_ROLES = {"-": Role.BAD, "+": Role.GOOD}


class FixDialog(ConfirmDialog):
    """What failed, the lines that would change, and the question."""

    def __init__(self, title: str, offer: FixOffer) -> None:
        super().__init__(title, f"Change the profile {offer.profile} so?", tuple)
        self._offer = offer

    def _text(self, width: int) -> list[Line]:
        offer = self._offer
        lines = wrap(offer.cause, width, Role.BAD)
        lines += wrap(offer.evidence, width, Role.MUTED)
        lines += [line(""), *changed_lines(offer.diff, width), line("")]
        lines += wrap(offer.why, width)
        made = "A file of your own is made, which stands for the shipped profile"
        place = f"{made if offer.new_file else 'Written in place'}: {offer.file}"
        lines += [*wrap(place, width, Role.MUTED), line("")]
        return lines + wrap(self._question, width, Role.STRONG)


def changed_lines(diff: Sequence[str], width: int) -> list[Line]:
    """The lines of a diff, those that go and those that come in their colours."""
    lines: list[Line] = []
    for text in map(clean, diff):
        role = _ROLES.get(text[:1], Role.TEXT)
        fits = width_of(row := line(Span(text, role))) <= width
        lines += [row] if fits else wrap(text, width, role, indent=2)
    return lines


async def fix_profile(app: ConsoleApp, command: Command) -> None:
    """Show the change that is offered; make it where the operator agrees; offer to start it."""
    from a40console.tui.actions import carry_out

    client = await app.feed.client()
    offer = await client.fix()
    if not await app.push_screen_wait(FixDialog(command.title, offer)):
        return
    if not await carry_out(app, command, {"fix": offer.id}, named=offer.change):
        return
    app.asking = True
    state = app.reading.snapshot.engine.state
    begin = BY_ID["engine.start" if state in DOWN else "engine.switch"]
    dialog = ConfirmDialog(
        begin.title,
        f"Start {offer.profile} now?",
        lambda: [offer.change, *at_stake(app.reading.snapshot)],
    )
    if await app.push_screen_wait(dialog):
        await carry_out(app, begin, {"profile": offer.profile})
