"""The abort of one request: of the row under the cursor, named before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.model.command import Command
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Slot
from a40console.tui import format as fmt
from a40console.tui.losses import lost_with
from a40console.tui.screens.dialog import Choice, ConfirmDialog, PickDialog
from a40console.tui.widgets.slot_table import SlotTable

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


async def abort_request(app: ConsoleApp, command: Command) -> None:
    """Ask about the row under the cursor, or which one; abort it where the operator agrees."""
    from a40console.tui.actions import carry_out

    slot = await _chosen(app, command)
    if slot is None:
        return
    if await app.push_screen_wait(
        ConfirmDialog(command.title, command.confirm, lambda: lost_with(slot))
    ):
        named = f"slot {slot.slot}, {slot.request_id}"
        await carry_out(app, command, {"request": slot.request_id}, named=named)


async def _chosen(app: ConsoleApp, command: Command) -> Slot | None:
    """The request under the cursor, else one of a list; None where none was chosen."""
    tables = app.screen_stack[0].query(SlotTable)
    row = tables.first().row_under_cursor if tables else None
    return row if isinstance(row, Slot) else await _picked(app, command)


async def _picked(app: ConsoleApp, command: Command) -> Slot | None:
    """From a list, where no running request is under a cursor."""
    slots = app.reading.snapshot.slots
    if isinstance(slots, Missing):
        app.say(command.title, f"Not now: {slots.reason}.", "warning")
        return None
    choices = [_choice(slot) for slot in slots]
    request_id = await app.push_screen_wait(PickDialog(command.title, choices))
    return next((slot for slot in slots if slot.request_id == request_id), None)


def _choice(slot: Slot) -> Choice:
    generated = number(slot.generated_tokens)
    told = "" if generated is None else f" · {fmt.count(generated)} generated"
    client = fmt.known(slot.client, "unknown client")
    return Choice(
        value=slot.request_id,
        title=f"Slot {slot.slot}  {slot.request_id}",
        detail=f"{client} · {slot.phase}{told}",
    )
