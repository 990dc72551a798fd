"""The service's looking-back part on a folder of a test's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from a40console.config import RentSettings
from a40console.operations.past_starts import PastStarts
from a40console.service.chronicle import Chronicle
from a40console.service.cost import terms_of
from a40console.service.journal import Journal
from a40console.service.past_api import PastRoutes
from a40console.service.read_marks import ReadMarks


def chronicle(
    folder: Path,
    journal: Journal,
    *,
    wall: Callable[[], float] = time.time,
    interval_s: float = 1.0,
) -> Chronicle:
    """A chronicle in the folder."""
    file = folder / "history.sqlite"
    return Chronicle(file, interval_s=interval_s, recorder=journal.record, wall=wall)


def past_routes(
    folder: Path,
    journal: Journal,
    kept: Chronicle | None = None,
    *,
    wall: Callable[[], float] = time.time,
) -> PastRoutes:
    """The routes over what lies in the folder; an hour costs $0.44."""
    return PastRoutes(
        journal=journal,
        chronicle=kept or chronicle(folder, journal, wall=wall),
        starts=PastStarts(folder / "starts.json"),
        marks=ReadMarks(folder / "read-mark.json", lambda: journal.last_id),
        terms=lambda: terms_of(RentSettings(), Decimal("0.44")),
        wall=wall,
    )
