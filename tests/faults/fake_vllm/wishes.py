"""What a test wishes of the stand-in, how it was called, and how it logs."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

TICK_S = 0.05
ARGUMENTS = sys.argv[1:]


def control() -> dict[str, Any]:
    """What the test wants now; a file that is not there yet is no wish."""
    try:
        wishes: dict[str, Any] = json.loads(Path(os.environ["FAKE_VLLM_CONTROL"]).read_text())
    except (OSError, ValueError):
        return {}
    return wishes


def say(process: str, place: str, text: str, level: str = "INFO") -> None:
    """A line as vLLM's logger writes it; a full disk costs the line, as with any logger."""
    at = time.strftime("%m-%d %H:%M:%S")
    line = f"({process} pid={os.getpid()}) {level} {at} [{place}] {text}\n"
    with suppress(OSError):
        os.write(1, line.encode())


DEAF: list[str] = control().get("deaf", [])


def option(name: str, default: str = "") -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else default
