"""Draws the console's screens as SVG and PNG, to be looked at: `python -m tests.draw_screens DIR`.

PNG needs `rsvg-convert` and a monospaced font with box, block and braille characters.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from a40console.config import Settings
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp
from tests import make_snapshot as make
from tests.tui.fake_service import FakeService

SIZES = ((80, 24), (120, 40), (200, 50))

STATES: dict[str, Callable[[], Snapshot]] = {
    "serving": make.snapshot,
    "many": lambda: make.snapshot(slots=make.many_slots(32, 3)),
    "idle": make.idle,
    "starting": make.starting,
    "failed": make.failed,
    "orphaned": make.orphaned,
    "sparse": make.sparse,
}

KEYS = {
    "engine": "2",
    "logs": "3",
    "why": "w",
    "help": "question_mark",
    "start": "m",
    "stop": "X",
    "events": "u",
    "connect": "e",
    "leave": "q",
    "palette": "ctrl+p",
}


async def draw(
    snapshot: Snapshot, size: tuple[int, int], keys: Sequence[str] = (), *, lost: bool = False
) -> str:
    """The screen as SVG."""
    service = FakeService(snapshot)
    app = ConsoleApp(service.client, Settings())
    async with app.run_test(size=size) as pilot:
        for _ in range(4):
            await pilot.pause(0.05)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        if lost:
            service.go_down()
            await pilot.pause(0.3)
        return app.export_screenshot()


def write(svg: str, path: Path, *, zoom: float = 1.0) -> None:
    """Write the SVG, and beside it the PNG where it can be made."""
    # Without xml:space the converter drops leading blanks and columns appear shifted.
    svg = re.sub(r'(<text class=)', r'<text xml:space="preserve" class=', svg)
    path.with_suffix(".svg").write_text(svg, encoding="utf-8")
    if shutil.which("rsvg-convert"):
        target = path.with_suffix(".png")
        subprocess.run(
            ["rsvg-convert", "--zoom", str(zoom), path.with_suffix(".svg"), "-o", target],
            check=True,
        )


async def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--zoom", type=float, default=1.0)
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(name, state(), (), False) for name, state in STATES.items()]
    jobs.append(("lost", make.snapshot(), (), True))
    jobs += [(f"key-{name}", make.snapshot(), (key,), False) for name, key in KEYS.items()]
    for name, snapshot, keys, lost in jobs:
        for width, height in SIZES:
            title = f"{name}-{width}x{height}"
            if options.only in title:
                svg = await draw(snapshot, (width, height), keys, lost=lost)
                write(svg, options.folder / title, zoom=options.zoom)


if __name__ == "__main__":
    asyncio.run(main())
