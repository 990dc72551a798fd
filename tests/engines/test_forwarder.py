"""The forwarder of an attached endpoint: over TLS, with its key, counting what is charged."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from a40console.engines.attached import key_fault
from a40console.engines.command import engine_environment, plan
from a40console.engines.diagnosis import Ending, diagnose
from a40console.engines.forwarder import UsageReader, main
from a40console.engines.run_record import EngineExit
from a40console.model.profile import Profile
from tests.engines.command_lines import SITE

KEY = "sk-not-for-others-71"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 40},
}
CHARGED = {
    "a40console:charged_prompt_tokens_total": 100,
    "a40console:charged_cached_tokens_total": 40,
    "a40console:charged_generated_tokens_total": 5,
    "a40console:charged_untold_requests_total": 0,
}


def profile(**changes: Any) -> Profile:
    return Profile(
        name="endpoint",
        kind="attached",
        base_url="https://localhost/v1",
        api_key_variable="ENDPOINT_API_KEY",
        model="theirs",
        messages_route="translated",
        **changes,
    )


class Endpoint:
    """What is somewhere else: answers as OpenAI's servers do."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.breaks_off = False
        self.waiting, self.left = asyncio.Event(), asyncio.Event()
        self.app = web.Application()
        self.app.router.add_get("/v1/models", self._models)
        self.app.router.add_post("/v1/chat/completions", self._chat)

    def _refusal(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == f"Bearer {KEY}":
            return None
        return web.json_response({"error": {"message": "no such key"}}, status=401)

    async def _models(self, request: web.Request) -> web.Response:
        return self._refusal(request) or web.json_response({"data": [{"id": "theirs"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        if body["messages"][0]["content"] == "too much":
            error = {"error": {"message": "slow down"}}
            return web.json_response(error, status=429, headers={"Retry-After": "7"})
        if body["messages"][0]["content"] == "wait":
            self.waiting.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.left.set()
        if not body.get("stream"):
            return web.json_response({"choices": [], "usage": USAGE})
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        await out.write(b'data: {"choices":[{"delta":{"content":"one"}}]}\n\n')
        if self.breaks_off:
            assert request.transport is not None
            request.transport.abort()
            return out
        last = json.dumps({"choices": [], "usage": USAGE}).encode()
        await out.write(b"data: " + last[:20])
        await out.write(last[20:] + b"\n\ndata: [DONE]\n\n")
        return out


@pytest.fixture(scope="module")
def certificate() -> Iterator[Path]:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("there is no openssl here to make a certificate with")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj"
    subprocess.run(
        [openssl, *words.split(), "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    yield folder
    shutil.rmtree(folder)


@asynccontextmanager
async def endpoint_at(folder: Path) -> AsyncIterator[tuple[Endpoint, str]]:
    endpoint = Endpoint()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    runner = web.AppRunner(endpoint.app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield endpoint, f"https://localhost:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def forwarding(
    url: str, environment: Mapping[str, str]
) -> AsyncIterator[tuple[aiohttp.ClientSession, list[str]]]:
    """A forwarder of its own process, and what it wrote."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    socket = folder / "s"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "a40console.engines.forwarder", "--base-url", url, "--model", "theirs"),
        *("--served-model-name", "ours", "--uds", str(socket), "--max-model-len", "4096"),
        *("--key-variable", "ENDPOINT_API_KEY"),
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    written: list[str] = []
    started = False
    while line := await asyncio.wait_for(process.stdout.readline(), 30):
        written.append(line.decode().strip())
        started = "startup complete" in written[-1]
        if started:
            break
    try:
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session:
            yield session, written
    finally:
        if started and process.returncode is None:
            process.terminate()
        written.append(f"ended with {await asyncio.wait_for(process.wait(), 10)}")
        shutil.rmtree(folder)


def environment_of(folder: Path, key: str = KEY) -> dict[str, str]:
    return {"SSL_CERT_FILE": str(folder / "cert.pem"), "ENDPOINT_API_KEY": key}


async def charged(session: aiohttp.ClientSession) -> dict[str, int]:
    async with session.get("http://x/metrics") as answer:
        lines = (await answer.text()).splitlines()
    pairs = (line.split() for line in lines if line.startswith("a40console:charged"))
    return {name: int(value) for name, value in pairs}


async def test_requests_go_there_over_tls_with_the_key_and_its_model(certificate: Path) -> None:
    async with (
        endpoint_at(certificate) as (endpoint, url),
        forwarding(url, environment_of(certificate)) as (session, written),
    ):
        async with session.get("http://x/health") as answer:
            assert answer.status == 200
        async with session.get("http://x/v1/models") as answer:
            (model,) = (await answer.json())["data"]
        assert (model["id"], model["max_model_len"]) == ("ours", 4096)
        body = {"model": "ours", "messages": [{"role": "user", "content": "hi"}]}
        async with session.post("http://x/v1/chat/completions", json=body) as answer:
            assert (await answer.json())["usage"] == USAGE
        assert endpoint.asked[0]["model"] == "theirs"
        assert await charged(session) == CHARGED
        streamed = {**body, "stream": True}
        async with session.post("http://x/v1/chat/completions", json=streamed) as answer:
            text = (await answer.read()).decode()
        assert text.startswith('data: {"choices":[{"delta":{"content":"one"}}]}')
        assert text.endswith("data: [DONE]\n\n")
        assert await charged(session) == {name: 2 * value for name, value in CHARGED.items()}
    assert KEY not in "\n".join(written)
    assert written[-1] == "ended with 0"


async def test_refusals_come_back_as_they_are_and_cost_nothing(certificate: Path) -> None:
    body = {"model": "ours", "messages": [{"role": "user", "content": "too much"}]}
    async with (
        endpoint_at(certificate) as (_, url),
        forwarding(url, environment_of(certificate)) as (session, _),
    ):
        async with session.post("http://x/v1/chat/completions", json=body) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
            assert (await answer.json())["error"]["message"] == "slow down"
        async with session.post("http://x/v1/chat/completions", data=b"[]") as answer:
            assert answer.status == 400
        async with session.post("http://x/v1/messages", json=body) as answer:
            assert answer.status == 404
        assert set((await charged(session)).values()) == {0}


async def test_half_an_answer_does_not_end_like_a_whole_one(certificate: Path) -> None:
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "ours", "stream": True, "messages": messages}
    async with (
        endpoint_at(certificate) as (endpoint, url),
        forwarding(url, environment_of(certificate)) as (session, _),
    ):
        endpoint.breaks_off = True
        with pytest.raises(aiohttp.ClientError):
            async with session.post("http://x/v1/chat/completions", json=body) as answer:
                await answer.read()
        assert (await charged(session))["a40console:charged_untold_requests_total"] == 1


async def test_a_client_that_leaves_in_the_prefill_ends_the_work_there(certificate: Path) -> None:
    body = {"model": "ours", "messages": [{"role": "user", "content": "wait"}]}
    async with (
        endpoint_at(certificate) as (endpoint, url),
        forwarding(url, environment_of(certificate)) as (session, _),
    ):
        asking = asyncio.create_task(session.post("http://x/v1/chat/completions", json=body))
        await asyncio.wait_for(endpoint.waiting.wait(), 10)
        asking.cancel()
        await asyncio.wait_for(endpoint.left.wait(), 10)
        for _ in range(100):
            told = await charged(session)
            if told["a40console:charged_untold_requests_total"]:
                break
            await asyncio.sleep(0.05)
        assert told["a40console:charged_untold_requests_total"] == 1


async def test_a_key_that_is_refused_ends_the_start_and_is_named(certificate: Path) -> None:
    async with (
        endpoint_at(certificate) as (_, url),
        forwarding(url, environment_of(certificate, "sk-wrong")) as (_, written),
    ):
        pass
    assert written[-2] == f"error: endpoint refused the key: HTTP 401 of {url}/models"
    assert written[-1] == "ended with 1"
    found = diagnose(
        Ending(profile=profile(), exit=EngineExit(code=1), lines=tuple(written[:-1]), phase="")
    )
    assert (found.code, found.cause) == (
        "endpoint-key-refused",
        "the endpoint refused the key (HTTP 401)",
    )


def test_what_is_not_there_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENDPOINT_API_KEY", raising=False)
    words = ["--base-url", "https://127.0.0.1:9/v1", "--model", "m", "--served-model-name", "m"]
    assert main([*words, "--key-variable", "ENDPOINT_API_KEY"]) == 1
    assert "endpoint key missing: ENDPOINT_API_KEY is not set" in capsys.readouterr().out
    assert main(words) == 1
    assert "endpoint not reached: https://127.0.0.1:9/v1: " in capsys.readouterr().out


def test_the_key_is_on_no_command_line_and_reaches_no_other_engine() -> None:
    inherited = {"PATH": "/bin", "ENDPOINT_API_KEY": KEY, "OTHER_API_KEY": "x"}
    launch = plan(profile(), SITE)
    assert KEY not in " ".join(launch.argv)
    assert engine_environment(inherited, launch)["ENDPOINT_API_KEY"] == KEY
    assert "OTHER_API_KEY" not in engine_environment(inherited, launch)
    other = plan(Profile(name="v", kind="vllm", model="m"), SITE)
    assert "ENDPOINT_API_KEY" not in engine_environment(inherited, other)


def test_a_key_file_is_this_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    asked = profile(api_key_file=str(file))
    environment = {"ENDPOINT_API_KEY": "x"}
    file.chmod(0o640)
    assert key_fault(asked, environment) == f"{file} may be read by others: chmod 600 {file}"
    file.chmod(0o600)
    assert key_fault(asked, environment) is None
    file.write_text("two words")
    assert "holds no key" in (key_fault(asked, environment) or "")
    file.unlink()
    assert "cannot be read" in (key_fault(asked, environment) or "")
    assert "ENDPOINT_API_KEY is not set" in (key_fault(profile(), {}) or "")


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_usage_is_found_however_a_stream_is_cut(cut: int) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    chunk = json.dumps({"choices": [], "usage": usage})
    stream = f'data: {{"choices":[],"usage":null}}\n\ndata: {chunk}\n\ndata: [DONE]\n\n'.encode()
    reader = UsageReader(streamed=True)
    for piece in (stream[:cut], stream[cut:]):
        reader.take(piece)
    assert reader.end() == usage
