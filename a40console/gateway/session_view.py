"""The book's records as the console shows them: figures, timeline, agents and tools. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from a40console.gateway.session_records import Agent, Entry, Record, Sums, Tool, ToolTally
from a40console.model.figures import (
    Estimated,
    Figure,
    Missing,
    Text,
    is_estimate,
    measured,
    number,
    ratio,
)
from a40console.model.instants import iso_utc
from a40console.model.session import (
    SessionAgent,
    SessionPhase,
    SessionRequest,
    ToolCall,
    ToolSum,
)
from a40console.model.snapshot import Slot

UNTOLD = Missing("the engine did not tell")
NO_TOKEN = Missing("no token came")
UNDER_WAY = Missing("under way")
NONE_ENDED = Missing("no request of it has ended yet")
NOT_BEGUN = Missing("its first answer has not begun yet")
NOT_OUTLINED = Missing("its prompt is not outlined")


def added(told: float, untold: int, requests: int, *, guessed: int = 0) -> Figure:
    """A sum over requests: missing where none told, ≈ where only some did."""
    if not requests:
        return NONE_ENDED
    if untold and untold >= requests:
        return UNTOLD
    return Estimated(told) if untold or guessed else told


def with_live(ended: Figure, live: Sequence[Figure]) -> Figure:
    """A sum with what is known of the requests under way: ≈ where not all of them told."""
    told = [figure for figure in live if not isinstance(figure, Missing)]
    if not live or (not told and isinstance(ended, Missing)):
        return live[0] if live and ended is NONE_ENDED else ended
    whole = [*told, *([] if isinstance(ended, Missing) else [ended])]
    exact = len(told) == len(live) and not (isinstance(ended, Missing) and ended is not NONE_ENDED)
    value = sum(number(figure) or 0 for figure in whole)
    return value if exact and not any(map(is_estimate, whole)) else Estimated(value)


def prompt_tokens(sums: Sums, live: Sequence[SessionRequest] = ()) -> Figure:
    """Prompt tokens of all requests."""
    ended = added(sums.prompt, sums.prompt_untold, sums.requests)
    return with_live(ended, [row.prompt_tokens for row in live])


def reused_tokens(sums: Sums, live: Sequence[SessionRequest] = ()) -> Figure:
    """Of them, those that the engine had in its cache."""
    ended = added(sums.reused, sums.reused_untold, sums.requests)
    return with_live(ended, [row.reused_tokens for row in live])


def reread_tokens(sums: Sums, live: Sequence[SessionRequest] = ()) -> Figure:
    """Of them, those that were sent before and computed again."""
    again = round(sums.reread)
    ended = added(again, sums.reread_untold, sums.requests, guessed=sums.reread_guessed)
    return with_live(ended, [row.reread_tokens for row in live])


def generated_tokens(sums: Sums, live: Sequence[SessionRequest] = ()) -> Figure:
    """Tokens of all answers, as far as they have come."""
    ended = added(sums.generated, sums.generated_untold, sums.requests)
    return generated_with(ended, [row.generated_tokens for row in live])


def generated_with(ended: Figure, live: Sequence[Figure]) -> Figure:
    """Generated tokens with those of requests under way; none before the first answer."""
    told = with_live(ended, live)
    return NOT_BEGUN if ended is NONE_ENDED and number(told) == 0 else told


def hit_ratio(sums: Sums, live: Sequence[SessionRequest] = ()) -> Figure:
    """Reused ÷ prompt tokens, of the requests whose reuse is told."""
    told = [
        row
        for row in live
        if number(row.prompt_tokens) is not None and number(row.reused_tokens) is not None
    ]
    if not sums.reused_of and not told:
        untold = next((row.reused_tokens for row in live), None)
        if sums.reused_untold:
            return UNTOLD
        return untold if isinstance(untold, Missing) else Missing("no prompt yet")
    reused = with_live(sums.reused, [row.reused_tokens for row in told])
    return ratio(
        reused, with_live(sums.reused_of, [row.prompt_tokens for row in told]), reason="no prompt"
    )


def context_tokens(agent: Agent | None, live: Sequence[SessionRequest] = ()) -> Figure:
    """An agent's last prompt and its answer; of one under way as far as it is known."""
    if agent is None:
        return Missing("its main agent has asked nothing yet")
    last = agent.last
    if last is not None and last.live:
        row = next((row for row in live if row.request_id == last.request_id), None)
        row = request_row(last) if row is None else row
        if not isinstance(row.prompt_tokens, Missing):
            return with_live(row.prompt_tokens, [row.generated_tokens])
    if agent.context_tokens is None:
        return UNDER_WAY if last is not None and last.live else UNTOLD
    return agent.context_tokens if agent.context_exact else Estimated(agent.context_tokens)


def request_row(entry: Entry, slot: Slot | None = None) -> SessionRequest:
    """A row of the timeline; of a request under way with what its live slot tells."""
    row = _request_row(entry)
    if slot is None or not entry.live:
        return row
    return replace(
        row,
        prompt_tokens=_first_known(slot.prompt_tokens, row.prompt_tokens),
        reused_tokens=_first_known(slot.cached_tokens, row.reused_tokens),
        reread_tokens=_first_known(slot.reread_tokens, row.reread_tokens),
        generated_tokens=_first_known(slot.generated_tokens, row.generated_tokens),
        ttft_s=_first_known(row.ttft_s, slot.ttft_s),
        tokens_per_s=_first_known(slot.tokens_per_s, row.tokens_per_s),
    )


def _first_known(told: Figure, other: Figure) -> Figure:
    return other if isinstance(told, Missing) else told


def _request_row(entry: Entry) -> SessionRequest:
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


def agent_row(
    agent: Agent, phase: SessionPhase, live: Sequence[SessionRequest] = ()
) -> SessionAgent:
    """One agent, its requests added up; `live` are those of its session that are under way."""
    sums, live = agent.sums, [row for row in live if row.agent == agent.name]
    return SessionAgent(
        agent=agent.name,
        is_subagent=agent.is_subagent,
        phase=phase,
        requests=sums.requests,
        prompt_tokens=prompt_tokens(sums, live),
        reused_tokens=reused_tokens(sums, live),
        reread_tokens=reread_tokens(sums, live),
        generated_tokens=generated_tokens(sums, live),
        context_tokens=context_tokens(agent, live),
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
