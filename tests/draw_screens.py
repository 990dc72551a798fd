"""Draws the console's screens as SVG and PNG, to be looked at: `python -m tests.draw_screens DIR`.

PNG needs `rsvg-convert` and a monospaced font with box, block and braille characters.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from a40console.config import Settings
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp
from tests import make_snapshot as make
from tests.tui.fake_service import FakeService

SIZES = ((80, 24), (120, 40), (200, 50))

STATES: dict[str, Callable[[], Snapshot]] = {
    "serving": make.snapshot,
    "many": lambda: make.snapshot(
        slots=make.many_slots(32, 3),
        requests=make.requests(running=32, waiting=0, waiting_by_reason={}),
    ),
    "idle": make.idle,
    "starting": make.starting,
    "failed": make.failed,
    "orphaned": make.orphaned,
    "hung": make.hung,
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


_TEXT = re.compile(
    r'<text class="(?P<look>[^"]*)" x="(?P<x>[^"]*)" y="(?P<y>[^"]*)" '
    r'textLength="(?P<length>[^"]*)" clip-path="(?P<clip>[^"]*)">(?P<text>[^<]*)</text>'
)
_LONGEST = 12
"""Characters drawn at one go: a font whose advance differs a little drifts no further."""


def in_words(svg: str) -> str:
    """The SVG with every word in its own place, for converters that ignore `textLength`."""
    return _TEXT.sub(_split, svg)


def _split(match: re.Match[str]) -> str:
    text = html.unescape(match["text"])
    if not text:
        return ""
    advance = float(match["length"]) / max(1, len(text))
    pieces = re.finditer(rf"[^\s\u00a0]{{1,{_LONGEST}}}", text)
    return "".join(
        f'<text xml:space="preserve" class="{match["look"]}" '
        f'x="{float(match["x"]) + piece.start() * advance:.1f}" y="{match["y"]}" '
        f'clip-path="{match["clip"]}">{html.escape(piece[0])}</text>'
        for piece in pieces
    )


def remember(app: ConsoleApp, snapshot: Snapshot) -> None:
    """Let the application have seen the minute before the snapshot, for its sparks."""
    if isinstance(snapshot.slots, Missing):
        return
    for age in range(60, 0, -1):
        slots = tuple(
            replace(row, window_tokens_per_s=_then(row.window_tokens_per_s, age + row.slot))
            for row in snapshot.slots
        )
        speed = make.throughput(_then(snapshot.throughput.generation_tokens_per_s, age))
        app.past.observe(replace(snapshot, at=make.at(age), slots=slots, throughput=speed))


def _then(speed: Figure, age: int) -> Figure:
    now = number(speed)
    return speed if now is None else now * (0.7 + 0.3 * math.sin(age / 5))


async def draw(
    snapshot: Snapshot, size: tuple[int, int], keys: Sequence[str] = (), *, lost: bool = False
) -> str:
    """The screen as SVG."""
    service = FakeService(snapshot)
    app = ConsoleApp(service.client, Settings())
    remember(app, snapshot)
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
    svg = in_words(svg)
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
    jobs: list[tuple[str, Snapshot, tuple[str, ...], bool]] = [
        (name, state(), (), False) for name, state in STATES.items()
    ]
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
