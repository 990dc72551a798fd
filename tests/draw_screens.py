"""Draws the console's screens as SVG, text and PNG: `python -m tests.draw_screens DIR`.

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
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.snapshot import Snapshot, UsdPerMillion
from a40console.tui.abilities import Abilities, Depth
from a40console.tui.app import ConsoleApp
from a40console.tui.gallery import in_words
from a40console.tui.terminal_app import Surroundings
from tests import make_sessions
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

LONG = "a-team/very-long-profile-name-that-somebody-gave-to-qwen3-coder-480b-a35b-instruct-fp8"


def _long_names() -> Snapshot:
    """Names that are longer than any column."""
    made = make.snapshot()
    assert not isinstance(made.slots, Missing)
    return replace(
        made,
        engine=make.engine(profile=LONG, model=LONG, served_name=LONG, version="0.33.0+cu130.x86"),
        slots=tuple(
            replace(
                row,
                session=f"{LONG}-{row.slot}",
                client=f"{LONG}/client",
                model=LONG,
                agent="Explore-the-whole-repository",
            )
            for row in made.slots
        ),
        recent=tuple(replace(row, session=LONG) for row in made.recent),
        gpus=tuple(
            replace(card, name="NVIDIA RTX PRO 6000 Blackwell Server Edition")
            for card in make.several_gpus(2)
        ),
    )


def _wide_figures() -> Snapshot:
    """Figures as wide as they get: 10,000 tok/s, 999 GB, $1,000."""
    fast = make.many_slots(8, 3)
    rows = tuple(
        replace(
            row,
            prompt_tokens=1_048_576,
            cached_tokens=1_000_000,
            reread_tokens=Estimated(123_456),
            generated_tokens=131_072,
            max_tokens=131_072,
            tokens_per_s=Estimated(10_234.0),
            passes_per_s=Estimated(1_234.5),
            tokens_per_pass=Estimated(128.0),
            window_tokens_per_s=10_234.0,
            ttft_s=1_234.0,
            age_s=36_000.0,
        )
        for row in fast
    )
    return make.snapshot(
        slots=rows,
        requests=make.requests(running=2_048, waiting=1_234, waiting_by_reason={"capacity": 1_234}),
        prefix_cache=make.prefix_cache(prompts=12_345, reusable_ratio=Estimated(0.999)),
        kv_cache=make.kv_cache(held_tokens=12_345_678, capacity_tokens=99_999_999),
        host=make.host(
            cpu_quota_vcpu=256.0,
            cpu_used_vcpu=255.9,
            throttled_ms_per_s=12_345.0,
            memory_used_bytes=1_999 * make.GIB,
            memory_limit_bytes=2_000 * make.GIB,
            shm_used_bytes=999 * make.GIB,
            shm_total_bytes=999 * make.GIB,
            disk_free_bytes=999 * 2**40,
        ),
        gpus=(
            make.gpu(
                memory_used_bytes=287 * make.GIB,
                memory_total_bytes=288 * make.GIB,
                utilization_ratio=1.0,
                power_w=1_400.0,
                power_limit_w=1_400.0,
                temperature_c=101,
                throttle_reasons=("power cap", "thermal slowdown"),
                read_bytes_per_s=Estimated(7.9e12),
                peak_bytes_per_s=8e12,
            ),
        ),
        cost=make.cost(
            usd_per_hour=1_000.0,
            usd_so_far=123_456.78,
            includes_disk=True,
            since="29 Nov 10:55, the begin of the rent",
            usd_per_million=UsdPerMillion(
                now=1_000.0, session=Estimated(999.99), since_rent=1234.0
            ),
        ),
    )


BREADTH: dict[str, Callable[[], Snapshot]] = {
    "one": lambda: make.snapshot(slots=make.four_slots()[:1], requests=make.requests(running=1)),
    "eight": lambda: make.snapshot(slots=make.many_slots(8, 3)),
    "sixty-four": lambda: make.snapshot(
        slots=make.many_slots(64, 3), requests=make.requests(running=64)
    ),
    "two-gpus": lambda: make.snapshot(gpus=make.several_gpus(2)),
    "four-gpus": lambda: make.snapshot(gpus=make.several_gpus(4)),
    "long-names": _long_names,
    "wide-figures": _wide_figures,
    "first-start": lambda: make.without_engine(EngineState.ABSENT),
    "stopped": lambda: make.without_engine(EngineState.STOPPED),
}
"""What else a screen must be able to show; looked at, and held by properties."""

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
    "digest": "u",
    "speculation": "s",
    "clean": "K",
    "paused": "space",
    "hour": "right_square_bracket",
}

KEYS_BY_STATE = {
    "starting": ("engine", "logs", "cost"),
    "failed": ("engine", "why", "start", "leave"),
    "orphaned": ("engine", "clean", "leave"),
    "sparse": ("engine", "cost", "why", "slot"),
}
"""What looks otherwise where the engine does not serve, or where little is known."""

PAST = ("left", "left")
SESSIONS = (
    ("list", ("6",)),
    ("turns", ("6", "tab", "down")),
    ("full", ("6", "enter")),
    ("request", ("6", "tab", "enter")),
)

RUNS = (
    ("running", ("7",)),
    ("queued", ("7", "home")),
    ("partial", ("7", "home", *["down"] * 3)),
    ("done", ("7", "home", *["down"] * 4)),
    ("invalid", ("7", "home", *["down"] * 5)),
    ("sweep", ("7", "home", *["down"] * 6)),
    ("failed", ("7", "home", *["down"] * 7)),
    ("regimes", ("7", "home", *["down"] * 8)),
    ("lossless", ("7", "home", *["down"] * 9)),
    ("reference", ("7", "home", *["down"] * 10)),
    ("whole", ("7", "home", *["down"] * 4, "enter")),
    ("setting", ("7", "home", *["down"] * 4, "enter", "end")),
    ("compared", ("7", "home", *["down"] * 4, "v", "down", "down", "v")),
    ("form", ("c",)),
    ("choose", ("b",)),
    ("cancel", ("7", "x")),
    ("export", ("7", "home", *["down"] * 4, "f")),
)


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
) -> tuple[str, str]:
    """The screen as SVG and as text."""
    service = FakeService(snapshot)
    service.sessions = make_sessions.details()
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
        return app.export_screenshot(), in_cells(app)


def in_cells(app: ConsoleApp) -> str:
    """What the terminal shows, row by row, without colours."""
    strips = app.screen._compositor.render_strips(app.size)
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


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


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


async def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--zoom", type=float, default=1.0)
    parser.add_argument("--theme", default="midnight")
    parser.add_argument("--color", choices=get_args(Depth), default="truecolor")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--size", type=_size, action="append", help="as 60x20; more than once")
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, Snapshot, tuple[str, ...], bool]] = [
        (name, state(), (), False) for name, state in (STATES | BREADTH).items()
    ]
    jobs += [
        (f"{state}-{name}", STATES[state](), (KEYS[name],), False)
        for state, names in KEYS_BY_STATE.items()
        for name in names
    ]
    jobs.append(("lost", make.snapshot(), (), True))
    jobs.append(("simulated", replace(make.snapshot(), simulated=True), (), False))
    jobs.append(("past", make.snapshot(), PAST, False))
    jobs += [(f"sessions-{name}", make_sessions.snapshot(), keys, False) for name, keys in SESSIONS]
    jobs += [(f"runs-{name}", make.snapshot(), keys, False) for name, keys in RUNS]
    jobs.append(("sessions-none", make.snapshot(sessions=()), ("6",), False))
    jobs.append(("slot-ended", make.snapshot(), ("pagedown", "enter"), False))
    jobs += [(f"key-{name}", make.snapshot(), (key,), False) for name, key in KEYS.items()]
    for name, snapshot, keys, lost in jobs:
        for width, height in options.size or SIZES:
            title = f"{name}-{width}x{height}"
            if options.only in title:
                svg, text = await draw(
                    snapshot,
                    (width, height),
                    keys,
                    lost=lost,
                    theme=options.theme,
                    abilities=Abilities(depth=options.color, ascii=options.ascii),
                )
                path = options.folder / title
                path.with_suffix(".txt").write_text(text, encoding="utf-8")
                write(svg, path, zoom=options.zoom)


if __name__ == "__main__":
    asyncio.run(main())
