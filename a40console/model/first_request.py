"""Whether a client that was just set up has come, and what is seen of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from a40console.model.figures import Missing, number
from a40console.model.session import SessionDetail
from a40console.model.snapshot import Snapshot


@dataclass(slots=True)
class Arrivals:
    """Tells which session sends, since it was first asked."""

    _requests: dict[str, int] | None = field(default=None)

    def look(self, snapshot: Snapshot) -> str | None:
        """The session that has sent a request since the first look; None where none has."""
        if isinstance(snapshot.sessions, Missing):
            return None
        counts = {session.session: session.requests for session in snapshot.sessions}
        before = self._requests
        if before is None:
            self._requests = counts
            return None
        return next((name for name, count in counts.items() if count > before.get(name, 0)), None)


def sentences(detail: SessionDetail) -> tuple[str, ...]:
    """What is seen of a session's requests, for whoever has just connected it."""
    client = "a client" if isinstance(detail.client, Missing) else detail.client
    model = "" if isinstance(detail.model, Missing) else f", asks for {detail.model}"
    said = [f"Seen: {client}, session {detail.session}{model}."]
    prompt, generated = number(detail.prompt_tokens), number(detail.generated_tokens)
    newest = detail.timeline[-1] if detail.timeline else None
    live = newest is not None and newest.live
    so_far = " so far" if live else ""
    if prompt is not None:
        answer = "" if generated is None else f", {generated:,.0f} tokens answered{so_far}"
        said.append(f"{prompt:,.0f} tokens in{answer}.")
    elif live:
        said.append("Its request is under way.")
    status = None if newest is None else number(newest.status)
    if status is not None and status >= 400:
        said.append(f"It was refused with HTTP status {status:.0f}.")
    true, assumed = number(detail.window.true_tokens), number(detail.window.assumed_tokens)
    if true is not None and assumed is not None and assumed > true:
        said.append(
            f"It takes the window for {assumed:,.0f} tokens, and there are {true:,.0f}: "
            f"{detail.window.evidence}. Start it with these lines."
        )
    if detail.safeguards:
        said.append("It is in auto mode: start it with --permission-mode acceptEdits.")
    return tuple(said)
