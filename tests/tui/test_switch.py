"""A switch of the engine as the console shows it, from its cost to its last step."""

from __future__ import annotations

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Missing, Text
from a40console.model.switching import SwitchInfo, SwitchStep
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, until
from tests.tui.fake_service import FakeService
from tests.tui.test_console import verdict


@pytest.mark.parametrize(
    ("step", "detail", "shown"),
    [
        ("prepare", "fetching 45 of 98 MB, 12.0 MB/s", "fetching 45 of 98 MB, 12.0 MB/s"),
        ("drain", "at most 30 s", "running requests end, at most 30 s"),
        ("stop", Missing("nothing to add"), "what served is stopped"),
    ],
)
async def test_a_switch_shows_how_far_it_is(step: SwitchStep, detail: Text, shown: str) -> None:
    states = {"prepare": EngineState.SERVING, "drain": EngineState.DRAINING}
    switch = SwitchInfo(
        what="switch to beta",
        profile="beta",
        step=step,
        step_s=4.0,
        total_s=9.0,
        detail=detail,
        who="alice@pod on pts/3, pid 7",
    )
    engine = make.engine(state=states.get(step, EngineState.STOPPING), switch=switch)
    async with running(FakeService(make.snapshot(engine=engine))) as (app, pilot):
        await until(pilot, lambda: f"switch to beta  {shown}  4 s" in verdict(app))


async def test_the_engine_screen_says_who_switches_and_which_rung_serves() -> None:
    switch = SwitchInfo(
        what="switch to beta",
        profile="beta",
        step="canary",
        step_s=1.0,
        total_s=60.0,
        detail=Missing("nothing to add"),
        who="alice@pod on pts/3, pid 7",
    )
    placement = "placement 1 of 2: max_model_len 65536"
    engine = make.engine(
        state=EngineState.STARTING, phase="canary", switch=switch, placement=placement
    )
    async with running(FakeService(make.snapshot(engine=engine)), size=(160, 50)) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: placement in screen_text(app))
        said = " ".join(screen_text(app).split())
        assert "switch to beta, it is tried" in said
        assert "asked for by alice@pod on pts/3, pid 7" in said
        assert "trying it before clients come" in verdict(app)
