"""Scenes that the advisor judges, and what it finds in them."""

from __future__ import annotations

from collections.abc import Callable

from a40console.advisor.evidence import Evidence
from a40console.advisor.findings import findings
from a40console.model.command import BY_ID
from a40console.model.engine import EngineEnd
from a40console.model.event import Finding
from a40console.model.figures import Missing
from a40console.model.snapshot import Slot, Snapshot

Scene = Callable[..., Snapshot]
MakeSlot = Callable[..., Slot]
HUNG = Evidence(generation_flat_s=45.0, steps_flat_s=45.0, health_status=200)
GONE = Missing("not known in this test")


def codes(snapshot: Snapshot, extra: Evidence) -> list[str]:
    return [finding.code for finding in findings(snapshot, extra)]


def only(snapshot: Snapshot, extra: Evidence) -> Finding:
    [finding] = findings(snapshot, extra)
    assert finding.evidence
    assert finding.remedy
    assert finding.command is None or finding.command in BY_ID
    return finding


END = EngineEnd(
    code=Missing("a signal ended it"),
    signal="SIGKILL",
    cause="the kernel killed it for want of memory",
    at="2026-11-29T14:07:30.000Z",
)
