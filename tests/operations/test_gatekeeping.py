"""Who holds the gate: an operator's pause lies beneath whatever else closes and opens it."""

from __future__ import annotations

from a40console.gateway.hold import AdmissionGate
from a40console.operations.gatekeeping import Gatekeeper


def gatekeeper() -> tuple[Gatekeeper, AdmissionGate]:
    gate = AdmissionGate()
    return Gatekeeper(gate), gate


async def test_a_pause_closes_and_a_resume_opens() -> None:
    keeper, gate = gatekeeper()
    keeper.pause("admission is paused by alice")
    assert gate.closed == keeper.paused == "admission is paused by alice"
    keeper.resume()
    assert gate.closed is None
    assert keeper.paused is None


async def test_a_switch_during_a_pause_leaves_it_paused() -> None:
    keeper, gate = gatekeeper()
    keeper.pause("paused")
    with keeper.held("beta is started"):
        assert gate.closed == "beta is started"
    assert gate.closed == "paused"


async def test_a_resume_during_a_switch_opens_when_the_switch_has_ended() -> None:
    keeper, gate = gatekeeper()
    keeper.pause("paused")
    with keeper.held("beta is started"):
        keeper.resume()
        assert gate.closed == "beta is started"
    assert gate.closed is None


async def test_a_pause_during_a_switch_takes_over_from_it() -> None:
    keeper, gate = gatekeeper()
    with keeper.held("beta is started"):
        keeper.pause("paused")
        assert gate.closed == "beta is started"
    assert gate.closed == "paused"


async def test_a_pause_alone_is_no_reason_to_expect_an_engine() -> None:
    keeper, gate = gatekeeper()
    keeper.pause("paused")
    assert not gate.engine_expected
    with keeper.held("beta is started"):
        assert gate.engine_expected
        keeper.pause("paused by bob")
        assert gate.engine_expected
    assert (gate.closed, gate.engine_expected) == ("paused by bob", False)
    keeper.resume()
    with keeper.held("beta is started"):
        pass
    assert (gate.closed, gate.engine_expected) == (None, False)
