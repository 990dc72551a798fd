"""The dialog that connects a client: nothing cut, secrets covered, the first request told."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.model.client_lines import FORMS, Form, client_lines
from a40console.service.connecting import client_environment
from a40console.tui.ink import Role
from a40console.tui.screens.environment import EnvironmentDialog, is_secret, whole
from tests import make_session, make_sessions
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, toasts, until
from tests.tui.fake_service import FakeService

TOKEN = "a40-secret-token-0123456789abcdef0123456789abcdef"
NAME = "a-team/qwen3-coder-480b-a35b-instruct-fp8-with-a-name-that-is-longer-than-any-screen-row"
POD = {
    "RUNPOD_POD_ID": "abc123",
    "RUNPOD_PUBLIC_IP": "203.0.113.7",
    "RUNPOD_TCP_PORT_22": "40022",
    "RUNPOD_TCP_PORT_8080": "40080",
    "USER": "root",
}
SIZES = ((80, 24), (120, 40), (200, 50))


def service(*, listens_on: str = "0.0.0.0", simulated: bool = False) -> FakeService:
    made = FakeService(make.snapshot(simulated=simulated))
    made.environment = client_environment(
        url="http://127.0.0.1:8080",
        listens_on=listens_on,
        token=TOKEN,
        served_name=NAME,
        window_tokens=32_768,
        environment=POD,
    )
    return made


def unbroken(text: str) -> str:
    """The dialog's text without its rows' ends and indents."""
    return "".join(row.strip() for row in text.splitlines())


@pytest.mark.parametrize("size", SIZES)
async def test_every_value_stands_there_whole_in_every_form(size: tuple[int, int]) -> None:
    made = service()
    async with running(made, size=size) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        for form in FORMS:
            await pilot.pause(0.05)
            said = unbroken(screen_text(app))
            for name, value in made.environment.variables.items():
                if form == "settings" and name.startswith("OPENAI_"):
                    continue
                assert name in said
                assert (value in said) is not is_secret(name), name
            for way in made.environment.addresses:
                assert way.url in said
            await pilot.press("f")


async def test_the_smallest_terminal_shows_what_matters_without_scrolling() -> None:
    async with running(service(), size=(80, 24)) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        text = app.screen.query_one("#text")
        rows = screen_text(app)
        await until(pilot, lambda: app.screen.query_one("#scroll").max_scroll_y > 0)
        seen = app.screen.query_one("#scroll").size.height
        shown = text.plain.splitlines()[:seen]  # type: ignore[attr-defined]
        for words in ("Waiting for a request", "http://127.0.0.1:8080", "Window 32,768 tokens"):
            assert any(words in row for row in shown), (words, rows)
        assert any("ANTHROPIC_BASE_URL" in row for row in shown)
        assert any("ANTHROPIC_MODEL" in row for row in shown)


async def test_the_next_address_skips_what_is_closed() -> None:
    async with running(service(listens_on="127.0.0.1")) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: "address 1 of 4" in screen_text(app))
        await pilot.press("a")
        await until(pilot, lambda: "address 2 of 4" in screen_text(app))
        await pilot.press("a")
        await until(pilot, lambda: "address 1 of 4" in screen_text(app))
    async with running(service()) as (app, pilot):
        await pilot.press("e", "a", "a")
        await until(pilot, lambda: "address 3 of 4" in screen_text(app))
        assert "export ANTHROPIC_BASE_URL='http://203.0.113.7:40080'" in screen_text(app)
        assert "plain HTTP" in screen_text(app)


async def test_it_is_saved_for_this_user_alone_and_the_path_is_told(tmp_path: Path) -> None:
    async with running(service()) as (app, pilot):
        app.state = tmp_path
        await pilot.press("e", "f", "f", "s")
        file = tmp_path / "client-settings.json"
        await until(pilot, lambda: f"Saved to {file}" in toasts(app))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["env"]["ANTHROPIC_AUTH_TOKEN"] == TOKEN


async def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with running(service()) as (app, pilot):
        app.state = tmp_path / "file"
        await pilot.press("e", "s")
        await until(pilot, lambda: "Not saved" in toasts(app))


async def test_the_first_request_is_told_and_its_window_compared() -> None:
    made = service(simulated=True)
    session = make_session.session(session="5f2a", requests=4)
    made.sessions = {"5f2a": make_session.detail(session="5f2a")}
    async with running(made) as (app, pilot):
        made.push(replace(make_sessions.snapshot(sessions=(session,)), simulated=True))
        await until(pilot, lambda: app.reading.snapshot.sessions == (session,))
        await pilot.press("e")
        await until(pilot, lambda: "Waiting for a request" in screen_text(app))
        assert "SIMULATED" in screen_text(app)
        more = replace(session, requests=5)
        made.push(replace(make_sessions.snapshot(sessions=(more,)), simulated=True))
        await until(pilot, lambda: "session 5f2a" in screen_text(app))
        assert "Seen: " in screen_text(app)
        assert "Waiting for a request" not in screen_text(app)


@given(st.text(st.characters(exclude_categories=("C", "Z")), max_size=200), st.integers(6, 90))
def test_whole_leaves_nothing_out(text: str, width: int) -> None:
    rows = ["".join(span.text for span in row) for row in whole(text, width, Role.TEXT)]
    assert all(len(row) <= width for row in rows)
    assert "".join(row.strip() for row in rows) == text


_NAMES: Sequence[tuple[Form, str]] = [("sh", "sh"), ("sh", "bash"), ("fish", "fish")]
SHELLS: Sequence[tuple[Form, str]] = [
    (form, found) for form, name in _NAMES if (found := shutil.which(name))
]
values = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@pytest.mark.parametrize(("form", "shell"), SHELLS)
@settings(max_examples=20, deadline=None)
@given(values)
def test_a_shell_reads_the_very_value(form: Form, shell: str, value: str) -> None:
    lines = client_lines({"A_NAME": value, "B_NAME": "after"}, form)
    script = f"{lines}\nenv -0"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True, timeout=20)
    read = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if "=" in entry)
    assert read["A_NAME"] == value
    assert read["B_NAME"] == "after"


@given(st.dictionaries(st.sampled_from(["A", "CLAUDE_X", "OPENAI_Y"]), values))
def test_the_settings_file_holds_the_very_values(variables: dict[str, str]) -> None:
    read = json.loads(client_lines(variables, "settings"))["env"]
    assert read == {name: value for name, value in variables.items() if name != "OPENAI_Y"}


async def test_the_only_address_says_that_it_is_the_only_one() -> None:
    made = service()
    made.environment = replace(made.environment, addresses=made.environment.addresses[:1])
    async with running(made, size=(120, 40)) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        assert "address 1 of 1" in screen_text(app)
        await pilot.press("a")
        await until(pilot, lambda: "There is only this one address." in toasts(app))


async def test_the_next_address_is_shown_without_a_word() -> None:
    async with running(service(), size=(120, 40)) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        await pilot.press("a")
        await until(pilot, lambda: "address 2 of" in screen_text(app))
        assert toasts(app) == ""


async def test_where_every_other_address_is_closed_the_key_says_so() -> None:
    made = FakeService(make.snapshot())
    open_one, *_ = made.environment.addresses
    closed = replace(open_one, url="http://203.0.113.7:40080", refused="it is closed")
    made.environment = replace(made.environment, addresses=(open_one, closed))
    async with running(made, size=(120, 40)) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        await pilot.press("a")
        await until(pilot, lambda: "No other address leads to the gateway" in toasts(app))


async def test_no_form_shows_an_escape_where_a_character_can_stand() -> None:
    async with running(service(), size=(200, 50)) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnvironmentDialog))
        for _ in FORMS:
            await pilot.pause(0.05)
            assert "\\u" not in screen_text(app)
            assert "••••••••" in screen_text(app)
            await pilot.press("f")


@given(value=st.text())
def test_settings_are_json_whatever_a_value_holds_and_send_nothing_to_a_terminal(
    value: str,
) -> None:
    lines = client_lines({"ANTHROPIC_MODEL": value}, "settings")
    assert json.loads(lines) == {"env": {"ANTHROPIC_MODEL": value}}
    assert all(each.isprintable() or each == "\n" for each in lines)


def test_settings_keep_what_can_be_read() -> None:
    assert "模型-é•" in client_lines({"ANTHROPIC_MODEL": "模型-é•"}, "settings")
    assert "\\u202e" in client_lines({"ANTHROPIC_MODEL": "\u202e"}, "settings")
