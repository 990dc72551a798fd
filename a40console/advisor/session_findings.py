"""Findings about clients' sessions: what silently makes them slow, or ends them early."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.advisor.evidence import Evidence
from a40console.advisor.readings import Readings, shown
from a40console.advisor.wording import count, duration, sentence, short_name, whole
from a40console.model.event import Finding
from a40console.model.figures import number
from a40console.model.session import SessionSigns
from a40console.model.snapshot import Snapshot

FRESH_S = 600.0
"""A session that was silent for longer has nothing that is wrong now."""

_ENVIRONMENT = "Start the client with the lines of `a40console env`"


def prefix_changed(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A client changed the beginning of its prompt, and what stands behind it was read again."""
    lost = [
        (number(signs.loss.tokens) or 0.0, signs, signs.loss)
        for signs in extra.sessions
        if signs.loss is not None
    ]
    if not lost or not Readings(snapshot, extra).serving:
        return None
    _, signs, loss = max(lost, key=lambda entry: (entry[2].at, entry[0]))
    who = short_name(signs.session)
    agent = "" if loss.agent == "main" else f", {short_name(loss.agent)}"
    again = f"{shown(loss.tokens, whole)} tokens read again"
    if took := shown(loss.prefill_s, duration):
        again += f", {took} of prefill"
    return Finding(
        code="prefix-changed",
        severity="warn",
        title=f"The prompt's beginning changed: {loss.cause}",
        evidence=sentence(
            [
                f"session {who}{agent}, turn {loss.turn}",
                f"block {loss.block}, {loss.block_kind}" if loss.block else "",
                again,
                f"{count(signs.losses, 'change')} in this session" if signs.losses > 1 else "",
                f"{count(len(lost), 'session')} so" if len(lost) > 1 else "",
            ]
        ),
        since=snapshot.at,
        remedy=loss.remedy,
    )


def window_wrong(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A client takes its window for larger than it is: it will not compact in time."""
    found = [
        signs
        for signs in _fresh(extra.sessions)
        if signs.window_wrong or signs.overflows or signs.nearly_full
    ]
    if not found:
        return None
    worst = max(found, key=lambda signs: (signs.overflows, signs.nearly_full, -signs.silent_s))
    true = shown(snapshot.engine.max_model_len, whole)
    refused = worst.overflows > 0
    named = worst.window_evidence.startswith("it asks for claude-")
    remedy = f"{_ENVIRONMENT}: they name the window."
    if named:
        remedy = (
            "Name the served model in ANTHROPIC_MODEL, as `a40console env` does: for ids that "
            "begin with claude- the client keeps to the window it knows."
        )
    return Finding(
        code="client-window-wrong",
        severity="error" if refused else "warn",
        title="A client's prompt did not fit the window"
        if refused
        else "A client takes the window for larger than it is",
        evidence=sentence(
            [
                f"session {short_name(worst.session)}",
                worst.window_evidence,
                f"the engine's window is {true} tokens" if true else "",
                f"{count(len(found), 'session')} so" if len(found) > 1 else "",
            ]
        ),
        since=snapshot.at,
        remedy=remedy,
    )


def count_tokens_off(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """`count_tokens` differs from what the engine counts: the client compacts at a wrong time."""
    if extra.counts is not None:
        counted, served = extra.counts.counted_tokens, extra.counts.served_tokens
        return Finding(
            code="count-tokens-off",
            severity="warn",
            title="count_tokens and the engine disagree about the same prompt",
            evidence=sentence(
                [f"count_tokens answered {whole(counted)}", f"the engine read {whole(served)}"]
            ),
            since=snapshot.at,
            remedy="The client trusts the count to compact in time. Another version of the engine "
            "may count as it reads; until then leave room in the client's window.",
        )
    if not extra.uncounted:
        return None
    return Finding(
        code="count-tokens-off",
        severity="info",
        title="The engine cannot count tokens for its clients",
        evidence="count_tokens was asked for and refused: neither /tokenize nor a route for it",
        since=snapshot.at,
        remedy="Clients estimate instead; their context meter may be off.",
    )


def no_classifier(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Auto mode asks for a classifier of tool calls that no engine here has."""
    found = [signs for signs in _fresh(extra.sessions) if signs.safeguards]
    if not found:
        return None
    return Finding(
        code="auto-mode-unclassified",
        severity="warn",
        title="A client in auto mode waits for a classifier that is not here",
        evidence=sentence(
            [
                f"session {short_name(found[0].session)} asks for safeguards",
                "its risky tool calls stop with “Auto mode can't check actions in this session”",
                f"{count(len(found), 'session')} so" if len(found) > 1 else "",
            ]
        ),
        since=snapshot.at,
        remedy="Start it in another mode: claude --permission-mode acceptEdits",
    )


def cache_busters(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The gateway takes out what would make every prompt another one: nothing is lost."""
    found: dict[str, int] = {}
    sessions = 0
    for signs in _fresh(extra.sessions):
        busters = {kind: times for kind, times in signs.removed.items() if kind in BUSTERS}
        sessions += bool(busters)
        for kind, times in busters.items():
            found[kind] = found.get(kind, 0) + times
    if not found:
        return None
    told = [f"{kind} {count(times, 'time')}" for kind, times in sorted(found.items())]
    return Finding(
        code="cache-busters-removed",
        severity="info",
        title="Cache busters are taken out of the prompts",
        evidence=sentence([", ".join(told), count(sessions, "session")]),
        since=snapshot.at,
        remedy="Nothing needs to be done. CLAUDE_CODE_ATTRIBUTION_HEADER=0 keeps the client from "
        "sending them.",
    )


BUSTERS = frozenset({"billing header", "cch nonce", "total_tokens reminder"})
"""What of the things that are taken out changes with each request or session."""


def doubled_answers(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A client asked again, whole, for what it had streamed in part: tools may run twice."""
    found = [signs for signs in _fresh(extra.sessions) if signs.fallbacks]
    if not found:
        return None
    worst = max(found, key=lambda signs: signs.fallbacks)
    return Finding(
        code="answers-doubled",
        severity="warn",
        title="A client asked twice for the same answer, the second time without a stream",
        evidence=sentence(
            [
                f"session {short_name(worst.session)}, {count(worst.fallbacks, 'time')}",
                "a stream had delivered part of it and broke off: what it called may run twice",
            ]
        ),
        since=snapshot.at,
        remedy="Set CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1 for the client, as "
        "`a40console env` does, and look for what ends its streams: a proxy's time limit, or the "
        "engine.",
    )


def _fresh(sessions: Sequence[SessionSigns]) -> list[SessionSigns]:
    return [signs for signs in sessions if signs.silent_s <= FRESH_S]
