"""HTTP to the engine: one client, same-origin redirects, and every failure as a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from a40console.files import parse_json
from a40console.model.engine import Endpoint

LARGEST_BODY_BYTES = 8 * 1024 * 1024
_MOST_REDIRECTS = 2


class SourceError(Exception):
    """A source that could not be read; the text is the reason for the operator.

    Args:
        reason: What happened, in one phrase.
        passing: Whether the last reading still counts for a while (a time-out, a cut body).
        absent: Whether the engine simply does not offer this.
    """

    def __init__(self, reason: str, *, passing: bool = False, absent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing
        self.absent = absent


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, whatever its status."""

    path: str
    status: int
    text: str
    content_type: str
    server: str
    process_start: str | None
    """llama.cpp names the start of its process in a header."""

    at_s: float
    """Middle of the exchange, on the monotonic clock."""

    round_trip_s: float

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            SourceError: When it is none.
        """
        try:
            value = parse_json(self.text)
        except ValueError as error:
            raise SourceError(f"{self.path} answers no JSON: {error}") from error
        if not isinstance(value, dict):
            raise SourceError(f"{self.path} answers no JSON object")
        return value


class EngineHttp:
    """The engine's HTTP surface."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._moved: dict[str, httpx.URL] = {}
        if transport is None and endpoint.socket_path is not None:
            # Unverified: a Unix socket has no TLS, and the certificates take 30 ms and 0.7 MB.
            transport = httpx.AsyncHTTPTransport(uds=endpoint.socket_path, verify=False)
        self._client = httpx.AsyncClient(
            base_url=endpoint.base_url,
            transport=transport,
            trust_env=False,  # a proxy in the environment is not meant for the engine
            timeout=None,  # noqa: S113 -- every request has its own limit, below
            headers={"Accept-Encoding": "identity", "User-Agent": "a40console"},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(
        self,
        path: str,
        *,
        timeout_s: float,
        token: str | None = None,
        params: dict[str, str] | None = None,
    ) -> Answer:
        """Ask for a path, with the engine's API key unless another token is given.

        Raises:
            SourceError: When no complete answer came.
        """
        key = token or self._endpoint.api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = self._moved.get(path, httpx.URL(path))
        try:
            async with asyncio.timeout(timeout_s):
                for _ in range(_MOST_REDIRECTS + 1):
                    answer, target = await self._exchange(path, url, headers, params)
                    if target is None:
                        if answer.status != 200:
                            self._moved.pop(path, None)
                        return answer
                    self._moved[path] = url = target
        except TimeoutError:
            raise SourceError(f"no answer within {timeout_s:g} s", passing=True) from None
        except httpx.ConnectError as error:
            raise SourceError(f"cannot connect: {error}", passing=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            kind = type(error).__name__
            raise SourceError(f"the answer broke off ({kind}: {error})", passing=True) from error
        raise SourceError(f"{path} redirects in a circle")

    async def _exchange(
        self, path: str, url: httpx.URL, headers: dict[str, str], params: dict[str, str] | None
    ) -> tuple[Answer, httpx.URL | None]:
        started_s = self._clock()
        async with self._client.stream("GET", url, headers=headers, params=params) as response:
            text = await _bounded_text(response, path)
        ended_s = self._clock()
        answer = Answer(
            path=path,
            status=response.status_code,
            text=text,
            content_type=response.headers.get("content-type", ""),
            server=response.headers.get("server", ""),
            process_start=response.headers.get("process-start-time-unix"),
            at_s=(started_s + ended_s) / 2,
            round_trip_s=ended_s - started_s,
        )
        return answer, _redirect(response, path)

    def require(self, answer: Answer, what: str) -> Answer:
        """The answer, if it is a 200.

        Raises:
            SourceError: Otherwise, saying what the status means here.
        """
        match answer.status:
            case 200:
                return answer
            case 401 | 403:
                refused = "the API key is refused" if self._endpoint.api_key else "needs an API key"
                raise SourceError(f"{what}: {refused} (HTTP {answer.status})")
            case 404 | 405 | 501:
                raise SourceError(f"{what}: not offered (HTTP {answer.status})", absent=True)
            case 503:
                raise SourceError(f"{what}: the engine is not ready (HTTP 503)", passing=True)
            case status if status >= 500:
                raise SourceError(
                    f"the engine answers, but its telemetry is broken: HTTP {status} from "
                    f"{answer.path}"
                )
            case status:
                raise SourceError(f"{what}: HTTP {status}")


async def _bounded_text(response: httpx.Response, path: str) -> str:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > LARGEST_BODY_BYTES:
            raise SourceError(f"{path} answers with more than 8 MiB: not telemetry")
    return body.decode("utf-8", errors="replace")


def _redirect(response: httpx.Response, path: str) -> httpx.URL | None:
    """Where a redirect leads, if it stays with the same server.

    Raises:
        SourceError: If it leads elsewhere: our key must not follow it.
    """
    location = response.headers.get("location")
    if not response.has_redirect_location or location is None:
        return None
    target = response.url.join(location)
    if (target.scheme, target.host, target.port) != (
        response.url.scheme,
        response.url.host,
        response.url.port,
    ):
        raise SourceError(f"{path} redirects to another server ({target.host}): not followed")
    return target
