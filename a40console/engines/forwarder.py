"""Stands for an OpenAI endpoint somewhere else: a local server that passes requests on, with a key.

The gateway, the keeper and the switch treat it as any engine. It counts what the endpoint says it
charged for, since nothing else knows that of every request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from a40console import __version__
from a40console.engines.attached import KeyFileError, read_key_file

FORWARDED = ("/v1/chat/completions", "/v1/completions")
ASK_S = 15.0
CONNECT_S = 10.0
SHUTDOWN_S = 2.0
MOST_BODY_BYTES = 256 * 2**20
LONGEST_EVENT_BYTES = 4 * 2**20
"""An event of a stream beyond this is passed on, and not read."""

READY = "Application startup complete."
REFUSED = (401, 403)
MOVED = (301, 302, 303, 307, 308)
"""Not followed: the key is shown nowhere but where the profile says."""


class StartError(Exception):
    """Why the endpoint cannot be stood for, in words."""


@dataclass(slots=True)
class Charged:
    """Tokens that the endpoint said it charged for."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0
    untold: int = 0
    """Answers that said nothing of their tokens."""

    running: int = 0

    def settle(self, usage: object, *, billed: bool) -> None:
        """Add what one answer said.

        Args:
            usage: As it said it; None where it did not.
            billed: Whether it was charged in any case.
        """
        if not isinstance(usage, dict):
            self.untold += billed
            return
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        cached = usage.get("cached_tokens") if cached is None else cached
        self.prompt += _count(usage.get("prompt_tokens"))
        self.cached += min(_count(cached), _count(usage.get("prompt_tokens")))
        self.generated += _count(usage.get("completion_tokens"))


class UsageReader:
    """Finds the usage in an answer that passes by, whole or streamed."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self._kept = bytearray()
        self.usage: object = None

    def take(self, chunk: bytes) -> None:
        """Read on."""
        self._kept += chunk
        if self._streamed:
            *lines, rest = self._kept.split(b"\n")
            for line in lines:
                self._line(bytes(line))
            self._kept = rest if len(rest) <= LONGEST_EVENT_BYTES else bytearray()

    def end(self) -> object:
        """The usage, or None."""
        if not self._streamed:
            self._read(bytes(self._kept))
        elif self._kept:
            self._line(bytes(self._kept))
        return self.usage

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:") and b'"usage"' in line:
            self._read(line[5:])

    def _read(self, text: bytes) -> None:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return
        usage = answer.get("usage") if isinstance(answer, dict) else None
        self.usage = usage or self.usage


class Forwarder:
    """The local server's routes.

    Args:
        session: To the endpoint.
        base_url: Where the endpoint's OpenAI routes begin.
        key: Shown to the endpoint; None where it asks for none.
        model: Its name there.
        served: Its name here.
        max_model_len: Tokens of a request at most; None where that is not known.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        base_url: str,
        key: str | None,
        model: str,
        served: str,
        max_model_len: int | None,
    ) -> None:
        self._session = session
        self._base_url = base_url.rstrip("/")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._model = model
        self._served = served
        self._max_model_len = max_model_len
        self._began_s = time.time()
        self.charged = Charged()

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=MOST_BODY_BYTES)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/metrics", self._metrics)
        for path in FORWARDED:
            app.router.add_post(path, self._forward)
        return app

    async def greet(self) -> None:
        """See that the endpoint answers and takes the key; its list of models costs nothing.

        Raises:
            StartError: If not.
        """
        url, timeout = f"{self._base_url}/models", aiohttp.ClientTimeout(total=ASK_S)
        try:
            async with self._session.get(
                url, headers=self._headers, timeout=timeout, allow_redirects=False
            ) as answer:
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StartError(
                f"endpoint not reached: {self._base_url}: {str(error) or type(error).__name__}"
            ) from error
        if status in REFUSED:
            raise StartError(f"endpoint refused the key: HTTP {status} of {url}")
        if status >= 500 or status in MOVED:
            raise StartError(f"endpoint fails: HTTP {status} of {url}")

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="")

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": f"forwarder {__version__}"})

    async def _models(self, request: web.Request) -> web.Response:
        model: dict[str, Any] = {"id": self._served, "object": "model", "owned_by": "endpoint"}
        if self._max_model_len is not None:
            model["max_model_len"] = self._max_model_len
        return web.json_response({"object": "list", "data": [model]})

    async def _metrics(self, request: web.Request) -> web.Response:
        charged = self.charged
        lines = [
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {self._began_s}",
            "# TYPE a40console:requests_running gauge",
            f"a40console:requests_running {charged.running}",
        ]
        for name, value in (
            ("charged_prompt_tokens", charged.prompt),
            ("charged_cached_tokens", charged.cached),
            ("charged_generated_tokens", charged.generated),
            ("charged_untold_requests", charged.untold),
        ):
            lines += [f"# TYPE a40console:{name} counter", f"a40console:{name}_total {value}"]
        text = "\n".join([*lines, ""])
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except (ValueError, RecursionError):
            return _error(400, "the body is not JSON")
        if not isinstance(body, dict):
            return _error(400, "the body is no object")
        body["model"] = self._model
        url = self._base_url + request.path.removeprefix("/v1")
        reader = UsageReader(streamed=body.get("stream") is True)
        self.charged.running += 1
        billed = True  # also where the client leaves before anything came
        try:
            async with self._session.post(
                url, json=body, headers=self._headers, allow_redirects=False
            ) as answer:
                billed = answer.status == 200
                return await self._pass_on(request, answer, reader)
        except aiohttp.ClientConnectorError as error:
            billed = False
            return _error(502, f"the endpoint was not reached: {error}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return _error(502, f"the endpoint broke off: {str(error) or type(error).__name__}")
        finally:
            self.charged.running -= 1
            self.charged.settle(reader.end(), billed=billed)

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, reader: UsageReader
    ) -> web.StreamResponse:
        """The endpoint's answer, as it comes.

        Once it began, an endpoint that breaks off ends the connection: the client must not take
        half an answer for a whole one.
        """
        kind = answer.headers.get("Content-Type", "application/json")
        out = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
        if (wait := answer.headers.get("Retry-After")) is not None:
            out.headers["Retry-After"] = wait
        await out.prepare(request)
        try:
            async for chunk in _chunks(answer):
                reader.take(chunk)
                await out.write(chunk)
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
            return out
        await out.write_eof()
        return out


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for chunk in answer.content.iter_any():
        yield chunk


