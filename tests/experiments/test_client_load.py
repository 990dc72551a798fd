"""Loads: the schedule's latencies, no hidden queue, a client that knows when it is the limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest

from a40console.experiments.arm_totals import doubts_of_arm
from a40console.experiments.connection import Connection, Exchange
from a40console.experiments.load_health import LoadHealth
from a40console.experiments.saturation import spoiled
from a40console.model.figures import Figure, number
from a40console.model.run_record import ArmEnd
from tests.experiments.stream_server import (
    STREAM_HEAD,
    Answering,
    Asked,
    chunk,
    client_of,
    event_bytes,
    frame,
    request,
    serving,
    usage,
)


def taking(seconds: float, *, at_once: int) -> Answering:
    """Every request takes so long, and so many are served at once."""
    room = asyncio.Semaphore(at_once)

    async def answer(asked: Asked) -> None:
        async with room:
            asked.begin()
            await asyncio.sleep(seconds)
            asked.write(chunk("a", "stop"), usage(10, 1, 0), "[DONE]")
            asked.end()

    return answer


async def test_waiting_for_a_slow_server_counts_from_the_schedule() -> None:
    """0.5 s a request, one at a time, 10 due a second: the tenth waits for nine (vllm#54101)."""
    async with serving(taking(0.5, at_once=1)) as server, client_of(server) as run:
        due = [request(index=index, due_s=0.1 * index) for index in range(10)]
        replies = await asyncio.gather(*map(run.client.send, due))
    for index, reply in enumerate(replies):
        total_s = number(reply.sample.total_s)
        assert total_s is not None
        assert total_s >= 0.5 * (index + 1) - 0.1 * index - 0.01
        assert reply.sample.sent_s >= reply.sample.due_s - 0.002


async def test_waiting_in_the_client_counts_too() -> None:
    """One stream that sends what was due long ago is not as fast as its server."""
    async with serving(taking(0.2, at_once=1)) as server, client_of(server) as run:
        for index in range(3):
            await run.client.send(request(index=index, due_s=0.0))
    totals = [number(sample.total_s) or 0.0 for sample in run.samples]
    assert totals[2] >= 0.6 - 0.01
    assert run.samples[2].sent_s - run.samples[2].due_s >= 0.4 - 0.01


async def test_nothing_is_queued_in_the_client() -> None:
    """A limit of connections that nobody set holds the 129th back (gpustack#2324)."""
    streams = 160
    here = asyncio.Barrier(streams)

    async def answer(asked: Asked) -> None:
        async with asyncio.timeout(120):
            await here.wait()  # nobody is answered before all are there
        asked.begin()
        asked.write(chunk("a", "stop"), usage(10, 1, 0), "[DONE]")
        asked.end()

    async with serving(answer) as server, client_of(server) as run:
        await run.client.closed([[request(index=index)] for index in range(streams)])
    assert [sample.error for sample in run.samples] == [""] * streams
    assert server.connections == streams


async def test_a_connection_is_used_again_while_it_is_fresh() -> None:
    async with serving(taking(0.0, at_once=8)) as server, client_of(server) as run:
        await run.client.closed([[request() for _ in range(6)] for _ in range(3)])
    assert len(run.samples) == 18
    assert server.connections == 3


async def test_replies_of_a_closed_loop_come_stream_after_stream() -> None:
    async def answer(asked: Asked) -> None:
        asked.begin()
        asked.write(chunk(asked.body["messages"][0]["content"], "stop"), usage(1, 1))
        asked.end()

    async with serving(answer) as server, client_of(server) as run:
        streams = [
            [
                request(index=stream * 2 + turn, headers={"X-Stream": str(stream)})
                for turn in range(2)
            ]
            for stream in range(4)
        ]
        replies = await run.client.closed(streams)
    assert [reply.sample.index for reply in replies] == list(range(8))
    assert {asked.headers["x-stream"] for asked in server.asked} == {"0", "1", "2", "3"}


class SlowReader:
    """Takes long over every piece."""

    def __init__(self, took_s: float) -> None:
        self.took_s = took_s
        self.stamps: list[float] = []

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        pass

    def piece(self, at_s: float, data: bytes) -> None:
        time.sleep(self.took_s)
        self.stamps.append(at_s)


async def test_reading_one_stream_does_not_make_another_look_late() -> None:
    """Stamps are taken as sockets are read, and what came is understood later (tokenomics#16)."""
    piece = STREAM_HEAD + frame(event_bytes(chunk("a")))
    slow, prompt = SlowReader(0.3), SlowReader(0.0)

    def accepted() -> asyncio.Protocol:
        return asyncio.Protocol()

    loop = asyncio.get_running_loop()
    listening = await loop.create_server(accepted, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    connections = []
    for reader in (slow, prompt):
        _, connection = await loop.create_connection(
            lambda: Connection(time.monotonic), "127.0.0.1", port
        )
        connection.ask(b"", b"", Exchange(reader))
        connections.append(connection)
    for connection in connections:
        connection.data_received(piece)  # both were readable in one look of the loop
    await asyncio.sleep(0.05)
    assert prompt.stamps[0] - slow.stamps[0] < 0.2
    for connection in connections:
        connection.close()
    listening.close()
    await asyncio.sleep(0)


async def measured(disturb: Callable[[], Awaitable[None]]) -> dict[str, Figure]:
    async with LoadHealth() as health:
        await disturb()
    return health.figures()


async def test_an_idle_loop_is_prompt_and_a_blocked_one_is_not() -> None:
    async def idle() -> None:
        await asyncio.sleep(1.3)

    async def blocked() -> None:
        for _ in range(3):
            time.sleep(0.5)  # noqa: ASYNC251
            await asyncio.sleep(0)

    async def quietest() -> dict[str, Figure]:
        """Of a few looks, the first that others on this machine did not disturb."""
        for _ in range(4):
            figures = await measured(idle)
            if (number(figures["loop_lag_mean_s"]) or 9.0) < 0.08:
                break
        return figures

    quiet, busy = await quietest(), await measured(blocked)
    # A stall of 0.5 s holds up what came within it by 0.25 s on average.
    assert (number(busy["loop_lag_mean_s"]) or 0.0) > 0.08
    assert (number(busy["loop_lag_p99_s"]) or 0.0) > 0.15
    assert (number(quiet["loop_lag_mean_s"]) or 9.0) < 0.08
    assert (number(quiet["cpu_cores"]) or 9.0) < 0.5


async def test_a_client_without_time_spoils_its_repeat() -> None:
    """Its stamps are late: what it says of the server is its own doing."""

    async def hog() -> None:
        end_s = time.monotonic() + 2.0
        while time.monotonic() < end_s:
            busy_s = time.monotonic() + 0.05
            while time.monotonic() < busy_s:
                pass
            await asyncio.sleep(0)

    async with serving(taking(0.01, at_once=4)) as server, client_of(server) as run:
        health = LoadHealth()
        async with health:
            spinning = asyncio.create_task(hog())
            await run.client.closed([[request() for _ in range(4)] for _ in range(2)])
            await spinning
    end = ArmEnd(arm="one", repeat=0, wall_s=2.0, usd=0.0, client=health.figures())
    assert "bytes waited" in spoiled(end, run.samples)


async def test_a_step_of_the_wall_clock_is_seen_and_its_running_is_not() -> None:
    shift_s = 0.0

    def wall() -> float:
        return time.time() + shift_s

    async with LoadHealth(wall=wall) as health:
        await asyncio.sleep(0.5)
        assert health.figures()["clock_step_s"] == 0.0
        shift_s = -3600.0
        await asyncio.sleep(0.5)
        shift_s = 0.0
        await asyncio.sleep(0.5)
    step_s = health.figures()["clock_step_s"]
    assert number(step_s) == pytest.approx(7200, abs=0.2)
    (doubt,) = doubts_of_arm(
        "one", wall_s=1, client={"clock_step_s": step_s}, server={}, machine={}
    )
    assert (doubt.code, doubt.invalidates) == ("clock-step", True)
