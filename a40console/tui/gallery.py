"""Draws every view of the console as SVG, without a terminal: the gallery.

The views are taken from the table of commands, so that a new one is drawn as soon as it has a row.
"""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.pilot import Pilot

from a40console.config import Settings
from a40console.model.command import COMMANDS, Command
from a40console.model.event import Event
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient

SIZES = ((80, 24), (120, 40), (200, 50))
"""Columns and rows."""

EXTRA = ("limit.why", "help.show")
"""What is looked at often and is no view of its own."""

SETTLE_S = 0.05
MOST_LOOKS = 60
STILL_LOOKS = 3
"""A screen that has been the same so often is done."""

_TEXT = re.compile(
    r'<text class="(?P<look>[^"]*)" x="(?P<x>[^"]*)" y="(?P<y>[^"]*)" '
    r'textLength="(?P<length>[^"]*)" clip-path="(?P<clip>[^"]*)">(?P<text>[^<]*)</text>'
)
_LONGEST = 12
"""Characters drawn at one go: a font whose advance differs a little drifts no further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the console is shown."""

    client: Callable[[], ServiceClient]
    snapshots: Sequence[Snapshot]
    """The past that the console has watched; the last one is what it shows."""

    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Picture:
    """One screen."""

    name: str
    """`overview-80x24`."""

    svg: str


def views() -> tuple[Command, ...]:
    """Every row of the table that is looked at: views with a screen, the reasons, the help."""
    return tuple(
        command for command in COMMANDS if command.id in EXTRA or _verb(command) in ConsoleApp.MODES
    )


async def pictures(
    scene: Scene, sizes: Sequence[tuple[int, int]] = SIZES
) -> AsyncIterator[Picture]:
    """Every view in every size, one console a picture: none shows what another left behind."""
    for width, height in sizes:
        for command in views():
            yield Picture(
                f"{_name(command)}-{width}x{height}", await draw(scene, command, (width, height))
            )


async def draw(scene: Scene, command: Command, size: tuple[int, int]) -> str:
    """One view as SVG; the console's own clock stands, so that nothing ages while it is drawn."""
    app = ConsoleApp(scene.client, Settings(), clock=lambda: 0.0)
    for snapshot in scene.snapshots[:-1]:
        app.past.observe(snapshot)
    app.past.mark(scene.events)
    async with app.run_test(size=size) as pilot:
        await _still(app, pilot)
        if command.id != "view.overview":
            app.action_command(command.id)
            await _still(app, pilot)
        return in_words(app.export_screenshot(title=""))


async def _still(app: ConsoleApp, pilot: Pilot[None]) -> None:
    """Wait until the screen has stopped changing."""
    before, same = "", 0
    for _ in range(MOST_LOOKS):
        await pilot.pause(SETTLE_S)
        now = app.export_screenshot()
        same = same + 1 if now == before else 0
        before = now
        if same >= STILL_LOOKS and app.reading.link.state == "live":
            return


def _verb(command: Command) -> str:
    noun, _, verb = command.id.partition(".")
    return verb if noun == "view" else ""


def _name(command: Command) -> str:
    names = {"limit.why": "why-slow", "help.show": "help"}
    return names.get(command.id) or _verb(command)


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
