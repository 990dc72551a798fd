"""What the control API answers with, besides snapshots and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from a40console.model.event import Event
from a40console.model.figures import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who answers on the socket: compared before anything else is asked."""

    version: str
    schema: int
    protocol: int
    pid: int
    gateway_url: str | None
    """Where clients reach the models; None while the gateway is not listening."""

    events_last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSummary:
    """A profile as the picker lists it."""

    name: str
    title: str
    kind: str
    model: str
    origin: str
    """`shipped`, or the file it was read from."""

    speculation: str | None
    """`ngram 24, off`; None where the profile has none."""

    usd_per_hour: float | None
    ready: bool
    """Whether this machine has what it needs."""

    why_not: str | None
    """What is missing, and the line that mends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of the engine's output."""

    path: str | None
    """The file it comes from; None where there is no engine."""

    text: str
    next_offset: int
    """Where the next read continues, in bytes; smaller than before after a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """One second of the past, for charts."""

    at_s: float
    """Unix time."""

    generation_tokens_per_s: Figure
    prefill_tokens_per_s: Figure
    running: Figure
    waiting: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEnvironment:
    """What a client must be told to reach the gateway."""

    variables: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error for the operator: what happened, the evidence, what to do."""

    message: str
    evidence: str = ""
    remedy: str = ""
    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command went; read again by id until its state is final."""

    command: str
    id: str
    state: Literal["running", "done", "refused", "failed"]
    result: dict[str, str] = field(default_factory=dict)
    trouble: Trouble | None = None
    events: tuple[Event, ...] = ()
    """What happened while it ran."""
