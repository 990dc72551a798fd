"""Claude Code without a terminal: a prompt, tools, turns of one session, sub-agents."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.client.claude_code import ClaudeCode, until
from tests.client.sessions import detail_of, ended, session_of
from tests.faults.console import FaultConsole

Start = Callable[..., tuple[FaultConsole, ClaudeCode]]


def test_a_prompt_is_answered_and_its_session_is_seen(claude: Start) -> None:
    console, user = claude([{"when": "say hi", "say": [{"text": "Hello from the script."}]}])
    done = user.ask("say hi")
    assert done.code == 0, done
    assert done.text == "Hello from the script."
    session = until(lambda: ended(console, user, requests=1))
    assert session["client"] == "claude-code"
    assert session["requests"] == 1
    assert session["generated_tokens"] == done.output["usage"]["output_tokens"]


def test_a_tool_is_called_run_and_answered(claude: Start) -> None:
    console, user = claude(
        [
            {
                "when": "run the tool",
                "say": [
                    {"text": "I run it."},
                    {"tool": "Bash", "input": {"command": "echo marker-$((40 + 2))"}},
                ],
                "times": 1,
            },
            {"when": "marker-42", "say": [{"text": "It printed marker-42."}]},
        ]
    )
    done = user.ask("run the tool", "--allowedTools", "Bash")
    assert done.text == "It printed marker-42.", done
    session = until(lambda: ended(console, user, requests=2))
    assert session["turns"] == 2
    detail = detail_of(console, user)
    tools = {tool["name"]: tool for tool in detail["tools"]}
    assert tools["Bash"]["calls"] == 1
    assert tools["Bash"]["failed"] == 0
    assert isinstance(tools["Bash"]["longest_s"], (int, float))


def test_calls_beside_each_other_are_all_run(claude: Start) -> None:
    calls = [{"tool": "Bash", "input": {"command": f"echo part-{n}"}} for n in range(3)]
    _, user = claude(
        [
            {"when": "run three", "say": calls, "times": 1},
            {"when": "part-2", "say": [{"text": "All three ran."}]},
        ]
    )
    assert user.ask("run three", "--allowedTools", "Bash").text == "All three ran."


def test_the_second_turn_reads_the_first_from_the_cache(claude: Start) -> None:
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}])
    assert user.ask("the first question").text == "Yes."
    first = until(lambda: ended(console, user, requests=1))
    assert user.ask("the second question").text == "Yes."
    both = until(lambda: ended(console, user, requests=2))
    second_prompt = both["prompt_tokens"] - first["prompt_tokens"]
    reused = both["reused_tokens"] - first["reused_tokens"]
    assert reused > 0.9 * second_prompt, (first, both)
    assert detail_of(console, user)["losses"] == []


def test_two_sessions_share_what_they_begin_with(claude: Start) -> None:
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}])
    user.ask("a question of the first")
    until(lambda: ended(console, user, requests=1))
    user.start_again()
    user.ask("something else of another session")
    other = until(lambda: ended(console, user, requests=1))
    assert other["reused_tokens"] > 0.5 * other["prompt_tokens"]


def test_a_sub_agent_is_a_child_of_its_session(claude: Start) -> None:
    task = {"description": "look", "prompt": "SUBTASK say it", "subagent_type": "general-purpose"}
    console, user = claude(
        [
            {"when": "delegate this", "say": [{"tool": "Agent", "input": task}], "times": 1},
            {"when": "SUBTASK", "say": [{"text": "The child said so."}], "times": 1},
            {"when": "The child said so.", "say": [{"text": "It was delegated."}]},
            {"when": "", "say": [{"text": "I wait for it."}]},
        ]
    )
    done = user.ask("delegate this", "--allowedTools", "Agent")
    assert done.text == "It was delegated.", done
    detail = detail_of(console, user)
    agents = {agent["agent"]: agent for agent in detail["agents"]}
    children = [agent for agent in detail["agents"] if agent["is_subagent"]]
    assert len(children) == 1, agents
    assert children[0]["requests"] >= 1
    # It may go on at once, and again when the child has reported.
    assert agents["main"]["requests"] == detail["turns"] >= 2
    assert detail["losses"] == []


def test_a_service_that_restarts_between_turns_costs_nothing(claude: Start) -> None:
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}])
    assert user.ask("before the restart").text == "Yes."
    session = until(lambda: ended(console, user, requests=1))
    until(lambda: kept_requests(console, user) == session["requests"], 3)
    assert console.service is not None
    worker = console.status()["service"]["pid"]
    os.kill(worker, signal.SIGKILL)
    done = user.ask("after the restart")
    assert done.text == "Yes.", done
    both = until(lambda: ended(console, user, requests=2))
    assert both["turns"] == 2
    assert console.status()["service"]["pid"] != worker


def kept_requests(console: FaultConsole, user: ClaudeCode) -> int:
    """Requests of the user's session in the file that a service begins with."""
    kept = console.paths.state / "sessions.json"
    sessions = json.loads(kept.read_text())["sessions"] if kept.exists() else []
    mine = [each for each in sessions if each["session"] == user.session]
    return sum(agent["sums"]["requests"] for each in mine for agent in each["agents"])


