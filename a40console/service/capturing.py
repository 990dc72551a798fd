"""`sessions.capture`: the text of one session, written to files from now on, or no more."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.errors import UsageError
from a40console.gateway.captures import Captures
from a40console.model.wording import short_name
from a40console.operations.roles import Recorder
from a40console.service.sessions import Sessions
from a40console.service.tasks import Handler

KIND = "session.capture"


def capture_handler(sessions: Sessions, record: Recorder) -> Handler:
    """What carries the command out; each begin and end is an event."""
    captures = sessions.book.captures
    captures.on_end = lambda session, why: note_end(record, session, why)

    async def run(arguments: Mapping[str, str]) -> dict[str, str]:
        name, on = _asked(arguments.get("session", ""))
        session = sessions.detail(name, 1).session
        if on is captures.is_on(session):
            return {"report": f"The capture of {short_name(session)} was {_word(on)} already."}
        if not on:
            captures.end(session)
            note_end(record, session, "it was switched off")
            return {"report": f"No text of {short_name(session)} is written any more."}
        folder = captures.begin(session)
        said = f"The text of session {short_name(session)} is written to {folder}"
        record(KIND, said, "warn", {"session": session, "folder": str(folder)})
        return {"report": f"{said}, from its next request on."}

    return run


def note_end(record: Recorder, session: str, why: str) -> None:
    """One event for each end."""
    said = f"The text of session {short_name(session)} is written no more: {why}"
    record(KIND, said, "info", {"session": session})


def end_captures(captures: Captures, record: Recorder) -> None:
    """The service stops: nothing is captured by the next one unless it is asked again."""
    for session in captures.sessions:
        note_end(record, session, "the service stops")
    captures.settle()


def _asked(text: str) -> tuple[str, bool]:
    """`7f3a9c52 on`: which session, and whether to begin.

    Raises:
        UsageError: If it is not of that form.
    """
    name, _, word = text.strip().rpartition(" ")
    if not name or word not in ("on", "off"):
        raise UsageError(
            "A capture needs a session and on or off",
            evidence=repr(text),
            remedy="For example: a40console sessions capture 7f3a on",
        )
    return name.strip(), word == "on"


def _word(on: bool) -> str:
    return "on" if on else "off"
