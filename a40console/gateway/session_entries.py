"""How one request changes its session: at its arrival, at its end, and when more is told. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from a40console.gateway import loss_words
from a40console.gateway.meter import Passage
from a40console.gateway.prefix import Comparison, compare
from a40console.gateway.session_records import (
    KEPT_BASELINES,
    KEPT_TOOL_NAMES,
    Agent,
    Baseline,
    Entry,
    Record,
    Tool,
    ToolTally,
)
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.instants import iso_utc
from a40console.model.request import EngineRow, SharedPrompt
from a40console.model.session import MAIN_AGENT, LossKind, PrefixLoss, Purpose

CHANGED_TOKENS = 256
"""A changed prompt that costs fewer is no loss."""

EVICTED_TOKENS = 1024
EVICTED_RATIO = 0.10
"""Caches hold whole blocks, and templates render an answer otherwise than it was generated: from
here on it is more than that."""


class Answered(Protocol):
    """A tool's answer in a request's newest turn."""

    @property
    def tool_use_id(self) -> str:
        """Which call it answers."""

    @property
    def is_error(self) -> bool:
        """Whether the tool failed."""


class Ran(Protocol):
    """What a request says of the tools that its client ran."""

    @property
    def tool_answers(self) -> Sequence[Answered]:
        """Of the newest turn."""

    @property
    def tool_durations(self) -> Sequence[tuple[str, float]]:
        """Seconds that the client says its tools took."""

    @property
    def purpose(self) -> Purpose:
        """What it is for."""


NEW = SharedPrompt(tokens=0.0, lost=0.0, exact=True)


def arrive(record: Record, agent: Agent, entry: Entry) -> None:
    """A request stands in its session from now on."""
    before = agent.last
    entry.client_s = _client_s(agent, entry)
    if entry.outline:
        _compare(agent, entry)
    if before is not None and before.outline and before.outline == entry.outline:
        entry.repeats = not before.answered or (before.streamed and not entry.streamed)
        if before.delivered and before.streamed and not entry.streamed:
            record.fallbacks += 1
    record.turns += int(entry.is_turn)
    entry.turn = record.turns
    entry.after_compaction = agent.compacted and entry.purpose == "turn"
    if before is not None and before.ended_s is not None:
        before.outline = ()
    record.entries.append(entry)
    record.live.append(entry)
    agent.last = entry


def _client_s(agent: Agent, entry: Entry) -> float | None:
    """Since its agent's answer before; None for a first request, and beside one under way."""
    before = agent.last
    if before is None or before.ended_s is None:
        return None
    return max(0.0, entry.at_s - before.ended_s)


def _compare(agent: Agent, entry: Entry) -> None:
    """What the prompt shares with the last one of its conversation that the engine read."""
    entry.shared = NEW
    if entry.purpose == "other":
        return
    for baseline in reversed(agent.baselines):
        found = compare(baseline.outline, entry.outline)
        if found.continues:
            entry.comparison, entry.baseline = found, baseline
            entry.restarted = None not in (baseline.run_id, entry.run_id) and (
                baseline.run_id != entry.run_id
            )
            entry.shared = _shared(baseline, found)
            return


def _shared(baseline: Baseline, found: Comparison) -> SharedPrompt:
    if found.parting is None:
        answer = (baseline.generated_tokens or 0) if found.answer_characters else 0
        told = baseline.generated_tokens is not None or not found.answer_characters
        return SharedPrompt(tokens=float(baseline.prompt_tokens + answer), lost=0.0, exact=told)
    each = baseline.prompt_tokens / max(1, found.before_characters)
    return SharedPrompt(
        tokens=each * found.shared_characters,
        lost=each * (found.shared_characters - found.prefix_characters),
        exact=False,
    )


def take_tools(record: Record, agent: str, asked: Ran, at_s: float) -> None:
    """The client has run tools for an agent: how long each took, and which failed."""
    answered: list[Tool] = []
    for answer in asked.tool_answers:
        held = record.open_tools.pop(answer.tool_use_id, None)
        if held is not None:
            tool = held[1]
            tool.duration_s = max(0.0, at_s - tool.called_s)
            tool.failed = answer.is_error
            answered.append(tool)
    said = list(asked.tool_durations)
    for tool in answered:
        match = next((one for one in said if one[0] == tool.name), None)
        if match is not None:
            said.remove(match)
            tool.duration_s, tool.origin = match[1], "client"
        _tally(record, tool)
    if answered or (asked.purpose == "turn" and not asked.tool_answers):
        # The conversation has gone on without the others.
        for call_id, (of, tool) in list(record.open_tools.items()):
            if of == agent:
                tool.given_up = True
                del record.open_tools[call_id]


