"""How a home is known to be a demo's: it ends with the console that is opened on it."""

from __future__ import annotations

from a40console.paths import DEMO_MARK, Paths


def is_demo(paths: Paths) -> bool:
    """Whether service and engine of this home end with the screen, and cost nothing."""
    return (paths.home / DEMO_MARK).is_file()
