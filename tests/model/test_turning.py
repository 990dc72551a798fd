"""Whether a change of speculation takes a restart, and what that took the last time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from a40console.model.figures import Missing
from a40console.model.turning import last_start_s, needs_restart, restart_in_words
from tests import make_snapshot as make
from tests.tui import fake_past


@pytest.mark.parametrize(
    ("control", "started_with", "mode", "restart"),
    [
        ("live", 24, "off", False),
        ("live", 24, "on", False),
        ("live", 24, "24", False),
        ("live", 24, "25", True),
        ("live", Missing("not told"), "25", False),
        ("restart", 24, "off", True),
        ("none", 24, "off", True),
    ],
)
def test_a_live_engine_is_restarted_only_to_go_deeper(
    control: Any, started_with: Any, mode: str, restart: bool
) -> None:
    info = make.speculation(control=control, started_with=started_with)
    assert needs_restart(info, mode) is restart


def test_the_last_start_of_the_profile_counts() -> None:
    newest = replace(fake_past.starts()[0], profile="a", ready_after_s=42.4)
    failed = replace(newest, ready_after_s=Missing("it never served"))
    older = replace(newest, ready_after_s=90.0)
    other = replace(newest, profile="b", ready_after_s=1.0)
    assert last_start_s((other, failed, newest, older), "a") == 42.4
    assert "the last start took 42 s" in restart_in_words(42.4)
    unknown = restart_in_words(last_start_s((failed,), "a"))
    assert unknown == (
        "By restart; how long it takes is not known: no start of this profile was measured."
    )