def _tally(record: Record, tool: Tool) -> None:
    name = tool.name
    if name not in record.tools and len(record.tools) >= KEPT_TOOL_NAMES:
        name = "others"
    tally = record.tools.setdefault(name, ToolTally())
    tally.calls += 1
    tally.failed += int(tool.failed)
    if tool.duration_s is not None:
        tally.timed += 1
        tally.total_s += tool.duration_s
        tally.longest_s = max(tally.longest_s, tool.duration_s)


def finish(record: Record, entry: Entry, passage: Passage, now_s: float) -> None:
    """A request has ended: what the gateway knows of it by then."""
    agent = record.agents.get(entry.agent)
    entry.ended_s = now_s
    entry.passage = None
    record.last_s = max(record.last_s, now_s)
    _times(entry, passage)
    entry.prompt_tokens = passage.prompt_tokens
    entry.cached_tokens = passage.cached_tokens
    entry.generated_tokens = passage.generated_tokens
    entry.status = passage.status
    entry.finish_reason = passage.finish_reason
    whole = entry.finish_reason not in ("aborted", "error")
    entry.delivered = passage.first_token_at_s is not None or (whole and bool(passage.characters))
    record.failed += int(entry.finish_reason == "error")
    record.aborted += int(entry.finish_reason == "aborted")
    record.live = [each for each in record.live if each is not entry]
    if not whole:
        _give_tools_up(record, entry)
    _judge(record, entry)
    _count(record, agent, entry)
    if agent is not None and entry.delivered:
        _stands(record, agent, entry, whole=whole)
    entry.baseline = None
    if agent is None or agent.last is not entry:
        entry.outline = ()


def settle(record: Record, entry: Entry, row: EngineRow) -> bool:
    """The engine's own row of a request that ended: whether it told what was not known."""
    agent = record.agents.get(entry.agent)
    before, queued_s = entry.contribution(), entry.queued_s
    entry.queued_s = row.queued_s if queued_s is None else queued_s
    if entry.prompt_tokens is None:
        entry.prompt_tokens = row.prompt_tokens
    if entry.cached_tokens is None:
        entry.cached_tokens = row.cached_tokens
    if entry.generated_tokens is None and row.ended_at is not None:
        entry.generated_tokens = row.generated_tokens
    if entry.contribution() == before:
        return entry.queued_s != queued_s
    _judge(record, entry)
    _count(record, agent, entry)
    return True


def _times(entry: Entry, passage: Passage) -> None:
    received_s, sent_s = passage.received_at_s, passage.sent_at_s
    first_s, last_s, end_s = (
        passage.first_token_at_s,
        passage.last_token_at_s,
        passage.ended_at_s,
    )
    if sent_s is not None:
        entry.held_s = max(0.0, sent_s - received_s)
    if first_s is None:
        return
    entry.ttft_s = max(0.0, first_s - received_s)
    if sent_s is not None:
        entry.waited_s = max(0.0, first_s - sent_s)
    if end_s is not None:
        entry.decode_s = max(0.0, end_s - first_s)
    tokens = passage.generated_tokens or 0
    if last_s is not None and last_s > first_s and tokens > 1:
        entry.tokens_per_s = (tokens - 1) / (last_s - first_s)


def _give_tools_up(record: Record, entry: Entry) -> None:
    """An answer that did not come whole is asked for again: its calls are not run."""
    for tool in entry.tools:
        tool.given_up = True
        record.open_tools.pop(tool.call_id, None)


def _count(record: Record, agent: Agent | None, entry: Entry) -> None:
    sums = record.former if agent is None else agent.sums
    served = record.served_by(entry.run_id)
    if entry.counted is not None:
        sums.add(entry.counted, -1)
        served.count(entry.counted.generated, entry.counted.generated_untold, -1)
    entry.counted = entry.contribution()
    sums.add(entry.counted)
    served.count(entry.counted.generated, entry.counted.generated_untold)


