"""A Claude Code session through the whole service: seen live, found again after a restart."""

from __future__ import annotations

import asyncio
import stat
from typing import Any

import httpx

from a40console.model.session import SessionDetail
from a40console.service.client import ServiceClient
from a40console.sim.day import Agent, Conversation, Turn
from tests.live.console import Console, console
from tests.live.test_sim import QUICK, SESSION, profile

EDIT = Turn(adds=300, answer_tokens=60, regime="code_edit", tool="Edit", then_s=1.0)


def ask(made: Console, conversation: Conversation, turn: Turn, number: int) -> dict[str, Any]:
    body = conversation.body(turn, number) | {"stream": False}
    answer = httpx.post(
        f"{made.gateway}/v1/messages?beta=true",
        json=body,
        headers=conversation.headers(),
        timeout=60,
        trust_env=False,
    )
    message: dict[str, Any] = answer.raise_for_status().json()
    (block,) = message["content"]
    text = block["input"]["command"] if block["type"] == "tool_use" else block["text"]
    conversation.answered(turn, text, block.get("id"))
    return message


def read(made: Console, session: str) -> SessionDetail:
    async def detail() -> SessionDetail:
        async with ServiceClient(made.paths.control_socket) as client:
            return await client.session(session)

    return asyncio.run(detail())


def row(made: Console) -> dict[str, Any]:
    (found,) = (each for each in made.status()["sessions"] if each["session"] == SESSION)
    return dict(found)


def test_a_session_is_seen_and_outlives_the_service() -> None:
    with console() as made:
        made.configure(QUICK.replace("restart_engine = false\n", ""))
        made.profile("sim", profile())
        made.serve("--profile", "sim")
        made.wait_for(lambda: made.status()["engine"]["state"] == "serving", 40)
        agent = Agent(session=SESSION, system_words=900)
        conversation = Conversation(agent, made.status()["engine"]["served_name"])
        for number in range(3):
            ask(made, conversation, EDIT, number)
        explore = Agent(session=SESSION, name="Explore", system_words=300)
        sub = Conversation(explore, made.status()["engine"]["served_name"])
        ask(made, sub, Turn(adds=100, answer_tokens=20), 0)

        made.wait_for(lambda: row(made)["phase"] == "client", 10)
        shown = row(made)
        before = read(made, SESSION[:8])

        assert (shown["client"], shown["phase"], shown["tool"]) == ("claude-code", "client", "Edit")
        assert (shown["turns"], shown["requests"], shown["window_tokens"]) == (3, 4, 65536)
        assert shown["generated_tokens"] == 200
        assert shown["hit_ratio"] > 0.5
        assert shown["cost_usd"] > 0
        assert [each.agent.split()[0] for each in before.agents] == ["main", "Explore"]
        assert [each.turn for each in before.timeline] == [1, 2, 3, 3]
        assert made.status()["cost"]["usd_per_million"]["session"] > 0

        _restart(made)
        again = row(made)
        message = ask(made, conversation, Turn(adds=50, answer_tokens=10), 3)
        made.wait_for(  # its book closes a moment after its answer
            lambda: isinstance(read(made, SESSION).timeline[-1].reread_tokens, int), 10
        )
        after = read(made, SESSION)

        file = made.paths.state / "sessions.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert (again["turns"], again["requests"]) == (3, 4)
        assert (after.turns, after.requests) == (4, 5)
        assert after.timeline[:2] == before.timeline[:2]
        last = after.timeline[-1]
        assert last.reused_tokens == message["usage"]["cache_read_input_tokens"]
        assert isinstance(last.reread_tokens, int)
        assert last.reread_tokens < 32
        (finished,) = after.timeline[2].tools
        assert finished.duration_s == 1.0
        assert "ledger" not in file.read_text(encoding="utf-8")


def test_a_session_keeps_the_window_of_the_engine_that_served_it() -> None:
    with console() as made:
        made.configure(QUICK)
        made.profile("sim", profile())
        made.profile("small", profile().replace("65536", "8192"))
        made.serve("--profile", "sim")
        made.wait_for(lambda: made.status()["engine"]["state"] == "serving", 40)
        agent = Agent(session=SESSION, system_words=6000)
        conversation = Conversation(agent, made.status()["engine"]["served_name"])
        ask(made, conversation, EDIT, 0)
        made.wait_for(lambda: row(made)["phase"] == "client", 10)

        made.succeed("engine", "switch", "small", "--yes")
        made.wait_for(lambda: made.status()["engine"]["max_model_len"] == 8192, 40)
        status, shown = made.status(), row(made)

        assert shown["window_tokens"] == 65536
        assert shown["context_tokens"] > 0.9 * 8192
        assert "client-window-wrong" not in [each["code"] for each in status["findings"]]


def _restart(made: Console) -> None:
    """The service stops and another one begins; the engine runs on."""
    made.succeed("stop")
    assert made.service is not None
    made.service.wait(20)
    made.serve()
    made.wait_for(lambda: made.status()["engine"]["state"] == "serving", 40)
