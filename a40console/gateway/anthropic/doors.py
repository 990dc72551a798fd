"""What the requests of the Messages API share, and what each has once the engine answers."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.gateway.anthropic.answers import Answer
from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.bodies import BodyLimits, HeldBudget
from a40console.gateway.dialect import DialectOf
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter
from a40console.gateway.passthrough import Opened
from a40console.gateway.reading import BodyReading
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import EngineSessions, UpstreamState


@dataclass(frozen=True, slots=True)
class MessagesDoors:
    """What every request of the Messages API shares."""

    state: UpstreamState
    gate: AdmissionGate
    meter: Meter
    sessions: EngineSessions
    budget: HeldBudget
    limits: BodyLimits
    dialects: DialectOf
    book: SessionBook
    timing: Timing
    reading: BodyReading


@dataclass(frozen=True, slots=True)
class Question:
    """What is kept of a request while its answer comes."""

    answer: Answer
    stream: bool
    model: str | None
    prompt_estimate: int


@dataclass(frozen=True, slots=True)
class OpenMessage(Opened):
    """A message of which the engine has sent a good head."""

    question: Question
