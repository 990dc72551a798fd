"""A hang is told from work, from rest and from what is explained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.advisor.evidence import Evidence, StalledStart
from a40console.advisor.findings import findings
from a40console.advisor.hang import is_hung
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot, SourceStatus
from tests.advisor.scenes import GONE, HUNG, MakeSlot, Scene, codes, only


def test_a_hang_is_named_though_health_says_200(scene: Scene) -> None:
    snapshot = scene(requests={"running": 2, "waiting": 3}, gpu={"utilization_ratio": 0.0})
    found = only(snapshot, HUNG)
    assert found.code == "engine-hung"
    assert found.title == "The engine hangs: no token for 45 s"
    assert found.evidence == (
        "no token for 45 s · no step for 45 s · 2 running · 3 waiting"
        " · /health says 200 · GPU 0 at 0 %"
    )
    assert found.command == "engine.restart"


def test_both_signals_are_shown_when_health_agrees_later(scene: Scene) -> None:
    found = only(scene(), replace(HUNG, health_status=503))
    assert "no token for 45 s" in found.evidence
    assert "/health says 503" in found.evidence
    unanswered = only(scene(), replace(HUNG, health_status=Missing("timed out")))
    assert "/health is not known: timed out" in unanswered.evidence


def test_an_unhealthy_engine_is_found_while_idle(scene: Scene) -> None:
    snapshot = scene(requests={"running": 0}, slots=())
    found = only(snapshot, Evidence(health_status=503))
    assert found.code == "engine-hung"
    assert found.title == "The engine says that it is not healthy"
    loading = scene(engine={"state": EngineState.STARTING})
    assert codes(loading, Evidence(health_status=503)) == [], "a loading engine answers 503 too"


@pytest.mark.parametrize(
    ("blocks", "extra"),
    [
        ({"requests": {"running": 0}}, HUNG),
        ({"requests": {"running": GONE, "waiting": GONE}}, HUNG),
        ({"requests": {"age_s": 90.0}}, HUNG),
        ({"engine": {"paused": True}}, HUNG),
        ({"engine": {"state": EngineState.ASLEEP}}, HUNG),
        ({}, replace(HUNG, generation_flat_s=5.0)),
        ({}, replace(HUNG, steps_flat_s=1.0)),
        ({}, replace(HUNG, generation_flat_s=GONE)),
    ],
)
def test_a_standstill_that_is_explained_is_no_hang(
    scene: Scene, blocks: dict[str, object], extra: Evidence
) -> None:
    assert codes(scene(**blocks), extra) == []


def test_a_prefill_that_nothing_counts_is_given_more_time(
    scene: Scene, make_slot: MakeSlot
) -> None:
    snapshot = scene(slots=(make_slot("prefill"),))
    quiet = replace(HUNG, steps_flat_s=GONE)
    assert codes(snapshot, quiet) == []
    assert codes(snapshot, replace(quiet, generation_flat_s=301.0)) == ["engine-hung"]
    assert codes(scene(), quiet) == ["engine-hung"]


def test_the_state_hung_holds_while_the_signals_do(scene: Scene) -> None:
    hung = scene(engine={"state": EngineState.HUNG})
    assert is_hung(hung.engine, hung.requests, hung.slots, HUNG)
    assert codes(hung, HUNG) == ["engine-hung"]
    moving = replace(HUNG, generation_flat_s=0.0)
    assert not is_hung(hung.engine, hung.requests, hung.slots, moving)


STUCK = StalledStart(
    for_s=130.0,
    cause="the engine core does not answer",
    evidence="Waiting for 1 core engine proc(s) to start",
    remedy="Restart it.",
)


def test_a_start_without_progress_says_what_came_last(scene: Scene) -> None:
    snapshot = scene(engine={"state": EngineState.STARTING, "phase": "load"})
    found = only(snapshot, Evidence(stall=STUCK))
    assert found.code == "start-stalled"
    assert found.title == "The start is stuck for 2 m 10 s: the engine core does not answer"
    assert found.evidence == (
        "phase load · last: Waiting for 1 core engine proc(s) to start · GPU 0 at 97 %"
    )
    assert found.remedy == "Restart it.", "the verdict of whoever reads the log, and no other"
    assert codes(snapshot, Evidence()) == []
    assert codes(scene(), Evidence(stall=STUCK)) == []


def test_an_engine_that_answers_nothing_hangs_though_its_counters_cannot_tell(
    scene: Scene,
) -> None:
    def silent(age_s: float) -> Snapshot:
        own = [
            SourceStatus(name=name, state="failed", age_s=age_s, reason="timed out")
            for name in ("llamacpp.metrics", "llamacpp.slots")
        ]
        host = SourceStatus(name="host", state="ok", age_s=0.1, reason=None)
        return replace(scene(), sources=(*own, host))

    quiet = Evidence(generation_flat_s=Missing("not read"), health_status=Missing("timed out"))
    found = [f for f in findings(silent(41.0), quiet) if f.code == "engine-hung"]
    assert len(found) == 1
    assert "no answer for 41 s" in found[0].title
    assert "engine-hung" not in codes(silent(12.0), quiet)


def test_a_stuck_start_that_a_profile_mends_leads_to_the_fix(scene: Scene) -> None:
    snapshot = scene(engine={"state": EngineState.STARTING, "phase": "starting"})
    fix = 'environment.NCCL_P2P_DISABLE: not set → "1"'
    found = only(snapshot, Evidence(stall=replace(STUCK, fix=fix)))
    assert found.command == "profile.fix"
    assert found.remedy == f"Restart it. This change of the profile mends it: {fix}."
    assert only(snapshot, Evidence(stall=STUCK)).command == "engine.restart"


def test_a_hang_cites_the_line_that_tells_of_a_wait_in_vain(scene: Scene) -> None:
    words = "No available shared memory broadcast block found in 60 seconds."
    found = only(scene(), replace(HUNG, silent_words=words, health_status=200))
    assert "/health says 200" in found.evidence
    assert f"log: {words}" in found.evidence
