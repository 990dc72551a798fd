"""Draws the console's screens as SVG and PNG, to be looked at: `python -m tests.draw_screens DIR`.

PNG needs `rsvg-convert` and a monospaced font with box, block and braille characters.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from a40console.config import ConsoleSettings, Settings
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Snapshot
from a40console.tui.abilities import Abilities, Depth
from a40console.tui.app import ConsoleApp
from a40console.tui.gallery import in_words
from a40console.tui.terminal_app import Surroundings
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
    "gpus": lambda: make.snapshot(gpus=make.several_gpus(8)),
}

KEYS = {
    "engine": "2",
    "logs": "3",
    "why": "w",
    "help": "question_mark",
    "start": "m",
    "stop": "X",
    "events": "4",
    "cost": "5",
    "note": "n",
    "connect": "e",
    "leave": "q",
    "palette": "ctrl+p",
    "slot": "enter",
    "paused": "space",
    "hour": "right_square_bracket",
}

PAST = ("left", "left")


def remember(app: ConsoleApp, snapshot: Snapshot) -> None:
    """Let the application have seen the minute before the snapshot, for its sparks."""
    if isinstance(snapshot.slots, Missing):
        return
    ended = tuple(
        make.slot(request_id=row.request_id, session=row.session, age_s=0.4)
        for row in snapshot.recent
    )
    for age in range(60, 0, -1):
        slots = tuple(
            replace(row, window_tokens_per_s=_then(row.window_tokens_per_s, age + row.slot))
            for row in (*snapshot.slots, *(ended if age > 30 else ()))
            if row.phase != "queued" or age <= (number(row.age_s) or 0.0)
        )
        speed = make.throughput(_then(snapshot.throughput.generation_tokens_per_s, age))
        app.past.observe(replace(snapshot, at=make.at(age), slots=slots, throughput=speed))


def _then(speed: Figure, age: int) -> Figure:
    now = number(speed)
    return speed if now is None else now * (0.7 + 0.3 * math.sin(age / 5))


async def draw(
    snapshot: Snapshot,
    size: tuple[int, int],
    keys: Sequence[str] = (),
    *,
    lost: bool = False,
    theme: str = "midnight",
    abilities: Abilities = Abilities(),  # noqa: B008 - frozen
) -> str:
    """The screen as SVG."""
    service = FakeService(snapshot)
    settings = Settings(console=ConsoleSettings(theme=theme))
    surroundings = Surroundings(abilities=abilities)
    app = ConsoleApp(service.client, settings, surroundings=surroundings)
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
    parser.add_argument("--theme", default="midnight")
    parser.add_argument("--color", choices=get_args(Depth), default="truecolor")
    parser.add_argument("--ascii", action="store_true")
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, Snapshot, tuple[str, ...], bool]] = [
        (name, state(), (), False) for name, state in STATES.items()
    ]
    jobs.append(("lost", make.snapshot(), (), True))
    jobs.append(("simulated", replace(make.snapshot(), simulated=True), (), False))
    jobs.append(("past", make.snapshot(), PAST, False))
    jobs.append(("slot-ended", make.snapshot(), ("pagedown", "enter"), False))
    jobs += [(f"key-{name}", make.snapshot(), (key,), False) for name, key in KEYS.items()]
    for name, snapshot, keys, lost in jobs:
        for width, height in SIZES:
            title = f"{name}-{width}x{height}"
            if options.only in title:
                svg = await draw(
                    snapshot,
                    (width, height),
                    keys,
                    lost=lost,
                    theme=options.theme,
                    abilities=Abilities(depth=options.color, ascii=options.ascii),
                )
                write(svg, options.folder / title, zoom=options.zoom)


if __name__ == "__main__":
    asyncio.run(main())
