"""What is said where commands that act are forbidden."""

from __future__ import annotations

from pathlib import Path

from a40console.config import ServiceSettings
from a40console.errors import RefusedError

BY_FLAG = "this console was started with --read-only"


def by_console_settings(config_file: Path) -> str:
    """Who forbade it, where the console's settings did."""
    return f"[console] read_only in {config_file}"


def by_service_settings(settings: ServiceSettings, config_file: Path) -> str:
    """Who forbids what acts, where the service's settings do; empty where they do not."""
    if not settings.read_only:
        return ""
    return f"[service] read_only in {config_file}, read when the service started"


def forbidden_error(what: str, who: str) -> RefusedError:
    """The refusal of a command that acts."""
    return RefusedError(
        f"{what} is forbidden here: read-only",
        evidence=f"forbidden by: {who}",
        remedy="Whoever set that may take it away. Looking is allowed: a40console status",
    )
