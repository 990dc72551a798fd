"""What the operator chose on the screen, kept in the state folder: settings stay theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from a40console.errors import ConsoleError
from a40console.files import read_json, write_private
from a40console.paths import make_private

FILE = "console.json"


def remembered_theme(folder: Path | None, configured: str) -> str:
    """The theme that was chosen last, unless the settings named another since."""
    choice = _read(folder)
    if choice.get("instead_of") == configured and isinstance(choice.get("theme"), str):
        return str(choice["theme"])
    return configured


def remember_theme(folder: Path | None, configured: str, chosen: str) -> str:
    """Keep a choice; answers why it could not be kept, empty where it was."""
    if folder is None:
        return ""
    try:
        choice = json.dumps({"theme": chosen, "instead_of": configured})
        write_private(make_private(folder) / FILE, choice)
    except (OSError, ConsoleError) as error:
        return f"The choice lasts until the console closes: {error}"
    return ""


def _read(folder: Path | None) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        data = read_json(folder / FILE)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
