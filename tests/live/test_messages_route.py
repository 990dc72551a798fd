"""The route of the Messages API in a real service: found out, overruled, shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.console import Console, console

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 32768
arguments = ["--start-s", "0.2", "--speed", "20"{faults}]
{more}
"""
CONFIG = "[gateway]\nport = 0\n{route}[service]\ninterval_s = 0.3\n"
BODY: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "Say hello"}],
    "vllm_xargs": {"answer_tokens": 12},
}


@pytest.fixture(scope="module")
def served() -> Iterator[Console]:
    with console() as made:
        made.configure(CONFIG.format(route='messages_route = "translated"\n'))
        made.serve("--no-engine")
        yield made


def route(made: Console) -> str:
    """What the service says of the route, once it knows."""

    def source() -> dict[str, Any]:
        sources = made.status()["sources"]
        (found,) = (one for one in sources if one["name"] == "messages API")
        return dict(found)

    made.wait_for(lambda: source()["state"] == "ok", 10)
    return str(source()["reason"])


def start(made: Console, more: str = "", *, faults: str = "") -> None:
    made.run("engine", "stop", "--yes")
    made.profile("sim", PROFILE.format(more=more, faults=faults))
    made.succeed("engine", "start", "sim")


def test_the_setting_and_the_profile_overrule_what_is_found(served: Console) -> None:
    start(served)
    told = route(served)
    assert told.startswith("translated to chat, system turns kept, ")
    assert "The setting messages_route asks for the translated route." in told
    answer = httpx.post(f"{served.gateway}/v1/messages", json=BODY, timeout=30).json()
    assert (answer["type"], answer["model"]) == ("message", "claude-sonnet-5")
    assert answer["usage"]["output_tokens"] == 12
    events = json.loads(served.succeed("events", "--json"))["events"]
    (noted,) = (event for event in events if event["kind"] == "engine.messages")
    assert noted["text"] == f"the Messages API is served: {told.partition(':')[0]}"

    start(served, 'messages_route = "native"')
    assert "asks for the native route" in route(served)
    shown = served.succeed("profiles", "show", "sim")
    assert "messages_route" in shown

    start(served, 'messages_route = "auto"', faults=', "--fault", "no_messages"')
    told = route(served)
    assert told.startswith("translated to chat, system turns kept, ")
    assert "It has no Messages API that counts (status 404: Not Found)." in told


def test_a_route_that_does_not_exist_is_refused(served: Console) -> None:
    served.profile("odd", PROFILE.format(more='messages_route = "pigeon"', faults=""))
    done = served.run("profiles", "check")
    assert done.returncode != 0
    assert "messages_route" in done.stdout + done.stderr
    (served.paths.profiles / "odd.toml").unlink()
