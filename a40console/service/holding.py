"""The gateway's gate with the operator's limits, and the journal's word on what the gateway did."""

from __future__ import annotations

from a40console.config import GatewaySettings
from a40console.gateway.bodies import MIB
from a40console.gateway.hold import AdmissionGate, HoldLimits
from a40console.gateway.meter import Passage
from a40console.gateway.model_names import ModelNames
from a40console.operations.roles import Recorder


def admission_gate(settings: GatewaySettings, record: Recorder) -> AdmissionGate:
    """The gate; each request that is sent a second time is an event, or that could not be."""

    def resent(passage: Passage) -> None:
        text = f"the engine ended before it answered {_whose(passage)}: the next one is asked"
        record("request.resent", text, "warn", _data(passage))

    def unkept(passage: Passage, size: int) -> None:
        record(
            "request.lost",
            f"the engine ended before it answered {_whose(passage)}, and the request was not kept "
            f"to ask the next one ({size / MIB:.1f} MiB): the client is told to send it again",
            "warn",
            {**_data(passage), "bytes": str(size)},
        )

    limits = HoldLimits(settings.hold_requests, settings.hold_mib * MIB, settings.hold_s)
    return AdmissionGate(limits, on_resent=resent, on_unkept=unkept)


def model_names(record: Recorder) -> ModelNames:
    """By which names the engine is asked; each that it does not know is an event, once a run."""

    def renamed(passage: Passage, served: str) -> None:
        asked = passage.model or "a name that cannot be shown"
        record(
            "request.renamed",
            f"{_whose(passage)} asks for {asked}, which the engine does not have: {served} answers",
            "info",
            {**_data(passage), "before": asked, "after": served},
        )

    return ModelNames(renamed)


def _whose(passage: Passage) -> str:
    return passage.session or passage.client or "a client"


def _data(passage: Passage) -> dict[str, str]:
    return {
        "request": passage.request_id,
        "session": passage.session or "",
        "client": passage.client or "",
        "route": passage.route,
    }
