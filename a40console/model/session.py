"""A client's session: who asks, what a prompt is made of, and what each request came to.

No text of a request or an answer is ever kept: a prompt is an outline of digests and lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from a40console.model.figures import Figure, Missing, Text

MAIN_AGENT = "main"

Origin: TypeAlias = Literal["header", "metadata", "legacy", "custom", "prefix", "connection"]
"""Where a session's id was read, the surest first."""

BlockKind: TypeAlias = Literal[
    "tool",
    "system",
    "user text",
    "system turn",
    "assistant text",
    "thinking",
    "tool_use",
    "tool_result",
    "image",
    "other",
]

Purpose: TypeAlias = Literal["turn", "compaction", "other"]
"""`turn` goes on with a conversation; `compaction` asks for its summary; `other` is beside it."""

SessionPhase: TypeAlias = Literal["held", "queued", "prefill", "decode", "client", "idle"]
"""Where a session is; `client`: it is the client's turn, which runs a tool or has the answer."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends a request, without anything personal: no device, no account, no token."""

    session: str
    """The client's session id made safe, a prefix's name, or a short hash of key and user agent."""

    origin: Origin
    agent: str
    """`main`, or a sub-agent's type and short id."""

    is_subagent: bool
    prompt_id: str | None
    """The client's own number for what its user asked; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a prompt, known by its digest."""

    kind: BlockKind
    message: int | None
    """Number of its message from 0; None for tools and the system prompt."""

    digest: bytes
    characters: int
    """Length of what the engine is given of it; an image counts 0."""


Outline: TypeAlias = tuple[Block, ...]
"""A prompt's pieces in the order in which the engine reads them: tools, system, messages."""


ToolOrigin: TypeAlias = Literal["client", "seen"]
"""How long a tool ran: as the client told, or from its call going out to its answer coming in.

What was seen includes the wait for the user's permission.
"""

