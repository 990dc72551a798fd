"""Claude Code through a switch of its engine in the middle of its turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.client.claude_code import ClaudeCode, until
from tests.client.sessions import ended, session_of
from tests.faults.console import FaultConsole

Start = Callable[..., tuple[FaultConsole, ClaudeCode]]

STEPS = 8


def steps() -> list[dict[str, Any]]:
    """Eight turns, each of which calls a tool that takes a moment."""

    def call(number: int) -> list[dict[str, Any]]:
        command = {"command": f"sleep 0.5; echo step-{number}"}
        words = "I do the next of the steps now, as the one before it has been done. " * 3
        return [{"text": words}, {"tool": "Bash", "input": command}]

    last: dict[str, Any] = {"when": f"step-{STEPS}", "say": [{"text": "All steps are done."}]}
    between: list[dict[str, Any]] = [
        {"when": f"step-{n}", "say": call(n + 1)} for n in range(1, STEPS)
    ]
    return [last, *reversed(between), {"when": "begin the steps", "say": call(1)}]


def test_no_turn_is_lost_in_a_switch(claude: Start) -> None:
    console, user = claude(steps(), speed=3)
    mine = (console.paths.profiles / "sim.toml").read_text()
    other = mine.replace("qwen3-coder-30b", "kimi-linear-48b").replace('"0.3"', '"6.0"')
    console.profile("other", 'served_name = "sim"\n' + other)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(user.ask, "begin the steps", "--allowedTools", "Bash", timeout_s=150)
        until(lambda: (session_of(console, user) or {"requests": 0})["requests"] >= 3, 60)
        console.succeed("engine", "switch", "other", "--yes")
        done = asked.result()
    assert done.code == 0, done
    assert done.text == "All steps are done.", done
    engine = console.status()["engine"]
    assert (engine["profile"], engine["state"]) == ("other", "serving")
    session = until(lambda: ended(console, user, requests=STEPS + 1))
    assert session["requests"] == STEPS + 1, "none was sent twice"
    switched = [event for event in console.events() if event["kind"] == "engine.switched"]
    assert len(switched) == 1
    assert float(switched[0]["data"]["held_s"]) > 2
    assert console.status()["requests"]["failed"] == 0, json.dumps(session)