def _stands(record: Record, agent: Agent, entry: Entry, *, whole: bool) -> None:
    """What the next request of this agent is compared with."""
    if entry.purpose == "other":
        return
    if entry.purpose == "turn" and agent.compacted:
        agent.compacted = False
        if entry.loss is not None and entry.loss.kind == "compacted":
            record.compactions += 1
            record.highest_context_tokens = 0
    if entry.prompt_tokens is None:
        return
    agent.context_tokens = entry.prompt_tokens + (entry.generated_tokens or 0)
    agent.context_exact = entry.generated_tokens is not None
    if agent.name == MAIN_AGENT and entry.run_id == record.run_id:
        record.highest_context_tokens = max(record.highest_context_tokens, agent.context_tokens)
    if entry.purpose == "compaction" and whole:
        agent.compacted, record.overfull = True, False
        record.compacted_at_tokens = entry.prompt_tokens
    if not entry.outline:
        return
    baseline = Baseline(
        outline=entry.outline,
        prompt_tokens=entry.prompt_tokens,
        generated_tokens=entry.generated_tokens,
        run_id=entry.run_id,
    )
    kept = [each for each in agent.baselines if each is not entry.baseline]
    agent.baselines = [*kept, baseline][-KEPT_BASELINES:]


def _judge(record: Record, entry: Entry) -> None:
    """Whether tokens were lost, and why."""
    again = entry.reread()
    if entry.loss is not None and entry.loss in record.losses:
        record.losses.remove(entry.loss)
    entry.loss = None
    tokens = 0.0 if again is None else again[0]
    kind = _kind(entry, tokens)
    if kind is None:
        return
    exact = again is not None and again[1]
    entry.loss = _loss(entry, kind, round(tokens) if exact else Estimated(round(tokens)))
    record.losses.append(entry.loss)


def _kind(entry: Entry, tokens: float) -> LossKind | None:
    found, shared = entry.comparison, entry.shared
    if entry.after_compaction and (found is None or found.parting is not None):
        return "compacted"
    if found is None or shared is None:
        return None
    least = CHANGED_TOKENS
    if found.parting is None:
        least = max(EVICTED_TOKENS, round(EVICTED_RATIO * shared.tokens))
    if tokens < least:
        return None
    if entry.restarted:
        return "restarted"
    return "evicted" if found.parting is None else "changed"


def _loss(entry: Entry, kind: LossKind, tokens: Figure) -> PrefixLoss:
    found = entry.comparison
    parting = found.parting if found is not None and kind == "changed" else None
    texts: Mapping[LossKind, tuple[str, str]] = {
        "evicted": (loss_words.EVICTED, loss_words.EVICTED_REMEDY),
        "compacted": (loss_words.COMPACTED, ""),
        "restarted": (loss_words.RESTARTED, ""),
    }
    cause, remedy = texts.get(kind, ("", ""))
    if parting is not None:
        cause, remedy = loss_words.cause_of(parting), loss_words.remedy_of(parting)
    message = None if parting is None else parting.before.message
    return PrefixLoss(
        kind=kind,
        at=iso_utc(entry.at_s),
        request_id=entry.request_id,
        agent=entry.agent,
        turn=entry.turn,
        block=None if parting is None else parting.block + 1,
        block_kind=None if parting is None else parting.before.kind,
        message=None if message is None else message + 1,
        cause=cause,
        remedy=remedy,
        tokens=tokens,
        prefill_s=_prefill_s(entry, tokens),
    )


def _prefill_s(entry: Entry, tokens: Figure) -> Figure:
    """The tokens' share of the prefill, by all that was computed in it."""
    waited_s, prompt = entry.waited_s, entry.prompt_tokens
    if waited_s is None or prompt is None or entry.cached_tokens is None:
        return Missing("how long its prefill took is not known")
    computed = max(1, prompt - entry.cached_tokens)
    prefill_s = max(0.0, waited_s - (entry.queued_s or 0.0))
    return Estimated(round(prefill_s * min(1.0, (number(tokens) or 0.0) / computed), 3))
