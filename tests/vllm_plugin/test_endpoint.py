"""The route: who is answered, what with, and that a start of vLLM never fails over it."""

from __future__ import annotations

import asyncio
import logging
import os
from argparse import Namespace
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from a40console.vllm_plugin.endpoint import (
    TOKEN_FILE_VARIABLE,
    ConsoleEndpoint,
    api_servers,
    read_token,
)
from a40console.vllm_plugin.watch import Watch
from tests.vllm_plugin.fake_vllm import OutputProcessor, output

TOKEN = "a-token-of-its-own"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Engine:
    def __init__(self, paused: bool | Exception = False, answers_after_s: float = 0.0) -> None:
        self.output_processor: Any = OutputProcessor()
        self.paused = paused
        self.answers_after_s = answers_after_s

    async def is_paused(self) -> bool:
        await asyncio.sleep(self.answers_after_s)
        if isinstance(self.paused, Exception):
            raise self.paused
        return self.paused


@pytest.fixture(autouse=True)
def _access_log() -> Any:
    access = logging.getLogger("uvicorn.access")
    before = list(access.filters)
    yield
    access.filters[:] = before


@pytest.fixture
def token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN + "\n")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    return path


async def served(engine: Any, **args: Any) -> tuple[Starlette, httpx.AsyncClient]:
    app = Starlette()
    endpoint = ConsoleEndpoint(Watch())
    endpoint.attach_router(app)
    await endpoint.init_state(engine, app.state, Namespace(api_server_count=None, **args))
    transport = httpx.ASGITransport(app=app)
    return app, httpx.AsyncClient(transport=transport, base_url="http://engine")


@pytest.fixture
async def client(token_file: Path) -> AsyncIterator[httpx.AsyncClient]:
    _, opened = await served(Engine())
    async with opened:
        yield opened


async def state(client: httpx.AsyncClient, since: int = 0) -> Any:
    answer = await client.get("/a40console/v1/state", params={"since": since}, headers=BEARER)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer ü"],
)
async def test_only_the_bearer_is_answered(client: httpx.AsyncClient, authorization: str) -> None:
    answer = await client.get(
        "/a40console/v1/state", headers=[(b"Authorization", authorization.encode())]
    )
    assert answer.status_code == 401
    assert TOKEN not in answer.text


async def test_the_bearer_gets_one_answer_of_one_moment(client: httpx.AsyncClient) -> None:
    answer = await state(client)
    assert answer["version"] == 1
    assert len(answer["boot"]) == 16
    assert answer["running"] == answer["finished"] == []
    assert answer["disabled"] is None
    assert answer["paused"] is False
    assert (await state(client))["boot"] == answer["boot"]


@pytest.mark.parametrize("since", ["", "-1", "x", "1.5"])
async def test_a_since_that_is_no_number_is_refused(client: httpx.AsyncClient, since: str) -> None:
    answer = await client.get("/a40console/v1/state", params={"since": since}, headers=BEARER)
    assert answer.status_code == 400


async def test_finished_rows_come_once(token_file: Path) -> None:
    engine = Engine()
    _, client = await served(engine)
    engine.output_processor.add("a-1")
    engine.output_processor.process_outputs([output("a-1", 2, prompt=(9, 0), finish_reason="stop")])
    async with client:
        first = await state(client)
        assert [row["id"] for row in first["finished"]] == ["a-1"]
        assert (await state(client, first["sequence"]))["finished"] == []


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (Engine(paused=True), True),
        (Engine(paused=False), False),
        (Engine(answers_after_s=30), None),
        (Engine(paused=RuntimeError("engine dead")), None),
        (SimpleNamespace(output_processor=OutputProcessor()), None),
    ],
)
async def test_paused_is_told_or_unknown(token_file: Path, engine: Any, told: bool | None) -> None:
    _, client = await served(engine)
    async with client:
        assert (await state(client))["paused"] is told
        assert (await state(client))["paused"] is told


async def test_without_a_token_file_there_is_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_FILE_VARIABLE, raising=False)
    engine = Engine()
    app, client = await served(engine)
    await client.aclose()
    assert app.routes == []
    assert "process_outputs" not in vars(engine.output_processor)


@pytest.mark.parametrize("fault", ["readable by others", "empty", "gone"])
async def test_a_bad_token_file_costs_the_route_not_the_start(token_file: Path, fault: str) -> None:
    match fault:
        case "readable by others":
            token_file.chmod(0o640)
        case "empty":
            token_file.write_text("\n")
        case "gone":
            token_file.unlink()
    app, client = await served(Engine())
    await client.aclose()
    assert app.routes == []


def test_the_reason_for_no_token_names_the_file(token_file: Path) -> None:
    assert read_token(str(token_file)) == TOKEN.encode()
    assert read_token(os.environ.get("NO_SUCH_VARIABLE_HERE")) is None
    token_file.chmod(0o604)
    with pytest.raises(ValueError, match=f"{token_file} may be read by others: chmod 600"):
        read_token(str(token_file))


async def test_an_engine_that_cannot_be_watched_says_why(token_file: Path) -> None:
    _, client = await served(object())
    async with client:
        answer = await state(client)
    assert "output_processor" in answer["disabled"]
    assert answer["running"] == []


async def test_rows_that_cannot_be_read_are_an_error_and_then_a_reason(token_file: Path) -> None:
    engine = Engine()
    _, client = await served(engine)
    engine.output_processor.request_states["x"] = object()
    async with client:
        for _ in range(3):
            answer = await client.get("/a40console/v1/state", headers=BEARER)
            assert answer.status_code == 500
        assert "3 errors" in (await state(client))["disabled"]


@pytest.mark.parametrize(
    ("count", "clients", "servers"), [(None, 1, 1), (1, 1, 1), (3, 1, 3), (None, 2, 2)]
)
def test_api_servers_are_counted_from_both_sides(
    count: int | None, clients: int, servers: int
) -> None:
    engine = SimpleNamespace(_client_count=clients)
    assert api_servers(engine, Namespace(api_server_count=count)) == servers
    assert api_servers(object(), Namespace()) == 1


async def test_only_answered_polls_are_kept_out_of_the_access_log(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = logging.getLogger("uvicorn.access")
    access.setLevel(logging.INFO)
    monkeypatch.setattr(access, "propagate", True)  # a server in this process turns it off
    line = '%s - "%s %s HTTP/%s" %d'
    for path, status in (
        ("/a40console/v1/state?since=3", 200),
        ("/a40console/v1/state", 401),
        ("/v1/models", 200),
    ):
        access.info(line, "", "GET", path, "1.1", status)
    access.info("started")
    assert [record.getMessage() for record in caplog.records] == [
        ' - "GET /a40console/v1/state HTTP/1.1" 401',
        ' - "GET /v1/models HTTP/1.1" 200',
        "started",
    ]
