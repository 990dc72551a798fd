"""The line for a status bar: never too wide, worst news first, harmless to tmux."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Size

from a40console.commands.bar import bar, without_service
from a40console.commands.verdict import verdict_lines
from a40console.model.engine import EngineState
from a40console.tui.keymap import resolve
from a40console.tui.panels.verdict import verdict
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service
from tests.tui.fog import fogged

MARKUP = re.compile(r"#\[[^]]*\]")


@given(st.integers(0, 10_000), st.integers(1, 200), st.booleans())
def test_it_fits_its_width(seed: int, width: int, markup: bool) -> None:
    line = bar(fogged(make.snapshot(), 0.3, seed), width, markup=markup)
    seen = MARKUP.sub("", line).replace("##", "#")
    assert 0 < cell_len(seen) <= width
    assert "\n" not in line
    assert markup or "#[" not in line


def test_narrow_bars_leave_out_whole_parts_the_last_first() -> None:
    snapshot = make.snapshot()
    assert bar(snapshot, 10) == "● SERVING"
    assert bar(snapshot, 30) == "● SERVING  509 tok/s"
    assert bar(snapshot, 5) == "● SE…"
    assert bar(snapshot, None).endswith("qwen3-coder-30b")


def test_errors_come_right_after_the_state() -> None:
    hung = make.hung()
    errors = sum(found.severity == "error" for found in hung.findings)
    assert errors
    assert bar(hung, 24).startswith(f"▲ HUNG  ✖ {errors} error")


@pytest.mark.parametrize("state", list(EngineState))
def test_a_state_has_the_sign_that_it_has_on_every_screen(state: EngineState) -> None:
    snapshot = make.snapshot(engine=replace(make.snapshot().engine, state=state))
    shown = Reading(
        snapshot=snapshot, link=Link("live"), age_s=0, unread=0, past=Past(), keymap=resolve({})
    )
    drawn = "".join(span.text for span in verdict(shown, Size(120, 3))[0]).strip()
    assert bar(snapshot, None)[0] == verdict_lines(snapshot)[0][0] == drawn[0]


def test_simulated_figures_say_so_in_the_smallest_bar() -> None:
    assert "SIMULATED" in bar(replace(make.snapshot(), simulated=True), 25)


def test_tmux_gets_colours_as_markup_and_cannot_be_steered() -> None:
    assert bar(make.snapshot(), 10, markup=True) == "#[fg=green]● SERVING#[default]"
    engine = replace(make.snapshot().engine, profile="#(reboot)#[fg=red]")
    line = bar(make.snapshot(engine=engine), None, markup=True)
    assert line.endswith("##(reboot)##[fg=red]")


@pytest.mark.parametrize("state", list(EngineState))
def test_every_state_has_a_line(state: EngineState) -> None:
    engine = replace(make.snapshot().engine, state=state)
    word = "NO ENGINE" if state is EngineState.ABSENT else state.value.upper()
    assert word in bar(make.snapshot(engine=engine), 40)


def test_no_service_is_a_short_text() -> None:
    assert without_service(60) == "○ no service"
    assert cell_len(without_service(4)) == 4


def test_the_command_answers_in_half_a_second(console: Run, service: Service) -> None:
    service(state="serving", slots=2)
    took_s = []
    for _ in range(3):
        begun_s = time.perf_counter()
        run = console("status", "--line", "--tmux", "--width", "60")
        took_s.append(time.perf_counter() - begun_s)
    assert run.returncode == 0
    assert run.stdout.startswith("#[fg=green]● SERVING")
    assert run.stdout.count("\n") == 1
    assert min(took_s) < 0.5


def test_without_a_service_it_is_harmless_and_the_code_is_as_ever(console: Run) -> None:
    run = console("status", "--line", "--tmux")
    assert run.stdout == "○ no service\n"
    assert run.stderr == ""
    assert run.returncode == 3


def test_ascii_where_it_is_asked_for(console: Run, service: Service) -> None:
    service(state="serving", slots=1)
    run = console("--ascii", "status", "--line", "--width", "40")
    assert run.stdout.startswith("* SERVING")
    assert run.stdout.isascii()
