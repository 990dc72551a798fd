"""The gateway's gate with the operator's limits, and the journal's word on what it did."""

from __future__ import annotations

from a40console.config import GatewaySettings
from a40console.gateway.bodies import MIB
from a40console.gateway.hold import AdmissionGate, HoldLimits
from a40console.gateway.meter import Passage
from a40console.operations.roles import Recorder


def admission_gate(settings: GatewaySettings, record: Recorder) -> AdmissionGate:
    """The gate; each request that is sent a second time is an event."""

    def note(passage: Passage) -> None:
        whose = passage.session or passage.client or "a client"
        record(
            "request.resent",
            f"the engine ended before it answered {whose}: the next one is asked",
            "warn",
            {
                "request": passage.request_id,
                "session": passage.session or "",
                "client": passage.client or "",
                "route": passage.route,
            },
        )

    limits = HoldLimits(settings.hold_requests, settings.hold_mib * MIB, settings.hold_s)
    return AdmissionGate(limits, on_resent=note)
