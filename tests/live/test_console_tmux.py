"""The console in a real terminal: every key does what it says, and the terminal's end is harmless.

A real engine behind a real service; the terminal is tmux's. What a key did is read from
`status --json`, not from the screen it was pressed on.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import httpx
import psutil
import pytest

from a40console.engines import embedded
from a40console.model.command import BY_ID, COMMANDS
from a40console.tui.keymap import resolve
from tests.live.console import Console, console
from tests.live.streams import WORDS, chat
from tests.live.terminal import Tmux
from tests.live.test_llamacpp import LLAMA_SERVER, PROFILE

pytestmark = [
    pytest.mark.engine,
    pytest.mark.pty,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

SETTINGS = """
profile = "tiny"
[gateway]
port = 0
[service]
interval_s = 0.25
"""
CONSOLE = (sys.executable, "-m", "a40console")
KEYS = resolve({})
_TMUX_KEYS = {"space": "Space", "enter": "Enter", "←": "Left", "→": "Right"}


@pytest.fixture(scope="module")
def live(model_file: Path) -> Iterator[Console]:
    """A home whose settings name a profile; nothing runs in it yet."""
    with console() as made:
        made.configure(SETTINGS)
        made.profile("tiny", PROFILE)
        made.profile("other", PROFILE)
        made.paths.models.mkdir(parents=True)
        (made.paths.models / model_file.name).symlink_to(model_file)
        yield made


@pytest.fixture(scope="module")
def terminal(live: Console) -> Iterator[Tmux]:
    """A shell, from which the console is called."""
    with in_tmux(live, ("sh",)) as made:
        yield made


@pytest.fixture
def tui(live: Console, terminal: Tmux) -> Tmux:
    """The console's overview in the shell's terminal, `tiny` serving."""
    open_console(terminal)
    terminal.press("Escape")
    serve_tiny(live)
    press(terminal, "view.overview")
    terminal.wait_for(lambda screen: "SERVING" in screen and "─ Speed" in screen)
    return terminal


def in_tmux(
    live: Console, words: tuple[str, ...] = CONSOLE, *, columns: int = 120, rows: int = 40
) -> Tmux:
    """A terminal as an operator has it: in colour."""
    environment = {k: v for k, v in live.environment.items() if k != "NO_COLOR"}
    return Tmux(words, environment, folder=live.home, columns=columns, rows=rows)


def open_console(terminal: Tmux) -> None:
    """Call the console from the shell, unless it is open."""
    if not terminal.in_alternate_screen:
        terminal.type(" ".join(CONSOLE) + "; echo left with $?")
        terminal.press("Enter")
        terminal.wait_for("SERVING", 60)


def serve_tiny(live: Console) -> None:
    """Whatever a test left behind: `tiny` serves afterwards."""
    engine = live.status()["engine"]
    if engine["state"] == "orphaned":
        live.succeed("engine", "clean")
    if engine["state"] != "serving":
        live.succeed("engine", "start", "tiny", timeout_s=60)
    elif engine["profile"] != "tiny":
        live.succeed("engine", "switch", "tiny", timeout_s=60)


def press(tui: Tmux, command_id: str) -> None:
    """Press a command's key."""
    hint = KEYS.hint(command_id)
    tui.press(_TMUX_KEYS.get(hint, hint))


def confirm(tui: Tmux, command_id: str) -> None:
    """Say yes to a command's question."""
    tui.wait_for(BY_ID[command_id].confirm)
    tui.press("y")


def pick(tui: Tmux, name: str) -> None:
    """Choose an entry of a picker by the key before its name."""
    screen = tui.wait_for("escape cancel")
    entry = re.search(rf"(\w)  {re.escape(name)}\s", screen)
    assert entry is not None, screen
    tui.press(entry[1])


def close_dialog(tui: Tmux) -> None:
    """Close the dialog in front with escape."""
    tui.press("Escape")
    tui.wait_for(lambda screen: "escape " not in screen)


def recent(live: Console) -> set[str]:
    """Requests that the service says have finished."""
    return {row["request_id"] for row in live.status()["recent"]}


