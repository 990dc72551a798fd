"""The sessions of the clients: every request that comes, is answered and ends, by who sent it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from a40console.gateway.anthropic.busters import BILLING_LINE
from a40console.gateway.captures import Captures
from a40console.gateway.clients import shown
from a40console.gateway.counts import CountChecks
from a40console.gateway.meter import Passage
from a40console.gateway.session_entries import Ran, arrive, finish, settle, take_tools
from a40console.gateway.session_records import (
    KEPT_AGENTS,
    OPEN_TOOLS,
    Agent,
    Entry,
    Record,
    Tool,
)
from a40console.gateway.session_runs import Serving
from a40console.model.request import EngineRow
from a40console.model.session import MAIN_AGENT, Identity, Outline

KEPT_SESSIONS = 64
KEPT_BLOCKS = 50_000
"""Pieces of prompts of which digests are kept, over all sessions."""

KEPT_TOLD = 512
"""Requests that ended last: of these the engine may still tell what the gateway did not know."""

LOOKED_AT_BLOCKS = 5000
"""So many pieces come between two looks at how many are kept."""

KEPT_BLOCKS_A_PROMPT = 4096
"""Of a longer prompt only the first are compared."""


class Arrival(Ran, Protocol):
    """What the book reads of a request that was understood."""

    @property
    def identity(self) -> Identity:
        """Who sends it."""

    @property
    def model(self) -> str | None:
        """As the client wrote it."""

    @property
    def stream(self) -> bool:
        """Whether the answer is streamed."""

    @property
    def max_tokens(self) -> int | None:
        """The output limit asked for."""

    @property
    def outline(self) -> Outline:
        """What the engine is given; empty where it was not outlined."""

    @property
    def removed(self) -> Mapping[str, int]:
        """What was taken out, by kind."""

    @property
    def safeguards(self) -> bool:
        """Whether it asks for a classifier."""


class SessionBook:
    """Follows sessions by what passes through the gateway; keeps no text, and only so much.

    Args:
        clock: Monotonic clock: the meter's.
        wall: Unix time.
        run_id: Which start of the engine serves; None where that is not known.
        captures: What writes the text of some to files; None where nothing ever does.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        run_id: Callable[[], str | None] = lambda: None,
        captures: Captures | None = None,
    ) -> None:
        self.counts = CountChecks()
        """What `count_tokens` said, against what the engine then counted."""

        self.captures = captures or Captures()
        """Whose text is written to files."""

        self.forgotten = 0
        """Sessions that were put out for newer ones."""

        self._clock = clock
        self._wall = wall
        self._run_id = run_id
        self._sessions: OrderedDict[str, Record] = OrderedDict()
        self._live: dict[int, tuple[Record, Entry]] = {}
        self._held: dict[int, Record] = {}
        self._told: OrderedDict[str, tuple[Record, Entry]] = OrderedDict()
        self._serving: Serving | None = None
        self._accounted_s = clock()
        self._unbounded_blocks = 0
        """Pieces that came since it was last looked how many are kept."""

    # --- What passes ------------------------------------------------------------------------

    def waits(self, passage: Passage, identity: Identity) -> None:
        """A request is held until an engine can take it; only then will it be understood."""
        if passage.order in self._live:
            return
        at_s = self._wall()
        record = self._record(identity, at_s)
        passage.session, passage.agent = record.session, identity.agent
        record.client = passage.client or record.client
        record.held[passage.order] = identity.agent, at_s
        self._held[passage.order] = record

    def resent(self, passage: Passage) -> None:
        """A request goes to another start of the engine than the one that was lost with it."""
        found = self._live.get(passage.order)
        if found is None:
            return
        record, entry = found
        entry.run_id = self._run_id()
        record.goes_to(entry.run_id)
        record.served_by(entry.run_id)
        if self._serving is not None:
            record.learn(self._serving)

    def arrived(self, passage: Passage, asked: Arrival) -> None:
        """A request was read and understood, and goes to the engine next."""
        if self._held:
            self._waits_no_more(passage)
        self.account()
        identity = asked.identity
        at_s = self._wall_at(passage.received_at_s)
        record = self._record(identity, at_s)
        agent = self._agent(record, identity, at_s)
        passage.session, passage.agent = record.session, agent.name
        record.client = passage.client or record.client
        record.removed.update(asked.removed)
        if record.model is None or (agent.name == MAIN_AGENT and asked.purpose == "turn"):
            record.model = shown(asked.model) or record.model
            record.max_tokens = asked.max_tokens or record.max_tokens
            record.safeguards = asked.safeguards
            record.billed = asked.removed.get(BILLING_LINE, 0) > 0
            record.hinted = identity.prompt_id is not None
        take_tools(record, agent.name, asked, at_s)
        outline = asked.outline[:KEPT_BLOCKS_A_PROMPT]
        entry = Entry(
            request_id=passage.request_id,
            agent=agent.name,
            turn=record.turns,
            purpose=asked.purpose,
            streamed=asked.stream,
            at_s=at_s,
            passage=passage,
            outline=outline,
            run_id=self._run_id(),
        )
        record.goes_to(entry.run_id)
        record.served_by(entry.run_id)
        if self._serving is not None:
            record.learn(self._serving)
        arrive(record, agent, entry)
        passage.shared = entry.shared
        self._live[passage.order] = record, entry
        self._bound_blocks(record)
        record.revision += 1

    def called(self, passage: Passage, tool_name: str, tool_use_id: str) -> None:
        """A tool call of its answer went out whole."""
        found = self._live.get(passage.order)
        if found is None:
            return
        record, entry = found
        name = shown(tool_name, 64) or "tool"
        tool = Tool(name=name, call_id=tool_use_id, called_s=self._wall())
        entry.tools.append(tool)
        record.open_tools[tool_use_id] = entry.agent, tool
        while len(record.open_tools) > OPEN_TOOLS:
            record.open_tools.popitem(last=False)[1][1].given_up = True

    def overflowed(self, passage: Passage) -> None:
        """The engine refused it, because the prompt does not fit its window."""
        found = self._live.get(passage.order)
        if found is not None:
            found[0].overflows += 1
            found[0].overfull = True

    def counted(self, outline: Outline, tokens: int | None) -> None:
        """A prompt was counted for `count_tokens`; None where the engine cannot count it."""
        self.counts.counted(outline, tokens)

    def ended(self, passage: Passage) -> None:
        """It ended, however; call it right after the meter's own `end`."""
        if self._held:
            self._waits_no_more(passage)
        if passage.order not in self._live:
            return
        self.account()
        record, entry = self._live.pop(passage.order)
        self.counts.served(entry.outline, passage.prompt_tokens)
        finish(record, entry, passage, self._wall())
        self._told[entry.request_id] = record, entry
        while len(self._told) > KEPT_TOLD:
            self._told.popitem(last=False)
        record.revision += 1

    def _waits_no_more(self, passage: Passage) -> None:
        record = self._held.pop(passage.order, None)
        if record is not None:
            record.held.pop(passage.order, None)

    # --- What the engine tells besides ------------------------------------------------------

    def told(self, rows: Mapping[str, EngineRow]) -> None:
        """The engine's own rows of our requests: what the gateway could not know of them.

        `rows` go by the gateway's request id.
        """
        for request_id, (record, entry) in list(self._told.items()):
            row = rows.get(request_id)
            if row is None:
                continue
            record.revision += int(settle(record, entry, row))
            if row.ended_at is not None:
                del self._told[request_id]  # the engine's last word
        for _, entry in self._live.values():
            row = rows.get(entry.request_id)
            if row is not None and row.queued_s is not None:
                entry.queued_s = row.queued_s

    def serves(self, serving: Serving) -> None:
        """What is known of the engine start that serves now."""
        self._serving = serving
        for record in self._sessions.values():
            record.learn(serving)

    def account(self) -> None:
        """Share out the time since the last call among the sessions that were busy in it."""
        now_s = self._clock()
        since_s, self._accounted_s = self._accounted_s, now_s
        busy: dict[str, float] = {}
        runs: dict[str, str | None] = {}
        for record, entry in self._live.values():
            sent_s = entry.passage.sent_at_s if entry.passage else None
            if sent_s is not None and sent_s < now_s:
                busy_s = now_s - max(sent_s, since_s)
                busy[record.session] = max(busy_s, busy.get(record.session, 0.0))
                runs[record.session] = entry.run_id
        for name, busy_s in busy.items():
            if (held := self._sessions.get(name)) is not None:
                held.busy_s += busy_s
                held.share_s += busy_s / len(busy)
                held.served_by(runs[name]).share_s += busy_s / len(busy)

    # --- What is read -----------------------------------------------------------------------

    def records(self) -> tuple[Record, ...]:
        """Every session that is kept, the one that asked last at the end."""
        return tuple(self._sessions.values())

    def find(self, session: str) -> Record | None:
        """One session; None where it is not known."""
        return self._sessions.get(session)

    def restore(self, records: Sequence[Record]) -> None:
        """Put what an earlier service knew before what is known here."""
        for record in records[-KEPT_SESSIONS:]:
            if record.session not in self._sessions:
                self._sessions[record.session] = record
        order = sorted(self._sessions.values(), key=lambda record: record.last_s)
        self._sessions = OrderedDict((record.session, record) for record in order)

    # --- Bounds -----------------------------------------------------------------------------

    def _record(self, identity: Identity, at_s: float) -> Record:
        record = self._sessions.get(identity.session)
        if record is None:
            self._make_room()
            record = Record(
                session=identity.session, origin=identity.origin, started_s=at_s, last_s=at_s
            )
            self._sessions[identity.session] = record
        record.last_s = max(record.last_s, at_s)
        self._sessions.move_to_end(identity.session)
        return record

    def _make_room(self) -> None:
        """Let the oldest idle session go; one under way only if all are."""
        if len(self._sessions) < KEPT_SESSIONS:
            return
        idle = (name for name, each in self._sessions.items() if not (each.live or each.held))
        name = next(idle, None) or next(iter(self._sessions))
        gone = self._sessions.pop(name)
        self.forgotten += 1
        self._live = {key: held for key, held in self._live.items() if held[0] is not gone}
        for key in [key for key, held in self._told.items() if held[0] is gone]:
            del self._told[key]

    def _agent(self, record: Record, identity: Identity, at_s: float) -> Agent:
        agent = record.agents.get(identity.agent)
        if agent is None:
            if len(record.agents) >= KEPT_AGENTS:
                _put_out_agent(record)
            agent = Agent(
                name=identity.agent,
                is_subagent=identity.is_subagent,
                started_s=at_s,
                last_s=at_s,
            )
            record.agents[identity.agent] = agent
        agent.last_s = at_s
        record.agents.move_to_end(identity.agent)
        return agent

    def _bound_blocks(self, newest: Record) -> None:
        """Forget prompts of the sessions that asked longest ago, until what is kept is bounded.

        Of the one that asks, the prompts that are likely to be gone on with stay longest.
        """
        self._unbounded_blocks += sum(len(entry.outline) for entry in newest.live[-1:])
        if self._unbounded_blocks < LOOKED_AT_BLOCKS:
            return
        self._unbounded_blocks = 0
        kept = sum(record.blocks() for record in self._sessions.values())
        for record in self._sessions.values():
            if kept <= KEPT_BLOCKS:
                return
            kept -= record.thin(kept - KEPT_BLOCKS) if record is newest else record.forget()

    def _wall_at(self, monotonic_s: float) -> float:
        return self._wall() - max(0.0, self._clock() - monotonic_s)


def _put_out_agent(record: Record) -> None:
    """Keep only the sums of the sub-agent that asked longest ago and has nothing under way."""
    busy = {entry.agent for entry in record.live}
    others = [name for name in record.agents if name != MAIN_AGENT]
    name = next((name for name in others if name not in busy), others[0] if others else None)
    if name is not None:
        record.former.add(record.agents.pop(name).sums)
