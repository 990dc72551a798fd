"""Fixtures of the console's tests: a fixed time zone and no blinking cursors."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.widgets import Input


@pytest.fixture(autouse=True)
def _steady_screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day in UTC, whatever the machine says, and a cursor that stays."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
