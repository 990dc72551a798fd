"""Draws the gallery: every view of the console over one rehearsed day."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from a40console.commands.demo import PROFILE
from a40console.commands.output import note
from a40console.errors import RefusedError
from a40console.model.profile import Profile
from a40console.paths import Paths, locate
from a40console.profiles.loader import load_profiles

SECONDS = 531
"""Of the day: two sessions and their sub-agents at work."""

CONVERTER = "rsvg-convert"


def draw_gallery(
    folder: Path,
    sizes: Sequence[tuple[int, int]] | None = None,
    *,
    seconds: int = SECONDS,
) -> int:
    """Write every view in every size as SVG, and as PNG where there is a converter.

    Args:
        folder: Where to; it is made.
        sizes: Columns and rows; None for those of the gallery.
        seconds: How much of the day is played.

    Raises:
        RefusedError: If the folder cannot be written.
    """
    # The pictures tell the time of day: everywhere the same one.
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawn = asyncio.run(_draw(folder, sizes, seconds))
    except OSError as error:
        raise RefusedError(f"{folder} cannot be written", evidence=str(error)) from error
    if shutil.which(CONVERTER):
        for path in drawn:
            words = [CONVERTER, str(path), "-o", str(path.with_suffix(".png"))]
            subprocess.run(words, check=False)
    else:
        note(f"No PNG: there is no {CONVERTER} on the PATH.")
    note(f"{len(drawn)} screens of a SIMULATED engine in {folder}")
    return 0


async def _draw(folder: Path, sizes: Sequence[tuple[int, int]] | None, seconds: int) -> list[Path]:
    from a40console.rehearsal.day import rehearse
    from a40console.rehearsal.exhibit import Exhibit
    from a40console.tui import gallery

    with tempfile.TemporaryDirectory(prefix="a40-gallery-") as home:
        paths: Paths = locate({"A40CONSOLE_HOME": home})
        profile = load_profiles(paths.profiles).find(PROFILE)
        exhibit = Exhibit(await rehearse(_speculating(profile), seconds=seconds), paths)
        scene = gallery.Scene(
            client=exhibit.client, snapshots=exhibit.snapshots, events=exhibit.events
        )
        drawn = []
        async for picture in gallery.pictures(scene, sizes or gallery.SIZES):
            path = folder / f"{picture.name}.svg"
            path.write_text(picture.svg, encoding="utf-8")
            drawn.append(path)
        return drawn


def _speculating(profile: Profile) -> Profile:
    """With drafts from the start: the gallery shows what they bring."""
    asked = profile.speculation
    return profile if asked is None else replace(profile, speculation=replace(asked, enabled=True))
