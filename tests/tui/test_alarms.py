"""Alarms: for what is grave and new, once, not too often, in a form that the terminal takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Finding
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.tui.alarms import FORGET_AFTER_S, RING_EVERY_S, Alarms, sequence
from tests import make_snapshot as make

CALM = replace(make.snapshot(), findings=())


class Watch:
    """Alarms on a clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.alarms = Alarms(lambda: self.now_s)

    def see(self, snapshot: Snapshot, after_s: float = 1.0) -> str:
        self.now_s += after_s
        return self.alarms.observe(snapshot)


def with_findings(*codes: str, severity: str = "error") -> Snapshot:
    found = tuple(
        Finding(
            code=code,
            severity=severity,  # type: ignore[arg-type]
            title=f"{code} is wrong",
            evidence="",
            remedy="",
            since="",
            command="",
        )
        for code in codes
    )
    return replace(CALM, findings=found)


def in_state(state: EngineState) -> Snapshot:
    end = EngineEnd(code=Missing("-"), signal="SIGKILL", cause="killed for memory", at="")
    return replace(CALM, engine=replace(CALM.engine, state=state, exit=end))


def test_what_is_there_already_rings_nothing() -> None:
    watch = Watch()
    assert watch.see(with_findings("DISK")) == ""
    assert watch.see(with_findings("DISK")) == ""


def test_a_new_error_rings_once() -> None:
    watch = Watch()
    watch.see(CALM)
    assert watch.see(with_findings("DISK")) == "DISK is wrong"
    assert [watch.see(with_findings("DISK"), 60) for _ in range(5)] == [""] * 5


def test_warnings_ring_nothing() -> None:
    watch = Watch()
    watch.see(CALM)
    assert watch.see(with_findings("DISK", severity="warn")) == ""


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (EngineState.FAILED, "the engine ended: killed for memory"),
        (EngineState.ORPHANED, "the engine ended: killed for memory"),
        (EngineState.HUNG, "the engine hangs"),
        (EngineState.STOPPED, ""),
    ],
)
def test_an_engine_that_ends_or_hangs_rings_and_one_that_was_stopped_does_not(
    state: EngineState, said: str
) -> None:
    watch = Watch()
    watch.see(CALM)
    assert watch.see(in_state(state)) == said


def test_an_engine_that_is_back_before_the_next_snapshot_rings_too() -> None:
    watch = Watch()
    watch.see(CALM)
    again = replace(CALM, engine=replace(CALM.engine, restarts=CALM.engine.restarts + 1))
    assert "started again" in watch.see(again)


def test_what_comes_soon_after_a_ring_waits_and_rings_together() -> None:
    watch = Watch()
    watch.see(CALM)
    watch.see(with_findings("DISK"))
    assert watch.see(with_findings("DISK", "PORT"), 5) == ""
    assert watch.see(with_findings("DISK", "PORT", "GPU"), 5) == ""
    both = watch.see(with_findings("DISK", "PORT", "GPU"), RING_EVERY_S)
    assert both == "PORT is wrong; GPU is wrong"


def test_what_is_over_before_its_turn_does_not_ring() -> None:
    watch = Watch()
    watch.see(CALM)
    watch.see(with_findings("DISK"))
    watch.see(with_findings("DISK", "PORT"), 5)
    assert watch.see(with_findings("DISK"), RING_EVERY_S) == ""


def test_a_finding_that_flickers_rings_once_and_again_after_a_long_absence() -> None:
    watch = Watch()
    watch.see(CALM)
    assert watch.see(with_findings("DISK"))
    for _ in range(4):
        assert watch.see(CALM, 40) == ""
        assert watch.see(with_findings("DISK"), 40) == ""
    watch.see(CALM)
    assert watch.see(with_findings("DISK"), FORGET_AFTER_S + 1)


def test_muted_alarms_are_over_when_they_are_heard_again() -> None:
    watch = Watch()
    watch.see(CALM)
    watch.alarms.muted = True
    assert watch.see(with_findings("DISK")) == ""
    watch.alarms.muted = False
    assert watch.see(with_findings("DISK"), 60) == ""
    assert watch.see(with_findings("DISK", "PORT"), 60) == "PORT is wrong"


def test_the_bell_and_the_notification() -> None:
    assert sequence("x", "bell", "") == "\a"
    assert sequence("x", "off", "tmux") == ""
    assert sequence("x", "osc9", "") == "\x1b]9;a40console: x\a"
    assert sequence("x", "both", "tmux") == "\a\x1bPtmux;\x1b\x1b]9;a40console: x\a\x1b\\"
    assert sequence("x", "osc9", "screen") == "\x1bP\x1b]9;a40console: x\a\x1b\\"


def test_a_text_from_elsewhere_cannot_end_the_sequence() -> None:
    told = sequence("a\a\x1b]52;c;eA==\a" + "b" * 500, "osc9", "")
    assert told.count("\a") == 1
    assert told.count("\x1b") == 1
    assert len(told) < 200