def test_in_the_smallest_window_that_is_advised_no_turn_compacts_by_itself(claude: Start) -> None:
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}], window=32_768)
    assert user.variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "2768"
    for turn in range(4):
        assert user.ask(f"question {turn}").text == "Yes."
    until(lambda: ended(console, user, requests=4))
    window = detail_of(console, user)["window"]
    assert window["compactions"] == 0, window
    assert window["compacts_at_tokens"] == {"value": 17_000, "estimated": True}


def test_a_prompt_that_does_not_fit_is_compacted(claude: Start) -> None:
    words = "the gauge folds what the ledger drops " * 1500
    summary = {"text": "<summary>It was long.</summary>"}
    console, user = claude(
        [
            {"when": "CRITICAL: Respond with TEXT ONLY", "say": [summary]},
            {"when": "", "say": [{"text": "Read."}]},
        ],
        window=48_000,
    )
    del user.variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"]  # it believes in a million
    for part in range(4):
        done = user.ask(f"part {part}: {words}")
    assert done.text == "Read.", done
    window = detail_of(console, user)["window"]
    assert window["overflows"] >= 1, window
    assert window["compactions"] >= 1, window


def test_a_prompt_that_is_refused_within_its_stream_is_compacted(claude: Start) -> None:
    """The engine says that it does not fit when the client has its status 200 already."""
    words = "the gauge folds what the ledger drops " * 1500
    summary = {"text": "<summary>It was long.</summary>"}
    console, user = claude(
        [
            {"when": "CRITICAL: Respond with TEXT ONLY", "say": [summary]},
            {"when": "", "say": [{"text": "Read."}]},
        ],
        window=48_000,
        fault="slow_refusal=16",
    )
    assert user.variables["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] == "1"
    user.variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = "200000"  # the rest is as the lines say
    longest_s = 0.0
    for part in range(4):
        began_s = time.monotonic()
        done = user.ask(f"part {part}: {words}", timeout_s=150)
        longest_s = max(longest_s, time.monotonic() - began_s)
        assert done.text == "Read.", done
    assert longest_s > 16
    window = detail_of(console, user)["window"]
    assert window["overflows"] >= 1, window
    assert window["compactions"] == 1, window


def test_43_a_turn_asked_while_the_engine_is_away_is_answered_and_no_error_is_seen(
    claude: Start,
) -> None:
    """Row 43 of the bug replays: a request during a model switch of 40 s timed out."""
    console, user = claude([{"when": "", "say": [{"text": "Yes."}]}])
    assert user.ask("before the restart").text == "Yes."
    until(lambda: ended(console, user, requests=1))
    # At the engine's speed these are 20 s.
    slow = console.paths.profiles / "sim.toml"
    slow.write_text(slow.read_text().replace('"--start-s", "0.3"', '"--start-s", "400"'))
    with ThreadPoolExecutor(2) as acting:
        switched = acting.submit(console.run, "engine", "switch", "sim", "--yes")
        until(lambda: console.status()["requests"]["gate"] is not None)
        asked = acting.submit(user.ask, "in the middle of it")
        held = until(lambda: held_session(console, user), 20, "it was not held")
        assert held["phase_s"] < 20
        done = asked.result(60)
        assert switched.result(60).returncode == 0
    assert (done.code, done.text) == (0, "Yes."), done
    assert not done.output.get("is_error")
    both = until(lambda: ended(console, user, requests=2))
    assert (both["turns"], both["requests"]) == (2, 2)
    failed = detail_of(console, user)["failed"]
    assert failed == 0


def held_session(console: FaultConsole, user: ClaudeCode) -> dict[str, Any] | None:
    """The user's session while its request waits at the gateway."""
    session = session_of(console, user)
    return session if session is not None and session["phase"] == "held" else None
