"""Causes outside the engine's work: it does not serve, it has none, its client has the turn."""

from __future__ import annotations

from datetime import datetime

from a40console.advisor.judgement import Cleared, Judgement, Spoken, unclear
from a40console.advisor.readings import Readings, shown
from a40console.advisor.wording import brief, duration, gigabytes, percent, short_name, threshold
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing, combine, number
from a40console.model.snapshot import RecentRequest, Session

TOOL_REASONS = frozenset({"tool_use", "tool_calls"})
"""How an answer ends that asks the client to run a tool."""

TURN_REMEMBERED_S = 600.0
"""So long after such an answer the client is believed to be at it."""

BUSY_RATIO = 0.90
LAZY_RATIO = 0.50
"""Shares of the last minute with a request in the engine: from the one on it has no pauses that
matter, up to the other its clients set the pace."""

_COMMANDS = {
    EngineState.ABSENT: ("engine.start", "Start an engine."),
    EngineState.STOPPED: ("engine.start", "Start the engine again."),
    EngineState.FAILED: ("engine.start", "Mend the cause, then start the engine again."),
    EngineState.ORPHANED: ("engine.clean", "End what it left; nothing can start before."),
    EngineState.HUNG: ("engine.restart", "Restart the engine; open requests are lost."),
}


def not_serving(readings: Readings) -> Judgement:
    """Whatever the engine does instead of serving."""
    if readings.serving:
        return None
    engine = readings.snapshot.engine
    if engine.state is EngineState.SERVING:
        return Spoken(text="the engine is paused", evidence=("engine reports: paused",))
    command, remedy = _COMMANDS.get(engine.state, (None, ""))
    text = engine.state.sentence
    if engine.state is EngineState.FAILED and not isinstance(engine.exit, Missing):
        text, evidence = f"{text}: {engine.exit.cause}", (f"ended {engine.exit.at}",)
        return Spoken(text=text, evidence=evidence, remedy=remedy, command=command)
    if not isinstance(engine.phase, Missing) and engine.phase != "ready":
        text += f": {engine.phase}"
    since = "" if engine.state is EngineState.ABSENT else shown(engine.phase_s, duration)
    told = [f"state {engine.state.value}", f"for {since}" if since else "", _left(engine.eta_s)]
    return Spoken(text=text, evidence=tuple(filter(None, told)), remedy=remedy, command=command)


def download(readings: Readings) -> Judgement:
    """The model's files are still on their way."""
    engine = readings.snapshot.engine
    downloads = engine.state is EngineState.STARTING and engine.phase == "download"
    if engine.state is not EngineState.FETCHING and not downloads:
        return None
    since = shown(engine.phase_s, duration)
    free = shown(readings.snapshot.host.disk_free_bytes, gigabytes)
    told = [
        f"for {since}" if since else "",
        _left(engine.eta_s),
        f"{free} of disk free" if free else "",
    ]
    return Spoken(text="the model is still downloaded", evidence=tuple(filter(None, told)))


def _left(eta_s: Figure) -> str:
    """What is left of a phase: always an estimate."""
    seconds = number(eta_s)
    return "" if seconds is None else f"{shown(Estimated(seconds), duration)} left"


def client(readings: Readings) -> Judgement:
    """The engine waits while its clients think, or run a tool."""
    if readings.is_idle:
        return _turn_of_sessions(readings) or _turn_after_tool_call(readings)
    busy = number(readings.trends.busy_ratio)
    if busy is None:
        return unclear(readings.trends.busy_ratio, otherwise="")
    window = f"({duration(readings.trends.long_s)})"
    share = readings.trends.busy_ratio
    told = f"a request in the engine {shown(share, percent)} of the time {window}"
    if busy >= BUSY_RATIO:
        return Cleared(f"{told}, from {threshold(BUSY_RATIO)} on the clients do not hold it up")
    pauses = combine(lambda share: 1 - share, share)
    return Spoken(
        text=f"its clients leave the engine without work {shown(pauses, percent)} of the time",
        evidence=(told,),
        strength="candidate" if busy <= LAZY_RATIO else "weak",
        remedy="Nothing in the engine: more sessions at once would use the pauses.",
    )


def idle(readings: Readings) -> Judgement:
    """No request is anywhere."""
    if not readings.is_idle:
        return None
    evidence = ["0 running", "0 waiting", "0 held"]
    if readings.generation_tokens_per_s:
        block = readings.snapshot.throughput
        rate = shown(block.generation_tokens_per_s, brief)
        evidence.append(f"{rate} tok/s over the last {duration(block.window_s)}")
    text = "no request: the engine waits for its clients"
    return Spoken(text=text, evidence=tuple(evidence))


def _turn_of_sessions(readings: Readings) -> Judgement:
    """As the sessions say it."""
    sessions = readings.snapshot.sessions
    at_turn = () if isinstance(sessions, Missing) else sessions
    theirs = [session for session in at_turn if session.phase == "client"]
    if not theirs:
        return None
    # The one that began last is the one whose answer is due next.
    latest = min(theirs, key=lambda session: _phase_s(session))
    tool = "it thinks" if isinstance(latest.tool, Missing) else f"{latest.tool} runs"
    since = f" for {known}" if (known := shown(latest.phase_s, duration)) else ""
    return Spoken(
        text=f"the client's own turn: {tool}{since} ({short_name(latest.session)})",
        evidence=("0 running", "0 waiting", "0 held", f"{len(theirs)} at the client's turn"),
    )


def _phase_s(session: Session) -> float:
    known = number(session.phase_s)
    return float("inf") if known is None else known


def _turn_after_tool_call(readings: Readings) -> Judgement:
    """The newest answer asked for a tool, and no request has come since."""
    ended = [
        (age_s, request)
        for request in readings.snapshot.recent
        if (age_s := _seconds_ago(request, readings.snapshot.at)) is not None
    ]
    if not ended:
        return None
    age_s, last = min(ended, key=lambda entry: entry[0])
    sessions = readings.snapshot.sessions
    if not isinstance(sessions, Missing) and any(s.session == last.session for s in sessions):
        return None  # its session is followed, and does not say so
    if last.finish_reason not in TOOL_REASONS or age_s > TURN_REMEMBERED_S:
        return None
    who = "" if isinstance(last.session, Missing) else f" ({short_name(last.session)})"
    return Spoken(
        text=f"the client's own turn: it was asked for a tool {duration(age_s)} ago{who}",
        evidence=("0 running", "0 waiting", "0 held", f"last answer ended: {last.finish_reason}"),
    )


def _seconds_ago(request: RecentRequest, now: str) -> float | None:
    try:
        gone = datetime.fromisoformat(now) - datetime.fromisoformat(request.ended_at)
    except (ValueError, TypeError):
        return None
    return max(0.0, gone.total_seconds())
