"""A switch of the engine as the console shows it, from its cost to its last step."""

from __future__ import annotations

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Missing, Text
from a40console.model.switching import SwitchInfo, SwitchStep
from tests import make_snapshot as make
from tests.tui.driving import running, until
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
