"""What the verdict says, and where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.geometry import Size

from a40console.model.control import Trouble
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.tui.keymap import resolve
from a40console.tui.panels.texts import manual
from a40console.tui.panels.verdict import verdict
from a40console.tui.reading import Link
from tests import make_snapshot as make
from tests.draw_screens import STATES
from tests.tui.drawing import read, text


def test_the_verdict_says_how_fast_for_how_many() -> None:
    lines = text(verdict(read(make.snapshot()), Size(120, 3))).split("\n")
    assert lines[0].startswith(" ● SERVING")
    assert "509 tok/s" in lines[0]
    assert "2 decoding · 1 prefill · 1 queued · 0 held" in lines[0]
    assert lines[1].startswith(" LIMIT       prefill of 5,507 tokens (7f3a)")
    assert "ruled out: vCPU  KV  clocks  gate" in lines[1]
    assert "$0.31/1M now   $0.454/h   $1.45 so far, since engine start" in lines[2]


def test_no_figure_is_said_to_be_since_the_rent() -> None:
    for state in STATES.values():
        assert "rent" not in text(verdict(read(state()), Size(200, 3)))
    assert "since rent" not in text(manual(resolve({}), 80))


def test_a_rate_whose_source_fell_silent_is_no_present_speed() -> None:
    silent = make.snapshot(throughput=make.throughput(509.0, age_s=42.0))
    assert "– tok/s" in text(verdict(read(silent), Size(120, 3)))


def test_the_verdict_of_a_start_is_its_phase_seconds_and_eta() -> None:
    first = text(verdict(read(make.starting()), Size(120, 3))).split("\n")[0]
    assert "STARTING  loading the weights  42 s   ≈ 35 s left" in first


def test_what_the_engine_does_instead_of_serving_is_said_once() -> None:
    lines = text(verdict(read(make.starting()), Size(120, 3))).split("\n")
    assert lines[1] == " LIMIT       – known only while an engine serves"


def test_a_start_without_eta_says_why() -> None:
    base = make.starting()
    unknown = replace(base.engine, eta_s=Missing("first start of this profile"))
    first = text(verdict(read(replace(base, engine=unknown)), Size(120, 3)))
    assert "ETA – (first start of this profile)" in first


def test_the_verdict_of_a_failure_is_its_cause_and_remedy() -> None:
    lines = text(verdict(read(make.failed()), Size(120, 3))).split("\n")
    assert "✖ FAILED" in lines[0]
    assert "out of GPU memory while the KV cache was allocated  exit 1  14:05:56" in lines[0]
    assert "REMEDY      Lower max_model_len to 131072" in lines[1]


@pytest.mark.parametrize("state", [make.failed, make.orphaned, make.hung])
def test_a_remedy_for_something_else_is_none_for_the_engine(
    state: Callable[[], Snapshot],
) -> None:
    other = replace(make.findings()[0], severity="error")
    known, own = state(), state().findings
    both = text(verdict(read(replace(known, findings=(other, *own))), Size(120, 3)))
    assert f"REMEDY      {own[0].remedy}" in both
    alone = text(verdict(read(replace(known, findings=(other,))), Size(120, 3)))
    assert "REMEDY" not in alone
    assert other.remedy not in alone


def test_without_a_service_the_verdict_says_so_above_the_last_one() -> None:
    lost = Link("lost", Trouble(message="No service answers"))
    lines = text(verdict(read(make.snapshot(), link=lost, age_s=12), Size(120, 3))).split("\n")
    assert "NO SERVICE reconnecting, last seen 12 s ago" in lines[0]
    assert "SERVING" in lines[1]


def test_a_silent_service_is_called_silent() -> None:
    first = text(verdict(read(make.snapshot(), age_s=9.0), Size(120, 3))).split("\n")[0]
    assert "the service has gone silent, last seen 9 s ago" in first


def test_another_protocol_is_told_with_its_remedy() -> None:
    trouble = Trouble(
        message="The running service is version 9 and speaks another protocol",
        remedy="Restart it: a40console stop",
    )
    reading = read(make.snapshot(), link=Link("lost", trouble))
    first = text(verdict(reading, Size(140, 3))).split("\n")[0]
    assert "version 9" in first
    assert "a40console stop" in first


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_simulated_stands_in_the_first_line_at_every_width(state: str, width: int) -> None:
    simulated = replace(STATES[state](), simulated=True)
    for link in (Link("live"), Link("lost", Trouble(message="No service answers"))):
        first = text(verdict(read(simulated, link=link), Size(width, 3))).split("\n")[0]
        assert "SIMULATED" in first
        assert "SIMULATED" not in text(verdict(read(STATES[state](), link=link), Size(width, 3)))
