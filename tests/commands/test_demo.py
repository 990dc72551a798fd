"""`a40console demo`: an A40 on a laptop, and nothing of it left; its gallery the same each time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from a40console.commands import gallery
from a40console.tui.gallery import views
from tests.live.terminal import Tmux

DEMO = (sys.executable, "-m", "a40console", "demo")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short folder in which the demo makes its home, so that the test knows whose it is."""
    made = Path(tempfile.mkdtemp(prefix="a40d-", dir="/tmp"))
    yield made
    for process in left_of(made):
        process.kill()
    shutil.rmtree(made, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("A40CONSOLE_")}
    home = folder / "operator"
    return {**kept, "TMPDIR": str(folder), "A40CONSOLE_HOME": str(home), "TERM": "xterm-256color"}


def left_of(folder: Path) -> list[psutil.Process]:
    """Living processes that name the folder, but tmux."""
    found = []
    for process in psutil.process_iter():
        try:
            named = str(folder) in " ".join(process.cmdline()) or process.cwd().startswith(
                str(folder)
            )
            if named and "tmux" not in process.name():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def wait_for_nothing(folder: Path, timeout_s: float = 40) -> None:
    """Until neither a process nor a folder of the demo's is left."""
    deadline_s = time.monotonic() + timeout_s
    while left_of(folder) or any(folder.glob("a40*")):
        left = [path.name for path in folder.iterdir()]
        assert time.monotonic() < deadline_s, (left_of(folder), left)
        time.sleep(0.2)


@pytest.mark.pty
def test_it_shows_a_simulated_card_at_work_and_leaves_nothing(folder: Path) -> None:
    words = ("sh", "-c", f"{' '.join(DEMO)}; echo ended with $?; sleep 60")
    with Tmux(words, environment(folder), folder=folder) as terminal:
        terminal.wait_for("SIMULATED", 30)
        screen = terminal.wait_for(lambda text: re.search(r"[1-9] decoding", text) is not None, 60)
        assert "SIMULATED" in screen
        assert "claude-code" in screen
        assert "A40 (sim)" in screen
        assert not (folder / "operator" / "state").exists()  # the operator's own is not touched
        terminal.press("q")
        terminal.wait_for("Leave?")
        terminal.press("y")
        terminal.wait_for("ended with 0", 40)
    wait_for_nothing(folder)
    assert left_of(folder) == []


@pytest.mark.pty
def test_a_terminal_that_is_closed_on_it_leaves_nothing_either(folder: Path) -> None:
    with Tmux(DEMO, environment(folder), folder=folder) as terminal:
        terminal.wait_for("SIMULATED", 30)
    wait_for_nothing(folder)
    assert left_of(folder) == []


@pytest.mark.pty
@pytest.mark.parametrize("console_too", [False, True])
def test_with_its_clients_killed_it_leaves_nothing_either(folder: Path, console_too: bool) -> None:
    with Tmux(DEMO, environment(folder), folder=folder) as terminal:
        terminal.wait_for("SIMULATED", 30)
        console = psutil.Process(terminal.pane_pid)
        [clients] = [
            process for process in left_of(folder) if "a40console.sim.crowd" in process.cmdline()
        ]
        clients.kill()
        if console_too:
            console.kill()
    wait_for_nothing(folder)
    assert left_of(folder) == []


def test_without_a_terminal_it_starts_nothing(folder: Path) -> None:
    done = subprocess.run(
        DEMO, env=environment(folder), capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The gallery, drawn twice in one size from a short day."""
    once, again = tmp_path_factory.mktemp("once"), tmp_path_factory.mktemp("again")
    for target in (once, again):
        assert gallery.draw_gallery(target, ((80, 24),), seconds=40) == 0
    return once, again


def test_the_gallery_has_every_view_and_says_what_it_is(drawn: tuple[Path, Path]) -> None:
    pictures = {path.stem: path.read_text() for path in drawn[0].glob("*.svg")}
    assert len(pictures) == len(views())
    named = {"overview", "engine", "logs", "events", "cost", "why-slow", "help"}
    assert {f"{name}-80x24" for name in named} <= pictures.keys()
    for name, svg in pictures.items():
        # The help shows no figure, and on a small screen nothing but itself.
        assert "SIMULATED" in svg or name.startswith("help"), name


def test_two_galleries_are_the_same_to_the_byte(drawn: tuple[Path, Path]) -> None:
    once, again = drawn
    names = sorted(path.name for path in once.glob("*.svg"))
    assert names == sorted(path.name for path in again.glob("*.svg"))
    for name in names:
        assert (once / name).read_bytes() == (again / name).read_bytes(), name