LossKind: TypeAlias = Literal["changed", "evicted", "compacted", "restarted"]
"""Why tokens are computed again; the last two are reasons, not faults.

`changed`: the prompt differs from the one before; `evicted`: it does not, and the engine had it no
more; `compacted`: the client summed its history up; `restarted`: another engine start.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool that an answer called."""

    name: str
    at: str
    """When the call had gone out whole: ISO 8601, UTC."""

    duration_s: Figure
    """Missing while it runs, and where no answer ever came."""

    origin: ToolOrigin
    failed: bool
    """The client answered with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLoss:
    """Tokens that a session had sent before and that were computed again, and why."""

    kind: LossKind
    at: str
    request_id: str
    agent: str
    turn: int
    block: int | None
    """Number of the first block that differs, from 1, in the order the engine reads; else None."""

    block_kind: BlockKind | None
    message: int | None
    """Number of that block's message, from 1; None for tools and the system prompt."""

    cause: str
    """In words: `tool_result of message 12 changed`."""

    remedy: str
    tokens: Figure
    """How many were read again."""

    prefill_s: Figure
    """How long that took: their share of the request's prefill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """One request of a session: a row of its timeline, oldest first."""

    request_id: str
    agent: str
    turn: int
    """The main agent's turn that it is, or in which it was sent; 0 before the first."""

    purpose: Purpose
    repeats: bool
    """The same prompt as the request before it: a retry, no turn of its own."""

    streamed: bool
    live: bool
    at: str
    """When it came: ISO 8601, UTC."""

    client_s: Figure
    """How long the client took for it since the answer before: its tools, its user."""

    queue_s: Figure
    """At our gate and in the engine, before it was begun."""

    prefill_s: Figure
    """From its begin to its first token; with the queue where the two cannot be told apart."""

    decode_s: Figure
    """From the first content to the end."""

    ttft_s: Figure
    """At the gateway, from its arrival to its first content."""

    prompt_tokens: Figure
    reused_tokens: Figure
    reread_tokens: Figure
    generated_tokens: Figure
    tokens_per_s: Figure
    """After the first token, to the last."""

    finish_reason: Text
    status: Figure
    """HTTP status that the client was given."""

    tools: tuple[ToolCall, ...]
    loss: PrefixLoss | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAgent:
    """One agent of a session, its requests added up."""

    agent: str
    is_subagent: bool
    phase: SessionPhase
    requests: int
    prompt_tokens: Figure
    reused_tokens: Figure
    reread_tokens: Figure
    generated_tokens: Figure
    context_tokens: Figure
    started_at: str
    last_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSum:
    """All calls of one tool in a session."""

    name: str
    calls: int
    failed: int
    running: int
    total_s: Figure
    longest_s: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWindow:
    """How much the client believes to have room for, beside what there is."""

    true_tokens: Figure
    """`max_model_len` of the engine that served its last request."""

    used_ratio: Figure
    """Context used of the true window."""

    assumed_tokens: Figure
    """What the client takes for its window, as far as its requests tell."""

    compacts_at_tokens: Figure
    """Context at which the client sums its history up by itself."""

    compactions: int
    overflows: int
    """Requests that were refused because the prompt did not fit."""

    evidence: str
    """What in its requests tells: `max_tokens 32000: the default`."""

    told: bool = False
    """Whether the client was told its window, as its requests show; else it is a guess of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetail:
    """A session in full: what `GET /v1/sessions/{id}` answers.

    A turn is a request of the main agent that goes on with the conversation: its newest message is
    the user's own, or the answer of a tool. Sub-agents' requests, repeats, compaction and requests
    beside the conversation are requests, not turns.
    """

    session: str
    client: Text
    origin: Origin
    model: Text
    """As the client names it."""

    max_tokens: Figure
    """The output limit that it asks for."""

    phase: SessionPhase
    tool: Text
    """What the client runs in phase `client`."""

    phase_s: Figure
    started_at: str
    last_at: str
    turns: int
    requests: int
    failed: int
    aborted: int
    context_tokens: Figure
    """The main agent's last prompt and its answer."""

    window: ClientWindow
    prompt_tokens: Figure
    reused_tokens: Figure
    reread_tokens: Figure
    generated_tokens: Figure
    hit_ratio: Figure
    """Reused ÷ prompt tokens, of the requests whose reuse is known."""

    tokens_per_s: Figure
    """Now, all its slots together."""

    sustained_tokens_per_s: Figure
    """Generated ÷ busy seconds."""

    busy_s: Figure
    """Seconds in which the engine had a request of it."""

    cost_usd: Figure
    """The rent of its busy seconds, shared evenly with the sessions busy beside it.

    Each second at the price of the engine that served it; without those that had none, and a
    simulated one's only while one serves.
    """

    usd_per_million: Figure
    """That, a million tokens that the same engines generated."""

    ttft_s: tuple[float, ...]
    """By turn, oldest first."""

    agents: tuple[SessionAgent, ...]
    """The main agent first."""

    tools: tuple[ToolSum, ...]
    """Most called first."""

    timeline: tuple[SessionRequest, ...]
    """Its newest requests, oldest first."""

    forgotten_requests: int
    """Older ones that are only in the sums."""

    losses: tuple[PrefixLoss, ...]
    """The newest, oldest first."""

    removed: dict[str, int]
    """What the gateway takes out of its requests, by kind, and how often."""

    safeguards: bool
    """Auto mode: it asks for a classifier that no engine here has."""

    capturing: bool
    """Whether the text of its requests and answers is written to files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSigns:
    """What about a session speaks for something that goes wrong, as findings judge it."""

    session: str
    silent_s: float
    """Since its last request ended; 0 while one is under way."""

    loss: PrefixLoss | None
    """The newest prefix that its client changed, of the last ten minutes."""

    losses: int
    """How many such changes are kept."""

    window_wrong: bool
    """The client takes its window for larger than it is."""

    window_evidence: str
    overflows: int
    """Prompts refused for their length; 0 once the client has summed its history up."""

    nearly_full: bool
    """Its context went beyond nine tenths of the true window without being summed up."""

    safeguards: bool
    removed: dict[str, int]
    fallbacks: int
    """Whole answers asked for again after a stream that had delivered some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDisagreement:
    """One prompt that `count_tokens` and the engine count differently."""

    counted_tokens: int
    served_tokens: int
