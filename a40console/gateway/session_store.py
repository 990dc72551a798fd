"""The sessions as a file keeps them over a restart of the service: figures and digests, no text."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from a40console.gateway.session_records import (
    Agent,
    Baseline,
    Entry,
    Record,
    Sums,
    Tool,
    ToolTally,
)
from a40console.gateway.session_runs import Served
from a40console.model.codec import encode
from a40console.model.request import SharedPrompt
from a40console.model.session import Block, BlockKind, Origin, PrefixLoss, Purpose, ToolOrigin

NEWEST_SESSIONS = 8
"""Of so many sessions the prompts are kept, so that the next one can be compared."""

KEPT_ENTRIES = 100
KEPT_ENTRIES_OF_OLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTool:
    """A call."""

    name: str
    call_id: str
    called_s: float
    duration_s: float | None
    origin: ToolOrigin
    failed: bool
    given_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntry:
    """A request that ended."""

    request_id: str
    agent: str
    turn: int
    purpose: Purpose
    at_s: float
    ended_s: float
    streamed: bool
    repeats: bool
    delivered: bool
    client_s: float | None
    held_s: float | None
    queued_s: float | None
    waited_s: float | None
    decode_s: float | None
    ttft_s: float | None
    tokens_per_s: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    generated_tokens: int | None
    shared_tokens: float | None
    lost_tokens: float
    shared_exact: bool
    finish_reason: str | None
    status: int | None
    tools: tuple[KeptTool, ...]
    loss: PrefixLoss | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBlock:
    """A piece of a prompt."""

    kind: BlockKind
    message: int | None
    digest: str
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBaseline:
    """A prompt that the engine has read."""

    outline: tuple[KeptBlock, ...]
    prompt_tokens: int
    generated_tokens: int | None
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAgent:
    """An agent."""

    name: str
    is_subagent: bool
    started_s: float
    last_s: float
    sums: Sums
    baselines: tuple[KeptBaseline, ...]
    compacted: bool
    context_tokens: int | None
    context_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOpenTool:
    """A call whose answer is still to come."""

    agent: str
    tool: KeptTool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    """A session."""

    session: str
    origin: Origin
    started_s: float
    last_s: float
    client: str | None
    model: str | None
    max_tokens: int | None
    turns: int
    failed: int
    aborted: int
    compactions: int
    compacted_at_tokens: int | None
    overflows: int
    fallbacks: int
    busy_s: float
    share_s: float
    overfull: bool
    safeguards: bool
    billed: bool
    hinted: bool
    highest_context_tokens: int
    removed: dict[str, int]
    agents: tuple[KeptAgent, ...]
    former: Sums
    entries: tuple[KeptEntry, ...]
    losses: tuple[PrefixLoss, ...]
    tools: dict[str, ToolTally]
    open_tools: tuple[KeptOpenTool, ...]
    run_id: str | None = None
    window_tokens: int | None = None
    served: dict[str, Served] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSessions:
    """The whole file."""

    version: int
    sessions: tuple[KeptSession, ...]


VERSION = 1


@dataclass(frozen=True, slots=True)
class Frozen:
    """A session as it was at one instant; nothing of it changes when the session goes on."""

    session: KeptSession
    """Without its prompts."""

    prompts: tuple[Baseline | None, ...]
    """The newest of each agent, in the agents' order."""

    def text(self) -> str:
        """Its JSON; takes some 100 ms for 50,000 pieces of prompts, so in a thread."""
        told = encode(self.session)
        for agent, prompt in zip(told["agents"], self.prompts, strict=True):
            if prompt is not None:
                agent["baselines"] = [_told_baseline(prompt)]
        return _json(told)


def file_text(sessions: Iterable[str]) -> str:
    """What the file holds: the texts of its sessions, oldest first."""
    return f'{{"version":{VERSION},"sessions":[{",".join(sessions)}]}}'


def in_order(records: Sequence[Record]) -> list[tuple[Record, bool]]:
    """The sessions, and of which the prompts are kept too: of the newest."""
    first_whole = len(records) - NEWEST_SESSIONS
    return [(record, number >= first_whole) for number, record in enumerate(records)]


def records(file: KeptSessions) -> list[Record]:
    """The sessions of a file, oldest first; none of one that another version wrote."""
    return [_record(each) for each in file.sessions] if file.version == VERSION else []


def frozen(record: Record, *, whole: bool) -> Frozen:
    """One session as it is now; quick, whatever it holds. Requests under way are none of it."""
    last = (agent.baselines[-1] if agent.baselines else None for agent in record.agents.values())
    prompts = tuple(last) if whole else (None,) * len(record.agents)
    return Frozen(_kept_session(record, whole=whole), prompts)


