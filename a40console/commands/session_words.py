"""The sessions in sentences, for the plain mode. Pure."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.session import SessionPhase
from a40console.model.snapshot import Session, Snapshot
from a40console.model.wording import short_name
from a40console.tui import format as fmt
from a40console.tui.format import known, shown

_DOING: dict[SessionPhase, str] = {
    "held": "is held at the gate",
    "queued": "is queued in the engine",
    "prefill": "has its prompt read",
    "decode": "is answered",
    "client": "waits for its client",
    "idle": "is idle",
}


def session_sentences(snapshot: Snapshot) -> list[str]:
    """One sentence a session; or why there is none."""
    if isinstance(snapshot.sessions, Missing):
        return [f"Sessions: {snapshot.sessions.reason}"]
    if not snapshot.sessions:
        return ["No client has sent anything in the last 24 hours"]
    return [_sentence(session) for session in snapshot.sessions]


def _sentence(session: Session) -> str:
    doing = _DOING[session.phase]
    if session.phase == "client":
        doing = f"waits for its client, which runs {known(session.tool, 'a tool')}"
    who = f"Session {short_name(session.session)}, {known(session.client, 'unnamed client')}"
    window = shown(session.window_tokens, fmt.count)
    parts = [
        f"{who}, {doing} since {shown(session.phase_s, fmt.duration)}",
        fmt.plural(session.turns, "turn"),
        f"context {shown(session.context_tokens, fmt.count)} of {window} tokens",
        f"{shown(session.hit_ratio, fmt.percent)} reused",
        f"{shown(session.reread_tokens, fmt.count)} re-read",
        f"{shown(session.sustained_tokens_per_s, fmt.rate)} tokens a second sustained",
        shown(session.cost_usd, fmt.dollars),
        "its text is being captured" if session.capturing else "",
    ]
    return ", ".join(part for part in parts if part)
