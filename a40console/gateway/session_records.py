"""What the book of sessions writes down: sums, tools, requests, agents, sessions."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from a40console.gateway.meter import Passage
from a40console.gateway.prefix import Comparison
from a40console.gateway.session_runs import Served, Serving, put_together
from a40console.model.request import SharedPrompt
from a40console.model.session import (
    MAIN_AGENT,
    Origin,
    Outline,
    PrefixLoss,
    Purpose,
    ToolOrigin,
)

KEPT_TURNS = 500
KEPT_BASELINES = 6
"""Conversations of one agent's name that are told apart: a client need not name its sub-agents."""

KEPT_AGENTS = 32
KEPT_LOSSES = 32
KEPT_TOOL_NAMES = 64
OPEN_TOOLS = 64


@dataclass(slots=True)
class Sums:
    """Requests added up; what the engine did not tell of one is counted beside the sum."""

    requests: int = 0
    prompt: int = 0
    prompt_untold: int = 0
    reused: int = 0
    reused_of: int = 0
    """Prompt tokens of the requests whose reuse is told."""

    reused_untold: int = 0
    reread: float = 0.0
    reread_guessed: int = 0
    """Requests of which it is an estimate."""

    reread_untold: int = 0
    generated: int = 0
    generated_untold: int = 0

    def add(self, other: Sums, sign: int = 1) -> None:
        """Count another's requests in, or out again."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + sign * getattr(other, name))


@dataclass(slots=True, kw_only=True)
class Tool:
    """A call, and its answer once it came."""

    name: str
    call_id: str
    called_s: float
    """Unix time."""

    duration_s: float | None = None
    origin: ToolOrigin = "seen"
    failed: bool = False
    given_up: bool = False
    """No answer will come any more."""


@dataclass(slots=True, kw_only=True)
class Baseline:
    """The last prompt of a conversation that the engine has read."""

    outline: Outline
    prompt_tokens: int
    generated_tokens: int | None
    run_id: str | None


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request, from its arrival on."""

    request_id: str
    agent: str
    turn: int
    purpose: Purpose
    at_s: float
    """Unix time of its arrival."""

    streamed: bool = True
    repeats: bool = False
    client_s: float | None = None
    held_s: float | None = None
    queued_s: float | None = None
    waited_s: float | None = None
    """From being sent to the engine to its first token, the queue there included."""

    decode_s: float | None = None
    ttft_s: float | None = None
    tokens_per_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    shared: SharedPrompt | None = None
    finish_reason: str | None = None
    status: int | None = None
    ended_s: float | None = None
    """Unix time; None while it is under way."""

    delivered: bool = False
    """Whether any content came of it."""

    tools: list[Tool] = field(default_factory=list)
    loss: PrefixLoss | None = None

    passage: Passage | None = None
    """While it is under way."""

    outline: Outline = ()
    comparison: Comparison | None = None
    baseline: Baseline | None = None
    """What it was compared with; until it takes its place."""

    run_id: str | None = None
    restarted: bool = False
    """Whether another start of the engine read the prompt before."""

    after_compaction: bool = False
    counted: Sums | None = None
    """What of it stands in the sums."""

    @property
    def live(self) -> bool:
        """Whether it is under way."""
        return self.ended_s is None

    @property
    def is_turn(self) -> bool:
        """Whether it goes on with the main agent's conversation."""
        return self.agent == MAIN_AGENT and self.purpose == "turn" and not self.repeats

    @property
    def worked(self) -> bool:
        """Whether the engine did anything for it that is worth counting."""
        return self.delivered or self.finish_reason not in ("aborted", "error")

    @property
    def answered(self) -> bool:
        """Whether an answer came whole, with something in it."""
        whole = self.finish_reason not in ("aborted", "error")
        return not self.live and self.delivered and whole and self.generated_tokens not in (0, 1)

    def reread(self) -> tuple[float, bool] | None:
        """Tokens read again, and whether that is exact; None where it cannot be told."""
        shared = self.shared
        if shared is None:
            return None
        if self.cached_tokens is not None:
            most = shared.tokens
            if self.prompt_tokens is not None:
                most = min(most, self.prompt_tokens)
            return max(0.0, most - self.cached_tokens), shared.exact
        if shared.lost or not shared.tokens:
            return shared.lost, not shared.tokens
        return None

    def contribution(self) -> Sums:
        """What it adds to the sums."""
        sums = Sums(requests=1)
        if not self.worked:
            return sums
        for told, name in (
            (self.prompt_tokens, "prompt"),
            (self.cached_tokens, "reused"),
            (self.generated_tokens, "generated"),
        ):
            key = name if told is not None else f"{name}_untold"
            setattr(sums, key, 1 if told is None else told)
        if self.cached_tokens is not None and self.prompt_tokens is not None:
            sums.reused_of = self.prompt_tokens
        again = self.reread()
        if again is None:
            sums.reread_untold = 1
        else:
            sums.reread, sums.reread_guessed = again[0], int(not again[1])
        return sums


