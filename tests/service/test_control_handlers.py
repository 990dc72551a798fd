"""What the controls say where a request waits at the gate, or the gate waits for a switch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import RefusedError
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter
from a40console.model.engine import EngineState
from a40console.model.event import Severity
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.status import EngineStatus
from a40console.service.control_handlers import ControlHandlers
from a40console.service.idle_probe import probe_idle_silicon
from a40console.service.pause_note import PauseNote
from tests import make_snapshot as make

SWITCH = "b is started in place of a"


@dataclass
class Operated:
    """An operator's gate and what it steers."""

    gate: Gatekeeper
    status: EngineStatus


@dataclass
class Steered:
    """The handlers on a gate of their own, with what they noted."""

    handlers: ControlHandlers
    gate: Gatekeeper
    note: PauseNote
    noted: list[tuple[str, str, dict[str, str]]]

    async def do(self, command: str, **arguments: str) -> dict[str, str]:
        return await self.handlers.table()[command](arguments)


def steered(folder: Path, snapshot: Snapshot) -> Steered:
    noted: list[tuple[str, str, dict[str, str]]] = []

    def record(
        kind: str, text: str, severity: Severity = "info", data: dict[str, str] | None = None
    ) -> None:
        noted.append((kind, text, data or {}))

    def connect(run: object) -> Any:
        raise AssertionError("the engine is asked")

    nobody: Any = None
    operator: Any = Operated(Gatekeeper(AdmissionGate()), EngineStatus(state=EngineState.STARTING))
    note = PauseNote(folder / "paused")
    handlers = ControlHandlers(
        operator=operator,
        runs=folder,
        connect=connect,
        dormancy=nobody,
        read_snapshot=lambda: snapshot,
        under_way=lambda: 0,
        meter=Meter(),
        record=record,
        pause_note=note,
        drain_s=1.0,
    )
    return Steered(handlers, operator.gate, note, noted)


def holding(number: int) -> Snapshot:
    snapshot = make.snapshot()
    return replace(snapshot, requests=replace(snapshot.requests, held=number))


async def test_a_pause_that_is_taken_back_in_a_switch_says_what_still_holds(
    tmp_path: Path,
) -> None:
    service = steered(tmp_path, holding(3))
    await service.do("admission.pause")
    number = service.gate.close(SWITCH)
    told = await service.do("admission.resume")
    assert told["report"] == f"The pause is taken back; 3 requests stay held while {SWITCH}."
    assert told["after"] == SWITCH
    kind, text, data = service.noted[-1]
    assert (kind, text[0].upper() + text[1:] + ".") == ("admission.resumed", told["report"])
    assert (data["after"], data["result"]) == (SWITCH, "3 stay held")
    assert data["before"].startswith("admission is paused by ")
    assert (service.gate.closed, service.gate.paused, service.note.read()) == (SWITCH, None, None)
    service.gate.open(number)
    assert service.gate.closed is None


async def test_a_pause_that_is_all_that_holds_is_over_when_it_is_taken_back(
    tmp_path: Path,
) -> None:
    service = steered(tmp_path, holding(3))
    await service.do("admission.pause")
    told = await service.do("admission.resume")
    assert told["report"] == "Admission is resumed, 3 held requests go on."
    assert service.noted[-1][2]["after"] == "open"
    assert service.gate.closed is None


@pytest.mark.parametrize("state", [EngineState.STARTING, EngineState.SERVING])
async def test_a_request_at_the_gate_is_not_aborted_in_the_engine(
    tmp_path: Path, state: EngineState
) -> None:
    held = replace(make.slot(), slot=0, request_id="a40-1", phase="held")
    service = steered(tmp_path, replace(make.snapshot(), slots=(held,)))
    service.gate.close(SWITCH)
    service.handlers.operator.status = EngineStatus(state=state)  # type: ignore[misc]
    with pytest.raises(RefusedError, match="Request a40-1 waits at the gate") as refused:
        await service.do("request.abort", request="0")
    assert refused.value.evidence == SWITCH


@pytest.mark.parametrize("unread", ["running", "waiting"])
async def test_the_probe_does_not_begin_where_it_cannot_see_who_runs(
    tmp_path: Path, unread: str
) -> None:
    snapshot = make.snapshot()
    counts: dict[str, Any] = {"running": 0.0, "waiting": 0.0, unread: Missing("no answer for 9 s")}
    unseen = replace(snapshot, requests=replace(snapshot.requests, **counts))
    run: Any = None
    with pytest.raises(RefusedError, match="is not known: no answer for 9 s"):
        await probe_idle_silicon(run, tmp_path, lambda: unseen, lambda: 0, None)
    with pytest.raises(RefusedError, match="is not known: no snapshot was made yet"):
        await probe_idle_silicon(run, tmp_path, lambda: None, lambda: 0, None)
