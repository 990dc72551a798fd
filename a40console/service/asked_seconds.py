"""A number of seconds among a command's arguments."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.errors import UsageError

MOST_DRAIN_S = 3600.0
"""Nobody waits longer for running requests to end."""


def asked_seconds(
    arguments: Mapping[str, str], name: str, *, most: float, least: float = 0.0
) -> float | None:
    """What is asked for; None where nothing is.

    Raises:
        UsageError: If it is no number of seconds in the range.
    """
    text = arguments.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:
        raise UsageError(f"{name} takes {least:g} to {most:g} seconds, not {text[:40]!r}")
    return seconds
