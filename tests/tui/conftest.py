"""Fixtures of the console's tests: a fixed time zone and no blinking cursors."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.widgets import Input

from a40console.tui.screens import logs


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


@pytest.fixture
def eager_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's output is looked at more often than an operator needs: tests wait for it."""
    monkeypatch.setattr(logs, "_QUIET_PERIOD_S", 0.1)
