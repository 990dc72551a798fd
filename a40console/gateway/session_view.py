"""The book's records as the console shows them: figures, timeline, agents and tools. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.gateway.session_records import Agent, Entry, Record, Sums, Tool, ToolTally
from a40console.model.figures import Estimated, Figure, Missing, Text, measured, ratio
from a40console.model.instants import iso_utc
from a40console.model.session import (
    SessionAgent,
    SessionPhase,
    SessionRequest,
    ToolCall,
    ToolSum,
)

UNTOLD = Missing("the engine did not tell")
NO_TOKEN = Missing("no token came")
UNDER_WAY = Missing("under way")
NOT_OUTLINED = Missing("its prompt is not outlined")


def added(told: float, untold: int, requests: int, *, guessed: int = 0) -> Figure:
    """A sum over requests: missing where none told, ≈ where only some did."""
    if untold and untold >= requests:
        return UNTOLD
    return Estimated(told) if untold or guessed else told


def prompt_tokens(sums: Sums) -> Figure:
    """Prompt tokens of all requests."""
    return added(sums.prompt, sums.prompt_untold, sums.requests)


def reused_tokens(sums: Sums) -> Figure:
    """Of them, those that the engine had in its cache."""
    return added(sums.reused, sums.reused_untold, sums.requests)


def reread_tokens(sums: Sums) -> Figure:
    """Of them, those that were sent before and computed again."""
    again = round(sums.reread)
    return added(again, sums.reread_untold, sums.requests, guessed=sums.reread_guessed)


def generated_tokens(sums: Sums) -> Figure:
    """Tokens of all answers."""
    return added(sums.generated, sums.generated_untold, sums.requests)


def hit_ratio(sums: Sums) -> Figure:
    """Reused ÷ prompt tokens, of the requests whose reuse is told."""
    if sums.reused_untold and not sums.reused_of:
        return UNTOLD
    return ratio(sums.reused, sums.reused_of, reason="no prompt yet")


def context_tokens(agent: Agent | None) -> Figure:
    """An agent's last prompt and its answer; of one under way as far as it is known."""
    if agent is None:
        return Missing("its main agent has asked nothing yet")
    last = agent.last
    if last is not None and last.passage is not None and last.passage.prompt_tokens is not None:
        written = last.passage.generated_tokens
        known = last.passage.prompt_tokens + (written or 0)
        return known if written is not None else Estimated(known)
    if agent.context_tokens is None:
        return UNTOLD
    return agent.context_tokens if agent.context_exact else Estimated(agent.context_tokens)


def request_row(entry: Entry) -> SessionRequest:
    """A row of the timeline."""
    passage = entry.passage
    unknown = UNDER_WAY if entry.live else NO_TOKEN
    ttft_s = entry.ttft_s
    if passage is not None and passage.first_token_at_s is not None:
        ttft_s = passage.first_token_at_s - passage.received_at_s
    queue_s = None if entry.queued_s is None else entry.queued_s + (entry.held_s or 0.0)
    prefill_s = entry.waited_s
    if prefill_s is not None and entry.queued_s is not None:
        prefill_s = max(0.0, prefill_s - entry.queued_s)
    told = UNDER_WAY if entry.live else UNTOLD
    finish = entry.finish_reason or (passage.finish_reason if passage else None)
    return SessionRequest(
        request_id=entry.request_id,
        agent=entry.agent,
        turn=entry.turn,
        purpose=entry.purpose,
        repeats=entry.repeats,
        streamed=entry.streamed,
        live=entry.live,
        at=iso_utc(entry.at_s),
        client_s=measured(entry.client_s, "no answer of its agent before it"),
        queue_s=measured(queue_s, told.reason),
        prefill_s=measured(prefill_s, unknown.reason),
        decode_s=measured(entry.decode_s, unknown.reason),
        ttft_s=measured(ttft_s, _no_ttft(entry)),
        prompt_tokens=measured(
            passage.prompt_tokens if passage else entry.prompt_tokens, told.reason
        ),
        reused_tokens=measured(
            passage.cached_tokens if passage else entry.cached_tokens, told.reason
        ),
        reread_tokens=_reread(entry),
        generated_tokens=_generated(entry),
        tokens_per_s=measured(entry.tokens_per_s, "fewer than two tokens, or not told"),
        finish_reason=finish or Missing("under way" if entry.live else "not told"),
        status=measured(entry.status or (passage.status if passage else None), "no answer yet"),
        tools=tuple(map(tool_call, entry.tools)),
        loss=entry.loss or Missing("nothing was lost"),
    )


def _no_ttft(entry: Entry) -> str:
    if entry.live:
        return "no token yet"
    return "no token came" if entry.streamed or not entry.delivered else "not streamed"


def _reread(entry: Entry) -> Figure:
    again = entry.reread()
    if again is None:
        if entry.shared is None:
            return NOT_OUTLINED
        return UNDER_WAY if entry.live else UNTOLD
    tokens, exact = round(again[0]), again[1]
    return tokens if exact else Estimated(tokens)


def _generated(entry: Entry) -> Figure:
    passage = entry.passage
    if passage is not None:
        return measured(passage.generated_tokens, "counted when it ends")
    return measured(entry.generated_tokens, UNTOLD.reason)


def tool_call(tool: Tool) -> ToolCall:
    """One call."""
    why = "no answer came" if tool.given_up else "it runs"
    return ToolCall(
        name=tool.name,
        at=iso_utc(tool.called_s),
        duration_s=measured(tool.duration_s, why),
        origin=tool.origin,
        failed=tool.failed,
    )


def agent_row(agent: Agent, phase: SessionPhase) -> SessionAgent:
    """One agent, its requests added up."""
    sums = agent.sums
    return SessionAgent(
        agent=agent.name,
        is_subagent=agent.is_subagent,
        phase=phase,
        requests=sums.requests,
        prompt_tokens=prompt_tokens(sums),
        reused_tokens=reused_tokens(sums),
        reread_tokens=reread_tokens(sums),
        generated_tokens=generated_tokens(sums),
        context_tokens=context_tokens(agent),
        started_at=iso_utc(agent.started_s),
        last_at=iso_utc(agent.last_s),
    )


def tool_sums(record: Record) -> tuple[ToolSum, ...]:
    """All tools of a session, most called first."""
    running: dict[str, int] = {}
    for _, tool in record.open_tools.values():
        running[tool.name] = running.get(tool.name, 0) + 1
    names = dict.fromkeys((*record.tools, *running))
    rows = [_tool_sum(name, record.tools.get(name), running.get(name, 0)) for name in names]
    return tuple(sorted(rows, key=lambda row: (-row.calls, row.name)))


def _tool_sum(name: str, tally: ToolTally | None, running: int) -> ToolSum:
    known = tally is not None and tally.timed > 0
    return ToolSum(
        name=name,
        calls=running + (tally.calls if tally else 0),
        failed=tally.failed if tally else 0,
        running=running,
        total_s=tally.total_s if tally and known else UNDER_WAY,
        longest_s=tally.longest_s if tally and known else UNDER_WAY,
    )


def first_tokens_s(entries: Iterable[Entry]) -> tuple[float, ...]:
    """Time to first token of each turn, oldest first."""
    return tuple(entry.ttft_s for entry in entries if entry.ttft_s is not None and entry.is_turn)


def named(text: str | None, reason: str) -> Text:
    """A text, or why there is none."""
    return Missing(reason) if text is None else text
