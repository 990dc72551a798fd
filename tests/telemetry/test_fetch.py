"""What a server does to a reading: redirects, keys, answers that break off or never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.vllm import MetricsSource
from tests.telemetry.makers import Clock, metrics_answer, routes


@asynccontextmanager
async def server(handler: Callable[[str, dict[str, str]], bytes]) -> AsyncIterator[str]:
    """A real HTTP server on loopback that answers a request line and its headers with bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        writer.write(handler(lines[0].split(" ")[1], headers))
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield f"http://127.0.0.1:{port}"


def answer(status: str, text: str = "", **headers: str) -> bytes:
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    length = len(text.encode())
    head = f"HTTP/1.1 {status}\r\n{told}content-length: {length}\r\nconnection: close\r\n\r\n"
    return (head + text).encode()


async def read_from(
    handler: Callable[[str, dict[str, str]], bytes], api_key: str | None = None
) -> float:
    async with server(handler) as url:
        http = EngineHttp(Endpoint(url, api_key=api_key), clock=Clock())
        try:
            return (await MetricsSource(http).read()).counters["generated_tokens"]
        finally:
            await http.aclose()


METRICS = "vllm:generation_tokens_total 42\n"


async def test_25_a_redirect_on_the_same_server_is_followed() -> None:
    asked: list[str] = []

    def handler(path: str, headers: dict[str, str]) -> bytes:
        asked.append(path)
        if path == "/metrics/":
            return answer("200 OK", METRICS)
        return answer("307 Temporary Redirect", location="/metrics/")

    assert await read_from(handler) == 42
    assert asked == ["/metrics", "/metrics/"]


async def test_25_a_redirect_elsewhere_is_not_followed_with_our_key() -> None:
    def handler(path: str, headers: dict[str, str]) -> bytes:
        return answer("307 Temporary Redirect", location="http://elsewhere.invalid/metrics")

    with pytest.raises(SourceError, match="redirects to another server"):
        await read_from(handler, "key")


async def test_25_a_redirect_in_a_circle_ends() -> None:
    def handler(path: str, headers: dict[str, str]) -> bytes:
        return answer("307 Temporary Redirect", location=path)

    with pytest.raises(SourceError, match="circle"):
        await read_from(handler)


async def test_25_an_api_key_is_asked_for_and_used() -> None:
    def handler(path: str, headers: dict[str, str]) -> bytes:
        if headers.get("authorization") == "bearer right":
            return answer("200 OK", METRICS)
        return answer("401 Unauthorized", '{"error":"Unauthorized"}')

    with pytest.raises(SourceError, match="needs an API key"):
        await read_from(handler)
    with pytest.raises(SourceError, match="the API key is refused"):
        await read_from(handler, "wrong")
    assert await read_from(handler, "right") == 42


async def test_a_broken_off_answer_and_a_silent_server_are_reasons() -> None:
    def cut(path: str, headers: dict[str, str]) -> bytes:
        return answer("200 OK", METRICS)[:-10]

    with pytest.raises(SourceError, match="broke off") as broken:
        await read_from(cut)
    assert broken.value.passing
    http = EngineHttp(Endpoint("http://127.0.0.1:1"), clock=Clock())
    with pytest.raises(SourceError, match="cannot connect"):
        await http.get("/metrics", timeout_s=2)
    await http.aclose()

    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    http = EngineHttp(
        Endpoint("http://engine"), clock=Clock(), transport=httpx.MockTransport(silent)
    )
    with pytest.raises(SourceError, match=r"no answer within 0\.05 s"):
        await http.get("/metrics", timeout_s=0.05)


async def test_an_endless_body_is_not_swallowed() -> None:
    transport = routes({"/metrics": metrics_answer("x" * (9 * 1024 * 1024))})
    http = EngineHttp(Endpoint("http://engine"), clock=Clock(), transport=transport)
    with pytest.raises(SourceError, match="more than 8 MiB"):
        await http.get("/metrics", timeout_s=5)
