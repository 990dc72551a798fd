"""The doctor from the palette: the service looks, a dialog tells."""

from __future__ import annotations

import json
from dataclasses import replace

from a40console.model.check import Check
from a40console.model.codec import encode
from a40console.model.control import CommandResult
from a40console.tui.ink import Line
from a40console.tui.panels.checks import checks_text, read_checks, verdict
from a40console.tui.screens.dialog import TextDialog
from tests.tui.driving import running, screen_text, until
from tests.tui.fake_service import FakeService

GPU = Check(group="machine", name="GPU", state="ok", text="NVIDIA A40, driver 550.90.07")
CUDA = Check(
    group="engines",
    name="CUDA",
    state="missing",
    text="it is built for CUDA 13.0, which needs driver 580.65.06 or newer",
    mend="a40console engine install --gpu names the release that fits",
)


def plain(lines: list[Line]) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]


async def test_it_is_in_the_palette_and_opens_a_dialog() -> None:
    service = FakeService()
    answer = {check.name: json.dumps(encode(check)) for check in (GPU, CUDA)}
    result = CommandResult(command="doctor.run", id="d1", state="done", result=answer)
    service.results["doctor.run"] = result
    async with running(service) as (app, pilot):
        app.action_command("doctor.run")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.pause()
        shown = screen_text(app)
        assert "1 in the way of serving: CUDA." in shown
        assert "NVIDIA A40" in shown
        assert "→ a40console engine install --gpu" in shown


def test_no_line_is_wider_than_the_dialog() -> None:
    for width in (40, 60, 84):
        assert all(len(text) <= width for text in plain(checks_text([GPU, CUDA], width)))


def test_what_cannot_be_read_is_told() -> None:
    [check] = read_checks({"GPU": "no JSON"})
    assert check.state == "unchecked"
    assert "cannot be read" in check.text


def test_the_verdict_counts_what_blocks_first() -> None:
    assert verdict([GPU]) == "Nothing is missing."
    assert "1 to look at" in verdict([GPU, replace(CUDA, state="warn")])
