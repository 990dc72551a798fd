"""The demo's clients: two Claude Code sessions against a console's gateway, until they are ended.

Run as `python -m a40console.sim.crowd CONTROL_SOCKET ENDING…`. It reaches the service as any client
does, over HTTP. When it is told to end, or whoever started it is gone, it asks that service to stop
with its engine, and then runs the program ENDING, which sees to it that nothing is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from a40console.sim.day import Agent, Conversation, Turn, day

LOOK_EVERY_S = 0.5
RETRY_S = 1.0
BETWEEN_DAYS_S = 3.0
SERVES_WITHIN_S = 60.0
STOPS_WITHIN_S = 25.0
ANSWERS_WITHIN_S = 5.0

Control = Callable[..., Coroutine[Any, Any, Any]]


class Crowd:
    """The clients of one service."""

    def __init__(self, control: httpx.AsyncClient) -> None:
        self._control = control
        self._gateway = httpx.AsyncClient(
            timeout=httpx.Timeout(300.0, connect=5.0),
            trust_env=False,
            limits=httpx.Limits(max_connections=32),
        )

    async def close(self) -> None:
        """Let the connections go."""
        await self._gateway.aclose()

    async def run(self) -> None:
        """One day after the other: without speculation, then with it, alone and in company."""
        for number in count(0, 3):
            await self._serving()
            await self._play(day(number))
            await self._speculation("on")
            await self._play(day(number + 1)[:1])
            await self._play(day(number + 2))
            await self._speculation("off")
            await asyncio.sleep(BETWEEN_DAYS_S)

    async def _play(self, agents: tuple[Agent, ...]) -> None:
        """Let every agent of a day do its work."""
        variables = await self._variables()
        async with asyncio.TaskGroup() as tasks:
            for agent in agents:
                tasks.create_task(self._work(agent, variables))

    async def _work(self, agent: Agent, variables: dict[str, str]) -> None:
        await asyncio.sleep(agent.begins_s)
        conversation = Conversation(agent, variables["ANTHROPIC_MODEL"])
        for number, turn in enumerate(agent.turns):
            body, headers = conversation.body(turn, number), conversation.headers()
            said = await self._insist(body, headers, variables)
            conversation.answered(turn, _command(turn, said.text), said.call)
            await asyncio.sleep(turn.then_s)

    async def _insist(
        self, body: dict[str, Any], headers: dict[str, str], variables: dict[str, str]
    ) -> _Said:
        """Ask until it is answered whole, as the real client does."""
        while True:
            if (said := await self._ask(body, headers, variables)) is not None:
                return said
            await asyncio.sleep(RETRY_S)

    async def _ask(
        self, body: dict[str, Any], headers: dict[str, str], variables: dict[str, str]
    ) -> _Said | None:
        """One request; None where it must be sent again, as the real client would."""
        token = variables.get("ANTHROPIC_AUTH_TOKEN") or "none"
        headers = {**headers, "authorization": f"Bearer {token}"}
        url = f"{variables['ANTHROPIC_BASE_URL']}/v1/messages?beta=true"
        said = _Said()
        try:
            async with self._gateway.stream("POST", url, json=body, headers=headers) as response:
                if response.status_code != 200:
                    return None
                async for line in response.aiter_lines():
                    said.take(line)
        except httpx.HTTPError:
            return None
        return said if said.whole else None

    async def _speculation(self, mode: str) -> None:
        with suppress(httpx.HTTPError):
            await self._post("engine.speculation", mode=mode)
        await asyncio.sleep(RETRY_S)
        await self._serving()

    async def _serving(self) -> None:
        """Wait until the engine serves."""
        give_up_s = time.monotonic() + SERVES_WITHIN_S
        while time.monotonic() < give_up_s:
            with suppress(httpx.HTTPError, ValueError, KeyError):
                snapshot = (await self._control.get("/v1/snapshot")).json()
                if snapshot["engine"]["state"] == "serving":
                    return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _variables(self) -> dict[str, str]:
        answer = (await self._control.get("/v1/environment")).json()
        variables: dict[str, str] = answer["variables"]
        return variables

    async def _post(self, command: str, **arguments: str) -> None:
        await self._control.post(f"/v1/commands/{command}", json=arguments)


@dataclass(slots=True)
class _Said:
    """An answer as it comes."""

    text: str = ""
    call: str | None = None
    """Id of the tool call in it."""

    whole: bool = False

    def take(self, line: str) -> None:
        """One line of the stream."""
        if not line.startswith("data: "):
            return
        try:
            event = json.loads(line.removeprefix("data: "))
        except ValueError:
            return
        delta, block = event.get("delta", {}), event.get("content_block", {})
        self.text += delta.get("text") or delta.get("partial_json") or ""
        self.call = block.get("id") or self.call
        self.whole = self.whole or event["type"] == "message_stop"


def _command(turn: Turn, text: str) -> str:
    """What the tool is given; an answer in words as it is."""
    if turn.tool is None:
        return text
    try:
        return str(json.loads(text)["command"])
    except (ValueError, KeyError, TypeError):
        return text


async def main(socket_path: Path, ending: Sequence[str]) -> None:
    """Play until told to end, then clear up."""
    ended, parent = asyncio.Event(), os.getppid()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    transport = httpx.AsyncHTTPTransport(uds=str(socket_path))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://service", timeout=30.0
    ) as control:
        crowd = Crowd(control)
        playing = asyncio.create_task(_for_ever(crowd))
        while not ended.is_set() and os.getppid() == parent:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await ended.wait()
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        await crowd.close()
        with suppress(httpx.HTTPError):
            await control.post(
                "/v1/commands/service.stop", json={"engine": "yes"}, timeout=ANSWERS_WITHIN_S
            )
    await _stopped(socket_path)
    if ending:
        await (await asyncio.create_subprocess_exec(*ending)).wait()


async def _for_ever(crowd: Crowd) -> None:
    """A service that restarts, or is stopped by hand, costs the day, not the crowd."""
    while True:
        try:
            await crowd.run()
        except* (httpx.HTTPError, ValueError, KeyError):
            await asyncio.sleep(RETRY_S)


async def _stopped(socket_path: Path) -> None:
    """Wait until nobody listens any more."""
    give_up_s = time.monotonic() + STOPS_WITHIN_S
    while time.monotonic() < give_up_s:
        try:
            _, writer = await asyncio.open_unix_connection(str(socket_path))
        except OSError:
            return
        writer.close()
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
