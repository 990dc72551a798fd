"""Draws the overview from a live engine with four streams: `python -m tests.draw_live [FOLDER]`.

A real llama.cpp engine in a private home, four clients through the gateway, the real console.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from a40console.config import Settings
from a40console.service.client import ServiceClient
from a40console.tui.app import ConsoleApp
from tests.draw_screens import SIZES, write
from tests.live.console import Console, console
from tests.live.streams import WORDS, chat

WARM_UP_S = 25
"""Long enough for the chart and the sparks to have a past."""


async def draw_all(live: Console, folder: Path) -> None:
    """Put load on the engine and draw the three sizes one after another."""
    load = [asyncio.create_task(_talk(live.gateway, number)) for number in range(4)]
    await asyncio.sleep(WARM_UP_S)
    for width, height in SIZES:
        app = ConsoleApp(lambda: ServiceClient(live.paths.control_socket), Settings())
        async with app.run_test(size=(width, height)) as pilot:
            await asyncio.sleep(8)
            await pilot.pause()
            write(app.export_screenshot(), folder / f"live-{width}x{height}", zoom=1.0)
    for task in load:
        task.cancel()
    await asyncio.gather(*load, return_exceptions=True)


async def _talk(gateway: str, number: int) -> None:
    """One client that asks again as soon as it is answered."""
    await asyncio.sleep(number * 1.5)
    while True:
        await chat(
            gateway, WORDS.format(number), max_tokens=400 + 60 * number, model="smollm2-135m"
        )


def main(folder: Path) -> None:
    """Draw into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with console() as live:
        live.serve("--profile", "smollm2-135m")
        live.succeed("wait", "ready", "--timeout", "120", timeout_s=130)
        asyncio.run(draw_all(live, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("screenshots"))
