"""The theme that was chosen on the screen is remembered, and the settings have the later word."""

from __future__ import annotations

from pathlib import Path

from a40console.tui.choices import FILE, remember_theme, remembered_theme


def test_a_choice_is_found_again(tmp_path: Path) -> None:
    assert remembered_theme(tmp_path, "midnight") == "midnight"
    assert remember_theme(tmp_path, "midnight", "daylight") == ""
    assert remembered_theme(tmp_path, "midnight") == "daylight"


def test_settings_that_name_another_theme_since_then_win(tmp_path: Path) -> None:
    remember_theme(tmp_path, "midnight", "daylight")
    assert remembered_theme(tmp_path, "high-contrast") == "high-contrast"


def test_a_broken_file_is_no_choice(tmp_path: Path) -> None:
    for content in ("", "[]", '{"theme": 3, "instead_of": "midnight"}'):
        (tmp_path / FILE).write_text(content)
        assert remembered_theme(tmp_path, "midnight") == "midnight"


def test_without_a_place_nothing_is_kept_and_a_full_one_says_so() -> None:
    assert remember_theme(None, "midnight", "daylight") == ""
    assert remembered_theme(None, "midnight") == "midnight"
    assert "until the console closes" in remember_theme(Path("/proc/none"), "midnight", "daylight")