@dataclass(slots=True, kw_only=True)
class Agent:
    """One agent of a session."""

    name: str
    is_subagent: bool
    started_s: float
    last_s: float
    sums: Sums = field(default_factory=Sums)
    baselines: list[Baseline] = field(default_factory=list)
    """Of its conversations, the newest last."""

    last: Entry | None = None
    compacted: bool = False
    """It asked for a summary of its history, and got one."""

    context_tokens: int | None = None
    context_exact: bool = True

    def blocks(self) -> int:
        """How many pieces of prompts it keeps digests of."""
        last = self.last.outline if self.last else ()
        return len(last) + sum(len(each.outline) for each in self.baselines)

    def forget(self) -> int:
        """Let the prompts go, so many pieces: what comes next counts as new."""
        gone = self.blocks()
        self.baselines.clear()
        if self.last is not None:
            self.last.outline = ()
        return gone

    def thin(self) -> int:
        """Keep only the conversation that was last gone on with; how many pieces went."""
        gone = sum(len(each.outline) for each in self.baselines[:-1])
        del self.baselines[:-1]
        return gone


@dataclass(slots=True, kw_only=True)
class ToolTally:
    """All calls of one tool."""

    calls: int = 0
    failed: int = 0
    timed: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Record:
    """One session."""

    session: str
    origin: Origin
    started_s: float
    last_s: float
    revision: int = 0
    """Grows with every change worth keeping."""

    client: str | None = None
    model: str | None = None
    max_tokens: int | None = None
    turns: int = 0
    failed: int = 0
    aborted: int = 0
    compactions: int = 0
    compacted_at_tokens: int | None = None
    overflows: int = 0
    fallbacks: int = 0
    """Whole answers asked for again after a stream that had delivered some."""

    busy_s: float = 0.0
    share_s: float = 0.0
    """Busy seconds, each divided by how many sessions were busy in it."""

    run_id: str | None = None
    """Which start of the engine served its last request."""

    window_tokens: int | None = None
    """The window of that one, once it has told."""

    served: dict[str, Served] = field(default_factory=dict)
    """What each start of the engine did for it, by its id, the oldest first."""

    overfull: bool = False
    """A prompt was refused for its length, and the client has not summed its history up since."""

    safeguards: bool = False
    """Whether its newest turn asks for a classifier."""

    billed: bool = False
    """Whether it carries Claude Code's billing line."""

    hinted: bool = False
    """Whether it carries Claude Code's hint headers, which it sends where it is told to."""

    highest_context_tokens: int = 0
    """Of the main agent, since its last compaction."""

    removed: Counter[str] = field(default_factory=Counter)
    agents: OrderedDict[str, Agent] = field(default_factory=OrderedDict)
    former: Sums = field(default_factory=Sums)
    """Of agents that are no longer kept."""

    entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT_TURNS))
    live: list[Entry] = field(default_factory=list)
    held: dict[int, tuple[str, float]] = field(default_factory=dict)
    """By order: the agent and since when (Unix time), of requests that no engine could take yet."""

    losses: deque[PrefixLoss] = field(default_factory=lambda: deque(maxlen=KEPT_LOSSES))
    tools: dict[str, ToolTally] = field(default_factory=dict)
    open_tools: OrderedDict[str, tuple[str, Tool]] = field(default_factory=OrderedDict)
    """By call id: which agent's, and the call."""

    @property
    def main(self) -> Agent | None:
        """Its main agent, once it was seen."""
        return self.agents.get(MAIN_AGENT)

    def served_by(self, run_id: str | None) -> Served:
        """What a start of the engine did for it."""
        served = self.served.setdefault(run_id or "", Served())
        put_together(self.served)
        return served

    def goes_to(self, run_id: str | None) -> None:
        """A request goes to this start; what was full for another one need not be for it."""
        if run_id != self.run_id:
            self.window_tokens, self.compacted_at_tokens = None, None
            self.overfull, self.highest_context_tokens = False, 0
        self.run_id = run_id

    def learn(self, serving: Serving) -> None:
        """What is known of the start that serves now, where it served this session."""
        if serving.run_id == self.run_id and serving.window_tokens is not None:
            self.revision += int(self.window_tokens != serving.window_tokens)
            self.window_tokens = serving.window_tokens
        served = self.served.get(serving.run_id or "")
        if served is not None and serving.simulated is not None:
            before = served.usd_per_hour, served.simulated
            served.usd_per_hour, served.simulated = serving.usd_per_hour, serving.simulated
            self.revision += int(before != (served.usd_per_hour, served.simulated))

    def sums(self) -> Sums:
        """All its requests."""
        whole = Sums()
        whole.add(self.former)
        for agent in self.agents.values():
            whole.add(agent.sums)
        return whole

    def blocks(self) -> int:
        """How many pieces of prompts it keeps digests of."""
        return sum(agent.blocks() for agent in self.agents.values())

    def forget(self) -> int:
        """Let all its prompts go; how many pieces went."""
        return sum(agent.forget() for agent in self.agents.values())

    def thin(self, pieces: int) -> int:
        """Let so many pieces of its prompts go, or more; how many went.

        First the older conversations of each agent, then all of the agents that asked longest ago.
        The one that asked last keeps its newest.
        """
        gone = 0
        *others, asking = self.agents.values()
        for shed in (
            *(agent.thin for agent in (*others, asking)),
            *(agent.forget for agent in others),
        ):
            if gone >= pieces:
                break
            gone += shed()
        return gone