def drawn_steps(screen: str) -> int:
    """How many columns of the speed chart have a bar; each is about 25 s at 120×40."""
    lines = screen.splitlines()
    top = next(y for y, line in enumerate(lines) if "─ Speed" in line)
    axis = next(y for y, line in enumerate(lines) if y > top and "┼" in line)
    right = lines[top].find("─ Engine")
    cells = [cell for line in lines[top + 1 : axis] for cell in enumerate(line[:right])]
    return len({x for x, char in cells if "▁" <= char <= "█"})


def is_whole(screen: str) -> bool:
    """Whether the three verdict lines stand at the top and the keys at the bottom."""
    lines = screen.splitlines()
    heads = [line.split(maxsplit=1)[:1] for line in lines[:3]]
    return heads == [["●"], ["LIMIT"], ["COST"]] and "q leave" in lines[-1]


def shows_four(screen: str) -> bool:
    """Whether it is whole, counts four requests and has a row for each."""
    rows = sum(" decode " in line for line in screen.splitlines())
    return is_whole(screen) and "4 decoding" in screen and rows == 4


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@contextmanager
def four_clients(live: Console) -> Iterator[list[str]]:
    """Four clients that stream through the gateway meanwhile; what went wrong with any of them."""
    gateway, enough, troubles = live.gateway, Event(), list[str]()

    async def stream(number: int) -> None:
        while not troubles:
            try:
                answer = await chat(gateway, WORDS.format(number), max_tokens=1900)
            except httpx.HTTPError as error:
                troubles.append(repr(error))
            else:
                troubles.extend(filter(None, [answer.error]))

    async def run() -> None:
        tasks = [asyncio.create_task(stream(number)) for number in range(4)]
        await asyncio.to_thread(enough.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        live.wait_for(lambda: decoding(live) == 4, 60)
        yield troubles
    finally:
        enough.set()
        thread.join()
        live.wait_for(lambda: decoding(live) == 0, 20)


def decoding(live: Console) -> int:
    """Requests that get tokens now."""
    slots = live.status()["slots"]
    return sum(slot["phase"] == "decode" for slot in slots) if isinstance(slots, list) else 0


def generated(live: Console) -> int:
    """Tokens that the running requests have got so far."""
    return sum(slot["generated_tokens"] for slot in live.status()["slots"])


def test_opening_the_console_starts_service_and_engine(live: Console, terminal: Tmux) -> None:
    assert live.run("status").returncode == 3
    open_console(terminal)
    status = live.status()
    assert (status["engine"]["state"], status["engine"]["profile"]) == ("serving", "tiny")
    for pid in (status["service"]["pid"], status["engine"]["pid"]):
        assert os.getsid(pid) != os.getsid(terminal.pane_pid)
    kinds = [json.loads(line)["kind"] for line in live.paths.events.read_text().splitlines()]
    assert "command.failed" not in kinds


def overview(tui: Tmux, live: Console) -> None:
    press(tui, "view.engine")
    tui.wait_for("Identity")
    press(tui, "view.overview")
    tui.wait_for(lambda screen: "─ Speed" in screen and "held at gate" in screen)


def engine_view(tui: Tmux, live: Console) -> None:
    engine = live.status()["engine"]
    press(tui, "view.engine")
    tui.wait_for(
        lambda screen: "Identity" in screen and f"pid             {engine['pid']}" in screen
    )


def logs(tui: Tmux, live: Console) -> None:
    written = (live.run_folder() / "output.log").read_text().splitlines()
    press(tui, "view.logs")
    tui.wait_for(lambda screen: "following" in screen and written[-1][:60] in screen)


def journal(tui: Tmux, live: Console) -> None:
    press(tui, "view.events")
    tui.wait_for(lambda screen: "engine.serving" in screen and "Last 24 h" in screen)


def cost(tui: Tmux, live: Console) -> None:
    press(tui, "view.cost")
    tui.wait_for(lambda screen: "─ Paid" in screen)


def pause(tui: Tmux, live: Console) -> None:
    press(tui, "view.pause")
    screen = tui.wait_for("PAUSED")
    time.sleep(1.5)
    assert live_clock(tui.capture()) == live_clock(screen)
    press(tui, "view.pause")
    tui.wait_for(lambda screen: "PAUSED" not in screen)


def live_clock(screen: str) -> str:
    """The time of day in the line of the views, whatever stands beside it."""
    found = re.search(r"\d\d:\d\d:\d\d", screen.splitlines()[3])
    return found[0] if found else ""


def one_request(tui: Tmux, live: Console) -> None:
    """The last request that ended, or the one that runs."""
    live.succeed("ask", "hello", "--max-tokens", "3")
    press(tui, "view.overview")
    tui.wait_for("at ")
    press(tui, "slot.show")
    tui.wait_for(lambda screen: "─ Request " in screen and "generated" in screen)
    close_dialog(tui)


def back_and_forth(tui: Tmux, live: Console) -> None:
    """A service this young has no time before: the picture stays, and stays live."""
    for command_id in ("time.back", "time.forward", "time.now"):
        press(tui, command_id)
        tui.wait_for(lambda screen: is_whole(screen) and "live " in screen)


def span(tui: Tmux, live: Console) -> None:
    press(tui, "time.shorter")
    tui.wait_for("tok/s, 5 min")
    press(tui, "time.longer")
    tui.wait_for("tok/s, 15 min")


def note(tui: Tmux, live: Console) -> None:
    press(tui, "note.add")
    tui.wait_for("It stands among the events")
    tui.type("pruning is off")
    tui.press("Enter")
    live.wait_for(lambda: "pruning is off" in live.succeed("events"), 10)


def mute(tui: Tmux, live: Console) -> None:
    press(tui, "alarms.mute")
    tui.wait_for("alarms off")
    press(tui, "alarms.mute")
    tui.wait_for(lambda screen: "alarms off" not in screen)


def start(tui: Tmux, live: Console) -> None:
    live.succeed("engine", "stop")
    tui.wait_for("STOPPED")
    press(tui, "engine.start")
    pick(tui, "other")
    live.wait_for(lambda: live.status()["engine"]["state"] == "serving", 40)
    assert live.status()["engine"]["profile"] == "other"


def stop(tui: Tmux, live: Console) -> None:
    leader = psutil.Process(live.status()["engine"]["pid"])
    press(tui, "engine.stop")
    confirm(tui, "engine.stop")
    live.wait_for(lambda: live.status()["engine"]["state"] == "stopped", 30)
    assert gone(leader)
    tui.wait_for("STOPPED")


def restart(tui: Tmux, live: Console) -> None:
    before = live.status()["engine"]
    press(tui, "engine.restart")
    confirm(tui, "engine.restart")
    live.wait_for(lambda: live.status()["engine"]["id"] != before["id"], 30)
    live.succeed("wait", "ready", "--timeout", "40")
    after = live.status()["engine"]
    assert (after["state"], after["profile"]) == ("serving", "tiny")
    assert after["pid"] != before["pid"]


def switch(tui: Tmux, live: Console) -> None:
    press(tui, "engine.switch")
    pick(tui, "other")
    confirm(tui, "engine.switch")
    live.wait_for(lambda: live.status()["engine"]["profile"] == "other", 40)
    live.succeed("wait", "ready", "--timeout", "40")
    tui.wait_for("Done.")


def speculation(tui: Tmux, live: Console) -> None:
    pid = live.status()["engine"]["pid"]
    press(tui, "engine.speculation")
    confirm(tui, "engine.speculation")
    live.wait_for(lambda: live.status()["speculation"]["mode"] == "on", 40)
    live.succeed("wait", "ready", "--timeout", "40")
    assert live.status()["engine"]["pid"] != pid
    tui.wait_for("n-gram 6")


LEAKY = """#!/bin/sh
sleep 600 &
exec {server} "$@"
"""


def clean(tui: Tmux, live: Console) -> None:
    """The leader is killed while a child of its own lives; the child is ended by the key."""
    server, leaky = live.home / "llama-server", live.home / "leaky-server"
    server.write_text(LLAMA_SERVER.format(python=sys.executable, embedded=embedded.__file__))
    leaky.write_text(LEAKY.format(server=server))
    for program in (server, leaky):
        program.chmod(0o755)
    kind = 'kind = "llamacpp"'
    live.profile("leaky", PROFILE.replace(kind, f'{kind}\nexecutable = "{leaky}"'))
    live.succeed("engine", "switch", "leaky", timeout_s=90)
    leader = psutil.Process(live.status()["engine"]["pid"])
    child = next(process for process in leader.children() if process.name() == "sleep")
    leader.kill()
    tui.wait_for("ORPHANED")
    assert live.status()["engine"]["state"] == "orphaned"
    press(tui, "engine.clean")
    confirm(tui, "engine.clean")
    live.wait_for(lambda: live.status()["engine"]["state"] == "stopped", 20)
    assert gone(child)


def request(tui: Tmux, live: Console) -> None:
    before = recent(live)
    press(tui, "request.test")
    screen = tui.wait_for("tokens per s", 40)
    assert "Say hello" in screen
    live.wait_for(lambda: len(recent(live) - before) == 1, 10)
    close_dialog(tui)


def explanation(tui: Tmux, live: Console) -> None:
    press(tui, "limit.explain")
    tui.wait_for(lambda screen: "Ruled out" in screen and "Findings" in screen)
    close_dialog(tui)


def environment(tui: Tmux, live: Console) -> None:
    variables = live.client_environment()
    press(tui, "client.env")
    screen = tui.wait_for(f"export ANTHROPIC_BASE_URL={variables['ANTHROPIC_BASE_URL']}")
    assert variables["ANTHROPIC_AUTH_TOKEN"] not in screen
    close_dialog(tui)


def events(tui: Tmux, live: Console) -> None:
    """What is unread stands on a page of its own, and is read with it."""
    live.succeed("engine", "restart", timeout_s=60)
    tui.wait_for(lambda screen: "new [u]" in screen or "new event" in screen)
    press(tui, "events.read")
    tui.wait_for(lambda screen: "Since you looked" in screen and "tiny was started" in screen)
    close_dialog(tui)
    tui.wait_for(lambda screen: "new [u]" not in screen and "new event" not in screen)


def manual(tui: Tmux, live: Console) -> None:
    press(tui, "help.show")
    tui.wait_for(BY_ID["limit.explain"].help)
    close_dialog(tui)


def leave(tui: Tmux, live: Console) -> None:
    engine = live.status()["engine"]
    press(tui, "console.quit")
    tui.wait_for("The service and the engine tiny keep running.")
    tui.press("y")
    tui.wait_for("left with 0")
    assert not tui.in_alternate_screen
    assert not tui.takes_the_mouse
    after = live.status()["engine"]
    assert (after["state"], after["pid"]) == ("serving", engine["pid"])


EFFECTS: dict[str, Callable[[Tmux, Console], None]] = {
    "view.overview": overview,
    "view.engine": engine_view,
    "view.logs": logs,
    "view.events": journal,
    "view.cost": cost,
    "view.pause": pause,
    "slot.show": one_request,
    "time.back": back_and_forth,
    "time.forward": back_and_forth,
    "time.now": back_and_forth,
    "time.shorter": span,
    "time.longer": span,
    "note.add": note,
    "alarms.mute": mute,
    "engine.start": start,
    "engine.stop": stop,
    "engine.restart": restart,
    "engine.switch": switch,
    "engine.speculation": speculation,
    "engine.clean": clean,
    "request.test": request,
    "limit.explain": explanation,
    "client.env": environment,
    "events.read": events,
    "help.show": manual,
    "console.quit": leave,
}
"""How to see that a command's key did what the table says."""


@pytest.mark.parametrize("command_id", [command.id for command in COMMANDS if command.key])
def test_a_key_does_what_the_table_says(tui: Tmux, live: Console, command_id: str) -> None:
    EFFECTS[command_id](tui, live)


def test_the_palette_runs_a_command_by_its_name(tui: Tmux, live: Console) -> None:
    before = recent(live)
    tui.press("C-p")
    tui.wait_for("Search for commands")
    tui.type(BY_ID["request.test"].title)
    tui.wait_for(BY_ID["request.test"].help)
    tui.press("Enter")
    tui.wait_for("tokens per s", 40)
    live.wait_for(lambda: len(recent(live) - before) == 1, 10)
    close_dialog(tui)


def test_without_a_yes_nothing_happens(tui: Tmux, live: Console) -> None:
    before = live.status()
    for command_id, no in (
        ("engine.stop", "Escape"),
        ("engine.restart", "n"),
        ("engine.speculation", "Enter"),  # the button in focus is No
        ("engine.switch", "Escape"),
        ("console.quit", "n"),
    ):
        press(tui, command_id)
        if command_id == "engine.switch":
            pick(tui, "other")
        tui.wait_for("escape no")
        tui.press(no)
        screen = tui.wait_for(lambda screen: "escape " not in screen)
        assert "Under way" not in screen
    after = live.status()
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert after["events_last_id"] == before["events_last_id"]


def shows(sign: str) -> Callable[[str], bool]:
    """Whether a screen is whole and holds a pattern."""
    return lambda screen: re.search(sign, screen) is not None and is_whole(screen)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_every_screen_fits_and_gives_the_verdict(
    tui: Tmux, live: Console, columns: int, rows: int
) -> None:
    whole = (tui.columns, tui.rows)
    tui.resize(columns, rows)
    try:
        for view, sign in (
            ("view.engine", r"━ ?2 Engine ?━"),
            ("view.logs", "following"),
            ("view.events", r"━ ?4 Events ?━"),
            ("view.cost", r"━ ?5 Cost ?━"),
            ("view.overview", "TTFT"),
        ):
            press(tui, view)
            screen = tui.wait_for(shows(sign))
            lines = screen.splitlines()
            assert len(lines) == rows, screen
            assert max(map(len, lines)) <= columns, screen
    finally:
        tui.resize(*whole)


def test_sigterm_gives_the_terminal_back(tui: Tmux, live: Console) -> None:
    (process,) = psutil.Process(tui.pane_pid).children()
    process.terminate()
    tui.wait_for(f"left with {128 + signal.SIGTERM}")
    assert not tui.in_alternate_screen
    assert not tui.takes_the_mouse
    tui.type("echo typed $((6 * 7))")
    tui.press("Enter")
    tui.wait_for("typed 42")


def kill(terminal: Tmux) -> None:
    os.kill(terminal.pane_pid, signal.SIGKILL)


def hang_up(terminal: Tmux) -> None:
    terminal.close()


@pytest.mark.parametrize("end", [kill, hang_up])
def test_the_consoles_end_is_its_own(live: Console, end: Callable[[Tmux], None]) -> None:
    """Killed, or its terminal closed by a dropped SSH: the clients' streams never notice."""
    with in_tmux(live) as first:
        first.wait_for("SERVING", 60)
        serve_tiny(live)
        with four_clients(live) as troubles:
            screen = first.wait_for(
                lambda screen: shows_four(screen) and drawn_steps(screen) > 1, 60
            )
            seen = drawn_steps(screen)
            before, so_far = live.status(), generated(live)
            tui = psutil.Process(first.pane_pid)
            end(first)
            live.wait_for(lambda: gone(tui), 3)
            live.wait_for(lambda: generated(live) != so_far, 10)
            with in_tmux(live) as second:
                second.wait_for(shows_four, 30)
                second.wait_for(lambda screen: drawn_steps(screen) >= seen - 1, 5)
            after = live.status()
            assert not troubles
    assert after["service"]["pid"] == before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]


