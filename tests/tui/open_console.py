"""The console on this terminal, with the service that the test has: none is started."""

from __future__ import annotations

import sys

from a40console.config import load_settings
from a40console.paths import locate
from a40console.tui.app import run_console


def main() -> int:
    """Open it."""
    paths = locate()
    return run_console(paths, load_settings(paths.config_file))


if __name__ == "__main__":
    sys.exit(main())
