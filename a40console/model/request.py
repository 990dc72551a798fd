"""Requests as the gateway and the engine each see them, before they are joined into slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["held", "queued", "prefill", "decode", "idle"]
Method = Literal["engine", "usage", "apportioned"]


@dataclass(frozen=True, slots=True)
class TokenMark:
    """How many tokens a request had emitted at one instant."""

    at_s: float
    """Monotonic clock of this machine."""

    tokens: int


@dataclass(frozen=True, slots=True)
class SharedPrompt:
    """What a prompt has in common with its session's request and answer before."""

    tokens: float
    """0 for a prompt that is new."""

    lost: float
    """Of these, what stands beyond the first difference: no prefix cache can hold it."""

    exact: bool
    """Whether the engine counted them, rather than we by the share of characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRow:
    """One request that passes through our gateway."""

    request_id: str
    """The id sent to the engine as X-Request-Id."""

    route: Literal["messages", "chat", "completions"]
    client: str | None
    """From the User-Agent: `claude-code`, `openai-python`, `curl`."""

    session: str | None
    agent: str | None
    model: str | None
    max_tokens: int | None
    received_at_s: float
    """Monotonic clock, like every time here."""

    sent_at_s: float | None
    first_token_at_s: float | None
    last_token_at_s: float | None
    ended_at_s: float | None
    ended_at: str | None
    """ISO 8601, UTC."""

    prompt_tokens: int | None
    cached_tokens: int | None
    generated_tokens: int | None
    """From usage or per-chunk counts; None while only characters are known."""

    characters: int
    """Streamed characters of text, thinking and tool arguments."""

    method: Method
    finish_reason: str | None
    """`stop`, `length`, `tool_use`, `aborted`, `error`; None while it runs."""

    status: int | None
    marks: tuple[TokenMark, ...] = ()
    """Recent token counts, oldest first, covering at least the last 10 s."""

    shared: SharedPrompt | None = None
    """None where the prompt was not outlined."""

    held_at_s: float | None = None
    """When it began to wait at the gate; None where it never did."""

    @property
    def has_come(self) -> bool:
        """Whether all of it is here: it is sent to an engine, or waits at the gate for one."""
        return self.sent_at_s is not None or self.held_at_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """One request as the engine itself reports it: vLLM's plugin or llama-server's slots."""

    engine_id: str
    """The engine's own id; llama-server: `slot/task`."""

    external_id: str | None
    """The client's id where the engine keeps it."""

    slot: int | None
    phase: Phase
    prompt_tokens: int | None
    cached_tokens: int | None
    generated_tokens: int
    passes: int | None
    max_tokens: int | None
    ttft_s: float | None
    arrived_at_s: float | None
    """Monotonic clock of this machine."""

    first_token_at_s: float | None
    last_token_at_s: float | None
    prefill_ratio: float | None = None
    finish_reason: str | None = None
    ended_at_s: float | None = None
    ended_at: str | None = None
    queued_s: float | None = None
    """Seconds from its arrival in the engine until that began it."""

    prefill_s: float | None = None
    """Seconds from there to its first token."""
