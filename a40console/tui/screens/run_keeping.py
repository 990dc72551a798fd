"""What is done to a run that is there: cancel, note, export, mark invalid; each asked first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.calls import CALLABLE
from a40console.model.run import ENDED, Run
from a40console.tui.clipboard import save
from a40console.tui.screens.dialog import Choice, ConfirmDialog, PickDialog
from a40console.tui.screens.note import NoteDialog
from a40console.tui.screens.run_claims import claims

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

KEEPING = (
    ("x", "cancel", "Cancel"),
    ("n", "note", "Note"),
    ("f", "export", "Export"),
    ("i", "invalid", "Invalid"),
)
"""Key, what it does, and its word."""

_LONGEST_EVIDENCE = 160
"""In a toast, which must not cover the screen."""

_FORMS = (
    Choice(value="html", title="HTML", detail="One page with plots, for a browser."),
    Choice(value="md", title="Markdown", detail="Tables and verdict, for a text."),
    Choice(value="csv", title="CSV", detail="Every request, for a spreadsheet."),
    Choice(value="json", title="JSON", detail="Everything; a40console runs import reads it."),
)


CLAIMS = ("h", "claims", "Hypotheses")
"""The same, of what needs no run."""


async def keep(app: ConsoleApp, what: str, run: Run | None) -> None:
    """Do one of `KEEPING` to a run, or `CLAIMS`; every failure ends as a toast."""
    do = {"cancel": _cancel, "note": _note, "export": _export, "invalid": _invalid}
    try:
        if what == CLAIMS[1]:
            await claims(app, run)
        elif run is not None:
            await do[what](app, run)
    except ConsoleError as error:
        trouble = error.trouble
        parts = (trouble.message, trouble.evidence[:_LONGEST_EVIDENCE], trouble.remedy)
        title = next(word for _, name, word in (*KEEPING, CLAIMS) if name == what)
        app.say(title, "\n".join(part for part in parts if part), "error")
    finally:
        app.asking = False


async def _tell(app: ConsoleApp, command_id: str, arguments: dict[str, str]) -> None:
    """Let the service do it, then list anew."""
    from a40console.tui.actions import carry_out
    from a40console.tui.screens.runs import RunsScreen

    done = await carry_out(app, CALLABLE[command_id], arguments, named=arguments["id"])
    front = app.screen_stack[0]
    if done and isinstance(front, RunsScreen):
        front.ask_again()


async def _cancel(app: ConsoleApp, run: Run) -> None:
    command = CALLABLE["run.cancel"]
    if run.state in ENDED:
        app.say(command.title, "Not now: it has ended.", "warning")
        return
    kept = (
        "It has measured nothing yet."
        if run.state == "queued"
        else ("What it has measured till then is kept, as a partial run.")
    )
    question = f"Cancel {run.spec.experiment}, {run.spec.preset}?"
    if await app.push_screen_wait(ConfirmDialog(command.title, question, lambda: [run.id, kept])):
        await _tell(app, command.id, {"id": run.id})


async def _note(app: ConsoleApp, run: Run) -> None:
    command = CALLABLE["runs.note"]
    said = f"It is kept with {run.id}, and stands in its reports."
    text = await app.push_screen_wait(NoteDialog(command.title, said))
    if text:
        await _tell(app, command.id, {"id": run.id, "text": text})


async def _invalid(app: ConsoleApp, run: Run) -> None:
    command = CALLABLE["runs.invalidate"]
    if run.state not in ENDED:
        app.say(command.title, "Not now: it has not ended.", "warning")
        return
    said = f"Nothing of {run.id} is believed any more, and no comparison takes it. Why?"
    reason = await app.push_screen_wait(NoteDialog(command.title, said, "the reason"))
    if reason:
        await _tell(app, command.id, {"id": run.id, "reason": reason})


async def _export(app: ConsoleApp, run: Run) -> None:
    """Write a report into a file of this user's, on the console's machine."""
    if run.state not in ENDED:
        app.say("Export", "Not now: it has not ended.", "warning")
        return
    form = await app.push_screen_wait(PickDialog("Export", _FORMS))
    if form is None:
        return
    client = await app.feed.client()
    text = await client.run_report(run.id, form)
    app.say("Export", save(app, text, f"exports/{run.id}.{form}"))
