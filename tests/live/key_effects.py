"""How to see that a command's key did what the table says."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable

import psutil

from a40console.engines import embedded
from a40console.model.command import BY_ID
from tests.live.console import Console
from tests.live.open_consoles import close_dialog, confirm, gone, is_whole, pick, press, recent
from tests.live.terminal import Tmux
from tests.live.test_llamacpp import LLAMA_SERVER, PROFILE


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


def asked_session(live: Console) -> str:
    """The session of a question that was just answered."""
    live.succeed("ask", "hello", "--max-tokens", "3")
    live.wait_for(lambda: bool(live.status()["sessions"]), 10)
    name: str = live.status()["sessions"][0]["session"]
    return name


def sessions(tui: Tmux, live: Console) -> None:
    name = asked_session(live)
    press(tui, "view.sessions")
    tui.wait_for(lambda screen: name[:4] in screen and "turns" in screen)


def capture(tui: Tmux, live: Console) -> None:
    name = asked_session(live)
    press(tui, "view.sessions")
    tui.wait_for(name[:4])
    press(tui, "sessions.capture")
    tui.wait_for("Capture the text of session")
    tui.press("y")
    tui.wait_for("● CAPTURE")
    live.succeed("sessions", "capture", name, "off")
    tui.wait_for(lambda screen: "● CAPTURE" not in screen)


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


def runs(tui: Tmux, live: Console) -> None:
    press(tui, "view.runs")
    tui.wait_for("No experiment has been run yet")


def compaction(tui: Tmux, live: Console) -> None:
    press(tui, "experiment.compaction")
    tui.wait_for(lambda screen: "s start" in screen and "arms" in screen)
    tui.press("Escape")
    tui.wait_for(lambda screen: "s start" not in screen)


def experiment(tui: Tmux, live: Console) -> None:
    press(tui, "experiment.choose")
    tui.wait_for(lambda screen: "escape cancel" in screen and "?" in screen)
    tui.press("Escape")
    tui.wait_for(lambda screen: "escape cancel" not in screen)


def mute(tui: Tmux, live: Console) -> None:
    press(tui, "alarms.mute")
    tui.wait_for("alarms off")
    press(tui, "alarms.mute")
    tui.wait_for(lambda screen: "alarms off" not in screen)


def start(tui: Tmux, live: Console) -> None:
    live.succeed("engine", "stop", "--yes")
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
    tui.wait_for("switch to other: clients waited")


def apply(tui: Tmux, live: Console) -> None:
    """An edit that the engine is not told of is taken over while it runs."""
    pid = live.status()["engine"]["pid"]
    live.profile("tiny", 'title = "Tiny indeed"\n' + PROFILE)
    tui.wait_for("profile-edited")
    press(tui, "engine.apply")
    tui.wait_for("Taken over while it runs:")
    tui.press("y")
    live.wait_for(lambda: "profile.applied" in live.succeed("events"), 20)
    assert live.status()["engine"]["pid"] == pid
    live.profile("tiny", PROFILE)


def fix(tui: Tmux, live: Console) -> None:
    """What runs well has nothing to mend, and the key says so."""
    press(tui, "profile.fix")
    tui.wait_for(
        lambda screen: "No start has failed" in screen or "No change of the profile" in screen
    )


def abort(tui: Tmux, live: Console) -> None:
    """llama.cpp's server ends no request of others, and the key says so."""
    press(tui, "request.abort")
    tui.wait_for("Not now: ")


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
    live.succeed("engine", "switch", "leaky", "--yes", timeout_s=90)
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
    press(tui, "limit.why")
    tui.wait_for(lambda screen: "Ruled out" in screen and "Findings" in screen)
    close_dialog(tui)


def environment(tui: Tmux, live: Console) -> None:
    variables = live.client_environment()
    press(tui, "client.env")
    screen = tui.wait_for(f"export ANTHROPIC_BASE_URL='{variables['ANTHROPIC_BASE_URL']}'")
    assert variables["ANTHROPIC_AUTH_TOKEN"] not in screen
    close_dialog(tui)


def events(tui: Tmux, live: Console) -> None:
    """What is unread stands on a page of its own, and is read with it."""
    live.succeed("engine", "restart", "--yes", timeout_s=60)
    tui.wait_for(lambda screen: "new [u]" in screen or "new event" in screen)
    press(tui, "digest.show")
    tui.wait_for(lambda screen: "Since you looked" in screen and "tiny was started" in screen)
    close_dialog(tui)
    tui.wait_for(lambda screen: "new [u]" not in screen and "new event" not in screen)


def manual(tui: Tmux, live: Console) -> None:
    press(tui, "help.show")
    tui.wait_for(BY_ID["engine.start"].help)
    for command_id in ("limit.why", "console.quit"):  # a page apart, each
        tui.press("NPage")
        tui.wait_for(BY_ID[command_id].help)
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
    "view.sessions": sessions,
    "view.runs": runs,
    "sessions.capture": capture,
    "view.pause": pause,
    "slot.show": one_request,
    "time.back": back_and_forth,
    "time.forward": back_and_forth,
    "time.now": back_and_forth,
    "time.shorter": span,
    "time.longer": span,
    "note.add": note,
    "experiment.compaction": compaction,
    "experiment.choose": experiment,
    "alarms.mute": mute,
    "engine.start": start,
    "engine.stop": stop,
    "engine.restart": restart,
    "engine.switch": switch,
    "engine.speculation": speculation,
    "engine.apply": apply,
    "profile.fix": fix,
    "request.abort": abort,
    "engine.clean": clean,
    "request.test": request,
    "limit.why": explanation,
    "client.env": environment,
    "digest.show": events,
    "help.show": manual,
    "console.quit": leave,
}
"""How to see that a command's key did what the table says."""