async def serve(asked: argparse.Namespace, key: str | None) -> None:
    """Stand for the endpoint until told to stop.

    Raises:
        StartError: If it cannot.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    # A connection that was kept may just be closing, and its request would be lost.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(
        timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), connector=connector
    ) as session:
        forwarder = Forwarder(
            session,
            base_url=asked.base_url,
            key=key,
            model=asked.model,
            served=asked.served_model_name,
            max_model_len=asked.max_model_len,
        )
        _say(f"asking {asked.base_url} for its models")
        await forwarder.greet()
        # Cancelled where a client leaves: what nobody reads any more would still be charged.
        runner = web.AppRunner(
            forwarder.application(),
            access_log=None,
            shutdown_timeout=SHUTDOWN_S,
            handler_cancellation=True,
        )
        await runner.setup()
        try:
            await _site(runner, asked).start()
            _say(READY)
            await stop.wait()
            _say("Shutting down")
        finally:
            await runner.cleanup()


def _site(runner: web.AppRunner, asked: argparse.Namespace) -> web.BaseSite:
    if asked.uds is not None:
        return web.UnixSite(runner, asked.uds)
    return web.TCPSite(runner, asked.host, asked.port)


def _key(asked: argparse.Namespace) -> str | None:
    """The endpoint's key.

    Raises:
        StartError: If it is named and not there.
    """
    if asked.key_file is not None:
        try:
            return read_key_file(asked.key_file)
        except KeyFileError as error:
            raise StartError(f"endpoint key missing: {error}") from error
    if asked.key_variable is None:
        return None
    key = os.environ.get(asked.key_variable, "").strip()
    if not key:
        raise StartError(f"endpoint key missing: {asked.key_variable} is not set")
    return key


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="forwarder", allow_abbrev=False)
    for flag in ("--base-url", "--model", "--served-model-name"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--uds")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--key-variable")
    parser.add_argument("--key-file", type=Path)
    return parser.parse_args(words)


def _say(text: str) -> None:
    """A line of the engine's output, which the console reads as it is written."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "upstream_error", "code": status}
    return web.json_response({"error": error}, status=status)


def main(words: Sequence[str] | None = None) -> int:
    """Run; the exit code."""
    asked = _asked(words)
    try:
        asyncio.run(serve(asked, _key(asked)))
    except (StartError, OSError) as error:
        _say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
