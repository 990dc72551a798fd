"""Whom a run disturbs: the clients that work with the engine now, and what they lose. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from a40console.model.figures import Missing, number
from a40console.model.instants import unix_s
from a40console.model.own_request import RUN_SESSION
from a40console.model.run import Intrusion, RunPlan, RunSpec
from a40console.model.snapshot import Session, Snapshot

LOSES: frozenset[Intrusion] = frozenset({"evicts", "restarts"})
"""What costs a client that works more than some speed."""

MINUTE_S = 60.0
BETWEEN_TURNS_S = 300.0
"""An answer is read for so long before the next turn comes: the session is still at work."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Who uses the engine at an instant."""

    active: tuple[Session, ...]
    """Sessions with a request under way, whose client runs a tool, or that answered just now."""

    resting: tuple[Session, ...]
    """Sessions that are idle, and whose prefix the engine may still have."""

    requests: int
    """Requests that are held, queued or running, whoever sent them."""

    now_s: float | None = None
    """The instant, Unix time."""

    @property
    def any_active(self) -> bool:
        """Whether anybody works with it."""
        return bool(self.active) or self.requests > 0


def clients_of(snapshot: Snapshot, under_way: int) -> Clients:
    """Who uses the engine.

    Args:
        snapshot: The newest one.
        under_way: How many requests the gateway has given to the engine.
    """
    sessions = () if isinstance(snapshot.sessions, Missing) else snapshot.sessions
    known = [session for session in sessions if not session.session.startswith(RUN_SESSION)]
    requests = snapshot.requests
    counted = sum(number(figure) or 0 for figure in (requests.running, requests.waiting))
    now_s = unix_s(snapshot.at)
    active = tuple(session for session in known if _works(session, now_s))
    return Clients(
        active=active,
        resting=tuple(session for session in known if session not in active),
        requests=max(int(counted) + requests.held, under_way),
        now_s=now_s,
    )


def _works(session: Session, now_s: float | None) -> bool:
    last_s = unix_s(session.last_at)
    recent = last_s is not None and now_s is not None and now_s - last_s < BETWEEN_TURNS_S
    return session.phase != "idle" or recent


def with_clients(plan: RunPlan, spec: RunSpec, clients: Clients) -> RunPlan:
    """The plan with what it does to whom, and refused where somebody would lose by it unasked."""
    told = (*plan.consequences, *_told(plan.intrusion, clients))
    plan = replace(plan, consequences=told)
    refused = (
        not plan.refusal
        and plan.intrusion in LOSES
        and clients.any_active
        and not spec.accept_intrusion
        and spec.when == "now"
    )
    if not refused:
        return plan
    who = _named(clients) or f"{_requests(clients)} works with the engine"
    does = "throws its cached prefix out" if plan.intrusion == "evicts" else "restarts its engine"
    return replace(plan, refusal=f"{who}, and the run {does}")


def _told(intrusion: Intrusion, clients: Clients) -> list[str]:
    if intrusion == "nothing":
        return []
    lines = [_active(intrusion, session) for session in clients.active]
    if not lines and clients.requests:
        lines.append(f"{_requests(clients)} is under way, and its client is not known.")
    if clients.any_active:
        lines.append("Their requests meanwhile are foreign traffic: they make the run invalid.")
    if intrusion in LOSES and clients.resting:
        kept = sum(number(session.context_tokens) or 0 for session in clients.resting)
        many = len(clients.resting)
        lines.append(
            f"{many} idle session{'s' if many > 1 else ''} may lose what is cached of "
            f"{'their' if many > 1 else 'its'} context, {kept:,.0f} tokens."
        )
    return lines


def _active(intrusion: Intrusion, session: Session) -> str:
    context = number(session.context_tokens)
    tokens = "its context" if context is None else f"its context of {context:,.0f} tokens"
    what = {
        "nothing": "is not touched",
        "shares": "shares the engine with the run and is slower meanwhile",
        "evicts": f"loses its cached prefix: the next prompt reads {tokens} again",
        "restarts": f"waits while the engine is started anew, and reads {tokens} again after it",
    }[intrusion]
    does = "may go on" if session.phase == "idle" else "is at work"
    return f"Session {session.session} {does} and {what}."


def _named(clients: Clients) -> str:
    """Who works, the one that is at it first, and why an idle one counts; empty for nobody."""
    sessions = sorted(clients.active, key=lambda session: session.phase == "idle")
    if not sessions:
        return ""
    first, rest = sessions[0], len(sessions) - 1
    does = "works with the engine"
    last_s = unix_s(first.last_at)
    if first.phase == "idle" and last_s is not None and clients.now_s is not None:
        does = f"asked {_ago(clients.now_s - last_s)} ago and may go on"
    more = f", {rest} more at work" if rest else ""
    return f"session {first.session} {does}{more}"


def _ago(seconds: float) -> str:
    return f"{seconds / 60:.0f} m" if seconds >= MINUTE_S else f"{max(0, seconds):.0f} s"


def _requests(clients: Clients) -> str:
    return "1 request" if clients.requests == 1 else f"{clients.requests} requests"
