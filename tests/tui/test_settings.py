"""A settings file that is wrong somewhere: the console opens with the default, and says so once."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.config import lenient_settings
from tests.tui.driving import running, toasts, until
from tests.tui.fake_service import FakeService

WRONG = {
    "[console]\nalarms = 'siren'": "console.alarms",
    "[console]\nglyphs = 'runes'": "console.glyphs",
    "[console]\ntheme = 9": "console.theme",
    "[console]\ntheme = 'no such'": "there is no theme 'no such'",
    "[keys]\n'engine.restart' = 9": "keys.engine.restart",
    "[keys]\n'engine.restart' = ''": "engine.restart: the key '' is not free",
    "[keys]\n'engine.resart' = 'f5'": "did you mean engine.restart",
    "[gateway]\nport = -1": "gateway.port",
    "profile = []": "profile",
    "[[": "not valid TOML",
}


@pytest.mark.parametrize(("text", "told"), WRONG.items())
async def test_the_console_opens_and_says_what_is_wrong(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    settings, problems = lenient_settings(file)
    told_of_file = tuple(map(str, problems))
    async with running(FakeService(), settings=settings, problems=told_of_file) as (app, pilot):
        await until(pilot, lambda: told in toasts(app))
        assert toasts(app).count("Settings: ") == 1
        assert app.theme == "midnight"
        assert app.keys.hint("engine.restart") == "R"
        await pilot.press("2")
        await until(pilot, lambda: app.current_mode == "engine")
