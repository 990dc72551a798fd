"""The sampler as the service runs it: real sockets, real time, foreign engines, ends."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from a40console.model.codec import encode
from a40console.model.engine import Endpoint
from a40console.model.figures import Figure, Missing, number
from a40console.telemetry.fetch import SourceError
from a40console.telemetry.polling import Poller
from a40console.telemetry.reading import EngineReading
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.engines import Events, Request, SimulatedEngine
from tests.telemetry.makers import Clock, metrics_answer, routes, text_of


@asynccontextmanager
async def on_a_socket(answer: Callable[[str], tuple[int, str]], path: Path) -> AsyncIterator[None]:
    """A real HTTP server on a Unix socket, keep-alive included."""
    open_writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                status, text = answer(head.split(" ")[1])
                body = text.encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_unix_server(serve, path=str(path))
    try:
        yield
    finally:
        listening.close()
        for writer in open_writers:
            writer.close()


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


@asynccontextmanager
async def running(sampler: EngineSampler) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(sampler.run())
    try:
        yield task
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_an_engine_on_a_unix_socket_that_comes_goes_and_comes_back() -> None:
    tokens = {"count": 0}

    def answer(path: str) -> tuple[int, str]:
        tokens["count"] += 10
        match path:
            case "/metrics":
                return 200, f"vllm:generation_tokens_total {tokens['count']}\n"
            case "/health":
                return 200, ""
            case "/version":
                return 200, '{"version": "0.33.0"}'
            case "/v1/models":
                return 200, '{"data": [{"id": "tiny", "max_model_len": 4096}]}'
        return 404, ""

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path, events = Path(folder) / "e.sock", Events()
        sampler = EngineSampler(
            kind="vllm",
            endpoint=Endpoint("http://engine", socket_path=str(path)),
            period_s=0.05,
            on_event=events,
        )
        async with running(sampler) as task:
            await asyncio.sleep(0.1)
            why = sampler.view((), ()).throughput.generation_tokens_per_s
            assert isinstance(why, Missing)
            assert "cannot connect" in why.reason
            async with on_a_socket(answer, path):
                await until(lambda: (number(_rate(sampler)) or 0) > 0)
                await until(lambda: sampler.view((), ()).version == "0.33.0")
                view = sampler.view((), ())
                assert (view.served_names, view.max_model_len) == (("tiny",), 4096)
                assert encode(view.throughput)["source"] == "vllm.metrics"
            path.unlink(missing_ok=True)
            assert events.kinds == []
            assert not task.done()
            async with on_a_socket(answer, path):
                await until(lambda: sampler.view((), ()).sources[0].state == "ok")


async def test_an_engine_that_is_followed_no_more_leaves_no_readings() -> None:
    """A sampler is a reference cycle: what hangs on it would wait for a full collection."""
    before = _readings()
    sampler = EngineSampler(
        kind="vllm",
        endpoint=Endpoint("http://engine"),
        period_s=0.02,
        on_event=Events(),
        transport=routes({"/metrics": metrics_answer(text_of("vllm-0.33-rust-during"))}),
    )
    async with running(sampler):
        await until(lambda: _readings() > before + 5)
    assert _readings() <= before + 2, "the newest, for the standstill clock and the source"


def _readings() -> int:
    return sum(isinstance(thing, EngineReading) for thing in gc.get_objects())


def _rate(sampler: EngineSampler) -> Figure:
    return sampler.view((), ()).throughput.generation_tokens_per_s


async def test_a_foreign_engine_is_found_out_from_its_answers() -> None:
    llama = {
        "/v1/models": httpx.Response(
            200, headers={"server": "llama.cpp"}, text='{"data": [{"id": "m"}]}'
        ),
        "/props": httpx.Response(200, text='{"build_info": "b9", "is_sleeping": false}'),
        "/metrics": metrics_answer(text_of("llamacpp-after")),
        "/slots": httpx.Response(200, text="[]"),
        "/health": httpx.Response(200),
    }
    vllm = {
        "/v1/models": httpx.Response(200, headers={"server": "uvicorn"}, text='{"data": []}'),
        "/metrics": metrics_answer(text_of("vllm-0.33-after")),
        "/version": httpx.Response(200, text='{"version": "0.33.0"}'),
        "/health": httpx.Response(200),
    }
    for table, kind, version in ((llama, "llamacpp", "b9"), (vllm, "vllm", "0.33.0")):
        sampler = EngineSampler(
            kind="foreign",
            endpoint=Endpoint("http://engine"),
            period_s=0.05,
            on_event=Events(),
            transport=routes(table),
        )
        assert sampler.view((), ()).slots == Missing("not read yet")
        async with running(sampler):
            await until(lambda: sampler.view((), ()).version == version)  # noqa: B023
            assert sampler.view((), ()).kind == kind
            await until(lambda: sampler.view((), ()).sources[0].state == "ok")  # noqa: B023


async def test_a_fault_of_ours_in_one_source_ends_nothing() -> None:
    clock = Clock()
    engine = SimulatedEngine(clock, [Request("r", 0.0, 0.1, 50.0, 1000)], born_s=clock.now_s)
    sampler = EngineSampler(
        kind="vllm",
        endpoint=Endpoint("http://engine"),
        period_s=0.02,
        on_event=Events(),
        transport=engine.transport(),
    )

    def broken(_: httpx.Request) -> httpx.Response:
        raise RuntimeError("a bug")

    engine.overrides["/metrics"] = broken
    async with running(sampler) as task:
        await until(lambda: sampler.view((), ()).sources[0].state == "failed")
        reason = sampler.view((), ()).sources[0].reason
        assert reason == "could not be read: RuntimeError: a bug"
        assert not task.done()
        assert sampler.view((), ()).progress.health_status == 200


def poller_of(clock: Clock, read: Callable[[], Awaitable[None]], events: Events) -> Poller:
    return Poller("engine.source", read, period_s=1.0, clock=clock, on_event=events)


async def test_how_a_source_ages() -> None:
    clock, events, faults = Clock(), Events(), [SourceError("x")][:0]

    async def read() -> None:
        if faults:
            raise faults[0]

    poller = poller_of(clock, read, events)
    assert poller.status().state == "absent"
    assert poller.undecided
    await poller.poll()
    assert (poller.status().state, poller.usable, poller.undecided) == ("ok", True, False)
    clock.now_s += 5  # a read that hangs: nothing failed, but nothing is fresh
    assert (poller.status().state, poller.usable) == ("stale", False)
    await poller.poll()
    faults.append(SourceError("no answer within 5 s", passing=True))
    clock.now_s += 1
    await poller.poll()
    assert (poller.status().state, poller.usable) == ("stale", True)
    clock.now_s += 4
    await poller.poll()
    assert (poller.status().state, poller.usable) == ("failed", False)
    assert poller.status().reason == "no answer within 5 s"
    assert events.kinds == ["source.failed"]
    faults[0] = SourceError("slots are off", absent=True)
    await poller.poll()
    assert poller.status().state == "absent"


async def test_reads_are_timed_shortly_before_views_and_back_off_after_failures() -> None:
    clock, faults = Clock(), [SourceError("x")][:0]

    async def read() -> None:
        if faults:
            raise faults[0]

    poller = poller_of(clock, read, Events())
    await poller.poll()
    assert poller._due_s(clock.now_s) == pytest.approx(1001)
    for read_s in (1000.0, 1000.3, 1000.6, 1000.84):
        poller.viewed_at_s = 1000.0
        due_s = poller._due_s(read_s)
        assert (due_s - 999.85) % 1.0 == pytest.approx(0, abs=1e-6)
        assert 0.5 <= due_s - read_s <= 1.5
    faults.append(SourceError("no"))
    waits = []
    for _ in range(6):
        await poller.poll()
        waits.append(poller._due_s(0.0))
    assert waits == [2, 4, 5, 5, 5, 5]


def test_secrets_are_in_no_text_of_ours() -> None:
    endpoint = Endpoint("http://engine", api_key="key-1", plugin_token="token-1")
    sampler = EngineSampler(kind="vllm", endpoint=endpoint, on_event=Events())
    shown = repr(sampler.view((), ()))
    assert "key-1" not in shown
    assert "token-1" not in shown
