"""llama-server as a router: models listed, loaded and unloaded, in the forms that it answers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from a40console.engines.router import NO_ROUTER, LlamaRouter, RoutedModel
from a40console.errors import RefusedError, TimedOutError
from a40console.model.engine import Endpoint


class Router:
    """Answers as build 11434 does, each load and unload settled at the third look."""

    def __init__(self, role: str | None = "router") -> None:
        self.role = role
        self.models = {"broken": "unloaded", "smol-a": "unloaded", "smol-b": "loaded"}
        self.failed: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self._looks = 0
        self._then: dict[str, str] = {}
        self.settles = True

    def client(self) -> LlamaRouter:
        transport = httpx.MockTransport(self.answer)
        return LlamaRouter(Endpoint("http://router"), transport=transport, look_period_s=0.001)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/props":
            return httpx.Response(200, json={"role": self.role} if self.role else {"n_ctx": 1})
        if request.method == "POST":
            return self._turn(request.url.path, json.loads(request.content)["model"])
        self._look()
        return httpx.Response(200, json={"data": [self._row(name) for name in self.models]})

    def _turn(self, path: str, name: str) -> httpx.Response:
        self.asked.append((path, name))
        if path.endswith("/unload"):
            self._then = {name: "unloaded"}
        else:
            self.models[name], self._then = "loading", {name: "loaded"}
        self._looks = 0
        return httpx.Response(200, json={"success": True})

    def _look(self) -> None:
        self._looks += 1
        if self._looks == 3 and self.settles:
            for name, status in self._then.items():
                fails = name == "broken" and status == "loaded"
                self.models[name] = "unloaded" if fails else status
                self.failed |= {name} if fails else set()

    def _row(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = {"value": self.models[name], "args": ["llama-server"]}
        if name in self.failed:
            status |= {"exit_code": 1, "failed": True}
        return {"id": name, "object": "model", "owned_by": "llamacpp", "status": status}


async def test_a_server_of_one_model_is_no_router() -> None:
    async with Router(role=None).client() as client:
        assert await client.why_none() == NO_ROUTER
    async with Router().client() as client:
        assert await client.why_none() is None


async def test_a_model_is_loaded_and_waited_for() -> None:
    router = Router()
    async with router.client() as client:
        assert await client.load("smol-a") == RoutedModel("smol-a", "loaded")
    assert router.asked == [("/models/load", "smol-a")]


async def test_a_model_is_unloaded_and_waited_for() -> None:
    router = Router()
    async with router.client() as client:
        assert (await client.unload("smol-b")).status == "unloaded"
    assert router.asked == [("/models/unload", "smol-b")]


async def test_a_model_that_does_not_load_says_how_it_ended() -> None:
    async with Router().client() as client:
        with pytest.raises(RefusedError) as refused:
            await client.load("broken")
    assert refused.value.evidence == "exit code 1"


async def test_what_is_unknown_or_done_already_is_refused() -> None:
    async with Router().client() as client:
        with pytest.raises(RefusedError) as unknown:
            await client.load("nope")
        with pytest.raises(RefusedError) as done:
            await client.load("smol-b")
    assert unknown.value.evidence == "it has broken, smol-a, smol-b"
    assert done.value.message == "smol-b is loaded already"


async def test_a_load_that_lasts_too_long_is_told() -> None:
    router = Router()
    router.settles = False
    async with router.client() as client:
        with pytest.raises(TimedOutError) as late:
            await client.load("smol-a", timeout_s=0.01)
    assert "still loading" in late.value.message
