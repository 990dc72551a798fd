"""What the requests of OpenAI's routes share, and what each has once the engine answers."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.bodies import BodyLimits, HeldBudget
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter
from a40console.gateway.model_names import NamesOf
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import EngineSessions, Lease, Upstream, UpstreamState


@dataclass(frozen=True, slots=True)
class Passthrough:
    """What every request through the gateway shares."""

    state: UpstreamState
    gate: AdmissionGate
    meter: Meter
    sessions: EngineSessions
    budget: HeldBudget
    limits: BodyLimits
    book: SessionBook
    timing: Timing
    names: NamesOf


@dataclass(frozen=True, slots=True)
class Opened:
    """A request of which the engine has sent the head of an answer."""

    upstream: Upstream
    lease: Lease
    response: aiohttp.ClientResponse

    def close(self) -> None:
        """Let go of the engine, and of what still comes of the answer."""
        self.response.close()
        self.lease.end()
