"""Draws the runs while an experiment runs: `python -m tests.draw_run [FOLDER]`.

The simulated A40 in a private home, the real service, the run's own process, the real console.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from a40console.commands.demo import PROFILE
from a40console.config import Settings
from a40console.service.client import ServiceClient
from a40console.tui.app import ConsoleApp
from tests.draw_screens import SIZES, in_cells, write
from tests.live.console import Console, console

TIMEOUT_S = 600.0
"""For the run to have measured in its second arm."""

ENOUGH = 20
"""Turns of the second arm."""

LENGTHS = "2400;600/120*40"
"""A session that passes the preset's threshold and takes a minute or two an arm."""

SEEN = "b cc-"
"""The second arm's curve is named, at every size."""


async def draw(live: Console, folder: Path) -> None:
    """One picture a size, once there are two curves."""
    await _two_arms(live)
    app = ConsoleApp(lambda: ServiceClient(live.paths.control_socket), Settings())
    async with app.run_test(size=SIZES[0]) as pilot:
        await asyncio.sleep(1)
        await pilot.press("7")
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            deadline_s = time.monotonic() + TIMEOUT_S
            while SEEN not in in_cells(app):
                assert time.monotonic() < deadline_s, in_cells(app)
                await asyncio.sleep(1)
            await asyncio.sleep(1)
            await pilot.pause()
            write(app.export_screenshot(title=""), folder / f"run-{width}x{height}")


async def _two_arms(live: Console) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    async with ServiceClient(live.paths.control_socket) as service:
        while True:
            (run,) = await service.runs()
            told = await service.run_records(run.id) if run.state != "queued" else (0, ())
            records = told[1]
            arms = [
                record.arm
                for record in records
                if record.kind == "sample" and not record.warm_up and record.role == "turn"
            ]
            if len(set(arms)) > 1 and arms.count(arms[-1]) > ENOUGH:
                return
            assert run.state in {"queued", "running"}, run
            assert time.monotonic() < deadline_s, run
            await asyncio.sleep(1)


def main(folder: Path) -> None:
    """Draw into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with console() as live:
        live.serve("--profile", PROFILE)
        live.succeed("wait", "ready", "--timeout", "120", timeout_s=130)
        quick = ("--preset", "quick", "--set", f"lengths={LENGTHS}")
        live.succeed("run", "compaction", *quick, "--yes", "--detach")
        asyncio.run(draw(live, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("screenshots"))
