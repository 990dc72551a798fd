"""Draws a switch under load while the new engine starts: `python -m tests.draw_switch [FOLDER]`.

The simulated engine in a private home, four clients through the gateway, the real console.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from a40console.config import Settings
from a40console.model.engine import EngineState
from a40console.model.figures import number
from a40console.service.client import ServiceClient
from a40console.tui.app import ConsoleApp
from tests.draw_screens import write
from tests.faults.load import load
from tests.faults.switching import Switching, switching_console

WARM_UP_S = 25
"""Long enough for the chart and the sparks to have a past."""

TIMEOUT_S = 60.0
"""For the new engine to be starting, with an estimate."""


async def draw(live: Switching, target: Path) -> None:
    """Begin the switch beside the console and draw the moment when its estimate stands."""
    app = ConsoleApp(lambda: ServiceClient(live.paths.control_socket), Settings())
    async with app.run_test(size=(120, 40)) as pilot:
        await asyncio.sleep(WARM_UP_S)
        command = live.begin("engine", "switch", "beta", "--yes")
        async with ServiceClient(live.paths.control_socket) as service:
            await _starting(service)
        await asyncio.sleep(1)
        await pilot.pause()
        write(app.export_screenshot(), target, zoom=1.0)
        await asyncio.to_thread(command.communicate)


async def _starting(service: ServiceClient) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        engine = (await service.snapshot()).engine
        if engine.state is EngineState.STARTING and number(engine.eta_s) is not None:
            return
        assert time.monotonic() < deadline_s, engine
        await asyncio.sleep(0.1)


def main(folder: Path) -> None:
    """Draw into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with switching_console() as live:
        live.sim("beta", model="kimi-linear-48b", start_s=8, speed=1)
        for name in ("beta", "alpha"):
            live.succeed("engine", "switch", name, "--yes")
        with load(live.gateway, "coder", clients=4, answer_tokens=300):
            asyncio.run(draw(live, folder / "switch-120x40"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("screenshots"))
