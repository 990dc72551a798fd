"""Panels as plain text, one below the other, for who hears the console rather than sees it."""

from __future__ import annotations

from textual.geometry import Size

from a40console.tui.panels.engine import engine_facts
from a40console.tui.reading import Reading

_ONE_COLUMN = Size(96, 1000)


def engine_text(reading: Reading) -> list[str]:
    """Everything known of the engine, a fact a line, without rules."""
    lines = ("".join(span.text for span in entry) for entry in engine_facts(reading, _ONE_COLUMN))
    return [text for line in lines if (text := line.strip("─━ "))]