def _kept_session(record: Record, *, whole: bool) -> KeptSession:
    ended = [entry for entry in record.entries if not entry.live]
    plain = {name: getattr(record, name) for name in _PLAIN}
    # What is under way is cut with the service, and asked for again.
    plain["turns"] -= sum(1 for entry in record.live if entry.is_turn)
    return KeptSession(
        **plain,
        removed=dict(record.removed),
        agents=tuple(map(_kept_agent, record.agents.values())),
        former=replace(record.former),
        entries=tuple(map(_kept_entry, ended[-(KEPT_ENTRIES if whole else KEPT_ENTRIES_OF_OLD) :])),
        losses=tuple(record.losses),
        tools={name: replace(tally) for name, tally in record.tools.items()},
        open_tools=tuple(
            KeptOpenTool(agent=agent, tool=_kept_tool(tool))
            for agent, tool in record.open_tools.values()
        ),
        served={run_id: replace(served) for run_id, served in record.served.items()},
    )


_PLAIN = (
    "session",
    "origin",
    "started_s",
    "last_s",
    "client",
    "model",
    "max_tokens",
    "turns",
    "failed",
    "aborted",
    "compactions",
    "compacted_at_tokens",
    "overflows",
    "fallbacks",
    "busy_s",
    "share_s",
    "overfull",
    "safeguards",
    "billed",
    "hinted",
    "highest_context_tokens",
    "run_id",
    "window_tokens",
)
_ENTRY = (
    "request_id",
    "agent",
    "turn",
    "purpose",
    "at_s",
    "ended_s",
    "streamed",
    "repeats",
    "delivered",
    "client_s",
    "held_s",
    "queued_s",
    "waited_s",
    "decode_s",
    "ttft_s",
    "tokens_per_s",
    "prompt_tokens",
    "cached_tokens",
    "generated_tokens",
    "finish_reason",
    "status",
    "loss",
)
_AGENT = (
    "name",
    "is_subagent",
    "started_s",
    "last_s",
    "compacted",
    "context_tokens",
    "context_exact",
)
_TOOL = ("name", "call_id", "called_s", "duration_s", "origin", "failed", "given_up")


def _kept_tool(tool: Tool) -> KeptTool:
    return KeptTool(**{name: getattr(tool, name) for name in _TOOL})


def _kept_entry(entry: Entry) -> KeptEntry:
    shared = entry.shared
    return KeptEntry(
        **{name: getattr(entry, name) for name in _ENTRY},
        shared_tokens=None if shared is None else shared.tokens,
        lost_tokens=0.0 if shared is None else shared.lost,
        shared_exact=shared is not None and shared.exact,
        tools=tuple(map(_kept_tool, entry.tools)),
    )


def _kept_agent(agent: Agent) -> KeptAgent:
    return KeptAgent(
        **{name: getattr(agent, name) for name in _AGENT},
        sums=replace(agent.sums),
        baselines=(),
    )


def _told_baseline(baseline: Baseline) -> dict[str, Any]:
    """As `KeptBaseline` is encoded, of thousands of pieces ten times as fast."""
    return {
        "outline": [
            {
                "kind": block.kind,
                "message": block.message,
                "digest": block.digest.hex(),
                "characters": block.characters,
            }
            for block in baseline.outline
        ],
        "prompt_tokens": baseline.prompt_tokens,
        "generated_tokens": baseline.generated_tokens,
        "run_id": baseline.run_id,
    }


def _json(told: dict[str, Any]) -> str:
    """The text, agent by agent: while one is written, nothing else can run."""
    agents = ",".join(_compact(agent) for agent in told.pop("agents"))
    return f'{_compact(told)[:-1]},"agents":[{agents}]}}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _record(told: KeptSession) -> Record:
    record = Record(**{name: getattr(told, name) for name in _PLAIN})
    record.removed = Counter(told.removed)
    record.agents = OrderedDict((agent.name, _agent(agent)) for agent in told.agents)
    record.former = told.former
    record.entries.extend(map(_entry, told.entries))
    record.losses.extend(told.losses)
    record.tools = dict(told.tools)
    record.served = dict(told.served)
    calls = {tool.call_id: tool for entry in record.entries for tool in entry.tools}
    for each in told.open_tools:
        name = each.tool.call_id
        record.open_tools[name] = each.agent, calls.get(name) or _tool(each.tool)
    return record


def _tool(told: KeptTool) -> Tool:
    return Tool(**{name: getattr(told, name) for name in _TOOL})


def _entry(told: KeptEntry) -> Entry:
    entry = Entry(**{name: getattr(told, name) for name in _ENTRY})
    entry.tools = list(map(_tool, told.tools))
    if told.shared_tokens is not None:
        entry.shared = SharedPrompt(told.shared_tokens, told.lost_tokens, told.shared_exact)
    entry.counted = entry.contribution()
    return entry


def _agent(told: KeptAgent) -> Agent:
    agent = Agent(**{name: getattr(told, name) for name in _AGENT})
    agent.sums = told.sums
    agent.baselines = list(map(_baseline, told.baselines))
    return agent


def _baseline(told: KeptBaseline) -> Baseline:
    return Baseline(
        outline=tuple(
            Block(block.kind, block.message, bytes.fromhex(block.digest), block.characters)
            for block in told.outline
        ),
        prompt_tokens=told.prompt_tokens,
        generated_tokens=told.generated_tokens,
        run_id=told.run_id,
    )
