"""The control routes over a fake EngineClient: who may, what is told, what a surprise costs."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from a40console.vllm_plugin import controls as plugin_controls
from a40console.vllm_plugin.controls import CONTROLS, START_DEPTH_VARIABLE
from a40console.vllm_plugin.endpoint import TOKEN_FILE_VARIABLE, ConsoleEndpoint
from a40console.vllm_plugin.watch import Watch
from tests.vllm_plugin.fake_vllm import OutputProcessor

TOKEN = "a-token-of-its-own"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Engine:
    """An EngineClient that notes what it is told."""

    def __init__(self, *, workers: int = 1, sleeps: bool = True, extended: bool = True) -> None:
        self.output_processor: Any = OutputProcessor()
        self.told: list[Any] = []
        self.depths = [5] * workers
        self.surprise: Any = None
        extension = "a40console_vllm.depth.DepthWorker" if extended else ""
        self.vllm_config = SimpleNamespace(
            speculative_config=SimpleNamespace(method="ngram"),
            model_config=SimpleNamespace(enable_sleep_mode=sleeps),
            parallel_config=SimpleNamespace(worker_extension_cls=extension),
        )

    async def is_paused(self) -> bool:
        return False

    async def collective_rpc(self, method: str, args: tuple[int, ...] = ()) -> Any:
        self.told.append((method, *args))
        if isinstance(self.surprise, Exception):
            raise self.surprise
        if self.surprise is not None:
            return self.surprise
        before = list(self.depths)
        if method == "a40console_set_depth" and args[0] <= 5:
            self.depths = [args[0]] * len(self.depths)
        told = {"deepest": 5, "method": "ngram", "why_not": None}
        return [
            {"before": then, "depth": depth, **told}
            for then, depth in zip(before, self.depths, strict=True)
        ]

    async def abort(self, request_id: str, internal: bool = False) -> None:
        self.told.append(("abort", request_id, internal))

    async def reset_prefix_cache(self) -> bool:
        self.told.append("reset")
        return not self.output_processor.request_states

    async def sleep(self, level: int) -> None:
        self.told.append(("sleep", level))

    async def wake_up(self) -> None:
        self.told.append("wake")

    async def pause_generation(self, *, mode: str, clear_cache: bool) -> None:
        self.told.append(("pause", mode, clear_cache))

    async def resume_generation(self) -> None:
        self.told.append("resume")


@pytest.fixture(autouse=True)
def _token_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN)
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    monkeypatch.delenv(START_DEPTH_VARIABLE, raising=False)


async def served(engine: Any) -> httpx.AsyncClient:
    app = Starlette()
    endpoint = ConsoleEndpoint(Watch())
    endpoint.attach_router(app)
    await endpoint.init_state(engine, app.state, Namespace(api_server_count=None))
    transport = httpx.ASGITransport(app=app)
    return httpx.AsyncClient(transport=transport, base_url="http://engine", headers=BEARER)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with await served(engine) as opened:
        yield opened


async def act(client: httpx.AsyncClient, name: str, **body: Any) -> tuple[int, Any]:
    answer = await client.post(f"/a40console/v1/{name}", json=body)
    return answer.status_code, answer.json()


async def test_the_depth_is_changed_and_told(engine: Engine, client: httpx.AsyncClient) -> None:
    status, told = await act(client, "speculation", tokens=2)
    assert status == 200
    assert (told["before"], told["after"], told["deepest"]) == (5, 2, 5)
    # An engine is asked between two passes: once has to do.
    assert engine.told[-1] == ("a40console_set_depth", 2)
    assert len(engine.told) == 2
    state = (await client.get("/a40console/v1/state")).json()
    assert state["speculation"]["depth"] == 2
    assert state["controls"] == dict.fromkeys(CONTROLS)


async def test_the_depth_to_begin_with_is_set_before_anyone_is_served(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(START_DEPTH_VARIABLE, "0")
    async with await served(engine) as client:
        assert engine.depths == [0]
        state = (await client.get("/a40console/v1/state")).json()
        assert state["speculation"]["depth"] == 0


async def test_what_was_not_started_is_refused(engine: Engine, client: httpx.AsyncClient) -> None:
    status, told = await act(client, "speculation", tokens=6)
    assert (status, told) == (409, {"error": "6 is deeper than the 5 that it was started with"})
    assert engine.depths == [5]


@pytest.mark.parametrize(
    ("surprise", "words"),
    [
        (RuntimeError("worker gone"), "worker gone"),
        ([], "not understood"),
        ("x", "not understood"),
        ([{"depth": 5}, {"depth": 0}], "do not agree"),
    ],
)
async def test_a_surprise_is_told_and_ends_nothing(
    engine: Engine, client: httpx.AsyncClient, surprise: Any, words: str
) -> None:
    engine.surprise = surprise
    status, told = await act(client, "speculation", tokens=1)
    assert status == 504
    assert words in told["error"]
    assert (await client.get("/a40console/v1/state")).status_code == 200


async def test_every_rank_must_say_the_same() -> None:
    engine = Engine(workers=2)
    async with await served(engine) as client:
        assert (await act(client, "speculation", tokens=0))[0] == 200
        assert engine.depths == [0, 0]
        engine.depths = [0, 5]
        assert (await act(client, "speculation", tokens=0))[0] == 504


async def test_an_engine_that_hangs_is_not_waited_for(
    engine: Engine, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(method: str, args: tuple[int, ...] = ()) -> Any:
        await asyncio.sleep(30)

    monkeypatch.setattr(plugin_controls, "ANSWER_S", 0.05)
    monkeypatch.setattr(engine, "collective_rpc", never)
    status, told = await act(client, "speculation", tokens=0)
    assert status == 504
    assert "did not answer" in told["error"]


async def test_an_engine_that_hangs_is_not_asked_again_until_it_has_answered(
    engine: Engine, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, calls = asyncio.Event(), []
    asked = engine.collective_rpc

    async def hangs(method: str, args: tuple[int, ...] = ()) -> Any:
        calls.append(method)
        await answers.wait()
        return await asked(method, args)

    monkeypatch.setattr(plugin_controls, "ANSWER_S", 0.02)
    monkeypatch.setattr(plugin_controls, "REFRESH_S", 0.0)
    monkeypatch.setattr(engine, "collective_rpc", hangs)
    for _ in range(20):
        await client.get("/a40console/v1/state")
        await asyncio.sleep(0.01)
    assert calls == ["a40console_depth"]
    status, told = await act(client, "speculation", tokens=2)
    assert (status, told["error"]) == (
        504,
        "the engine did not answer in 0 s; what it was asked for it may still do",
    )
    answers.set()
    await asyncio.sleep(0.05)
    assert engine.depths == [2]
    await client.get("/a40console/v1/state")
    await asyncio.sleep(0.05)
    assert (await client.get("/a40console/v1/state")).json()["speculation"]["depth"] == 2
    assert calls.count("a40console_depth") > 1


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (Engine(extended=False), "the engine was started without our worker extension"),
        (
            SimpleNamespace(output_processor=OutputProcessor()),
            "the engine was started without speculation",
        ),
    ],
)
async def test_why_it_cannot_be_changed_is_told(engine: Any, reason: str) -> None:
    async with await served(engine) as client:
        state = (await client.get("/a40console/v1/state")).json()
        assert state["controls"]["speculation"] == reason
        assert await act(client, "speculation", tokens=0) == (409, {"error": reason})


@pytest.mark.parametrize(
    ("request_id", "internal"), [("chatcmpl-a-1f", True), ("chatcmpl-a", False)]
)
async def test_one_request_is_aborted_by_either_name(
    engine: Engine, client: httpx.AsyncClient, request_id: str, internal: bool
) -> None:
    engine.output_processor.add("chatcmpl-a-1f")
    assert await act(client, "abort", request_id=request_id) == (200, {"aborted": True})
    assert engine.told[-1] == ("abort", request_id, internal)


async def test_an_unknown_request_is_not_aborted(engine: Engine, client: httpx.AsyncClient) -> None:
    assert await act(client, "abort", request_id="nobody") == (200, {"aborted": False})
    assert not any(told[0] == "abort" for told in engine.told)


async def test_the_others_reach_the_engine(engine: Engine, client: httpx.AsyncClient) -> None:
    engine.told.clear()
    assert await act(client, "pause") == (200, {"paused": True})
    assert await act(client, "resume") == (200, {"paused": False})
    assert await act(client, "reset-prefix-cache") == (200, {"reset": True})
    assert await act(client, "sleep", level=2) == (200, {"asleep": True})
    assert await act(client, "wake") == (200, {"asleep": False})
    assert engine.told == [("pause", "keep", False), "resume", "reset", ("sleep", 2), "wake"]
    assert (await act(client, "sleep", level=3))[0] == 409


async def test_an_engine_without_sleep_mode_is_not_put_to_sleep() -> None:
    engine = Engine(sleeps=False)
    async with await served(engine) as client:
        status, told = await act(client, "sleep", level=1)
        assert status == 409
        assert "--enable-sleep-mode" in told["error"]
        assert ("sleep", 1) not in engine.told


@pytest.mark.parametrize("name", ["speculation", "sleep"])
@pytest.mark.parametrize("value", [None, "1", 1.5, -1, True, 10_001, [1]])
async def test_a_number_must_be_one(client: httpx.AsyncClient, name: str, value: Any) -> None:
    body = {"tokens" if name == "speculation" else "level": value}
    assert (await act(client, name, **body))[0] == 400


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b"[" * 4000, b" " * 4097])
async def test_a_body_that_is_no_small_object_is_refused(
    client: httpx.AsyncClient, body: bytes
) -> None:
    answer = await client.post("/a40console/v1/pause", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("name", CONTROLS)
async def test_only_the_bearer_changes_anything(engine: Engine, name: str) -> None:
    async with await served(engine) as client:
        engine.told.clear()
        for authorization in ("", "Bearer wrong", TOKEN):
            answer = await client.post(
                f"/a40console/v1/{name}", json={}, headers={"Authorization": authorization}
            )
            assert answer.status_code == 401
        assert engine.told == []


async def test_the_worker_is_not_asked_at_every_look(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    engine.told.clear()
    for _ in range(20):
        await client.get("/a40console/v1/state")
    assert engine.told == []