def test_a_stalled_terminal_stops_nothing_and_catches_up(live: Console) -> None:
    """As with Ctrl-S or a laptop asleep: nobody reads what the console writes."""
    with in_tmux(live) as terminal:
        terminal.wait_for("SERVING", 60)
        serve_tiny(live)
        with four_clients(live) as troubles:
            terminal.wait_for(shows_four)
            tui = psutil.Process(terminal.pane_pid)
            with terminal.stalled():
                live.wait_for(lambda: writes_nothing(tui), 40)
                time.sleep(10)  # 40 frames: more than Textual's driver can queue
                turns, so_far = tui.num_ctx_switches().voluntary, generated(live)
                time.sleep(4)
                # The main thread went on to wait for something: the event loop is not blocked.
                assert tui.num_ctx_switches().voluntary - turns >= 4
                assert generated(live) != so_far
            resumed = datetime.now().astimezone().replace(microsecond=0)
            terminal.wait_for(lambda screen: shown_at(screen) >= resumed and shows_four(screen), 3)
            assert not troubles


def writes_nothing(process: psutil.Process) -> bool:
    """Whether a process got no byte written for two seconds."""
    before = process.io_counters().write_chars
    time.sleep(2)
    return bool(process.io_counters().write_chars == before)


def shown_at(screen: str) -> datetime:
    """When the figures on the screen were taken, to the second, at most half a day ago."""
    found = re.search(r"live (\d\d):(\d\d):(\d\d)", screen)
    now = datetime.now().astimezone()
    if found is None:
        return now - timedelta(days=1)
    hour, minute, second = map(int, found.groups())
    at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return at - timedelta(days=1) if at > now + timedelta(hours=12) else at
