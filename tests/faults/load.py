"""Clients that never stop asking: streams and whole answers, on both of the gateway's APIs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

TIMEOUT_S = 240.0


@dataclass(frozen=True)
class Outcome:
    """How one request went, as its client saw it."""

    kind: str
    began_s: float
    ended_s: float
    error: str = ""

    @property
    def took_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass
class Load:
    """What all clients saw."""

    base_url: str
    model: str
    answer_tokens: int = 60
    extras: dict[str, Any] = field(default_factory=dict)
    """Further members of every body."""

    outcomes: list[Outcome] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def errors(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.error]

    @property
    def longest_s(self) -> float:
        return max(each.took_s for each in self.outcomes)

    def count(self, kind: str) -> int:
        return sum(each.kind == kind and not each.error for each in self.outcomes)

    def until(self, requests: int, timeout_s: float = 60) -> None:
        """Wait until so many more requests were answered."""
        wanted, deadline_s = len(self.outcomes) + requests, time.monotonic() + timeout_s
        while len(self.outcomes) < wanted:
            assert time.monotonic() < deadline_s, (len(self.outcomes), self.errors)
            time.sleep(0.05)

    async def run(self, clients: int) -> None:
        kinds = [self._message_stream, self._chat_stream, self._chat_whole, self._message_whole]
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits, trust_env=False) as http:
            await asyncio.gather(
                *(self._client(http, kinds[i % len(kinds)], i) for i in range(clients))
            )

    async def _client(self, http: httpx.AsyncClient, ask: Any, number: int) -> None:
        turn = 0
        while not self.stopping.is_set():
            turn += 1
            began_s, error = time.monotonic(), ""
            try:
                error = await ask(http, f"client {number}, turn {turn}: count the waves")
            except httpx.HTTPError as broken:
                error = repr(broken)
            self.outcomes.append(Outcome(ask.__name__, began_s, time.monotonic(), error))
            await asyncio.sleep(0.2 if error else 0.01)

    def _body(self, text: str, *, stream: bool) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": self.answer_tokens,
            "messages": [{"role": "user", "content": text}],
            "stream": stream,
            "temperature": 0,
            **self.extras,
        }

    async def _message_stream(self, http: httpx.AsyncClient, text: str) -> str:
        ended, failed = False, ""
        url, body = f"{self.base_url}/v1/messages", self._body(text, stream=True)
        async with http.stream("POST", url, json=body) as answer:
            if answer.status_code != 200:
                return _refused(answer, (await answer.aread()).decode())
            async for line in answer.aiter_lines():
                ended = ended or line == "event: message_stop"
                failed = line if line.startswith("data:") and '"error"' in line else failed
        return failed or ("" if ended else "the stream has no end")

    async def _chat_stream(self, http: httpx.AsyncClient, text: str) -> str:
        ended, finished, failed = False, False, ""
        url, body = f"{self.base_url}/v1/chat/completions", self._body(text, stream=True)
        async with http.stream("POST", url, json=body) as answer:
            if answer.status_code != 200:
                return _refused(answer, (await answer.aread()).decode())
            async for line in answer.aiter_lines():
                ended = ended or line == "data: [DONE]"
                if line.startswith("data: {"):
                    chunk = json.loads(line[6:])
                    failed = line if chunk.get("error") else failed
                    finished = finished or any(
                        choice.get("finish_reason") for choice in chunk.get("choices", ())
                    )
        return failed or ("" if ended and finished else "the stream has no end")

    async def _chat_whole(self, http: httpx.AsyncClient, text: str) -> str:
        url = f"{self.base_url}/v1/chat/completions"
        answer = await http.post(url, json=self._body(text, stream=False))
        return _whole(answer, "choices")

    async def _message_whole(self, http: httpx.AsyncClient, text: str) -> str:
        url = f"{self.base_url}/v1/messages"
        answer = await http.post(url, json=self._body(text, stream=False))
        return _whole(answer, "content")


def _refused(answer: httpx.Response, text: str) -> str:
    """`503: …`, and when it may be asked again, where that is told."""
    after = answer.headers.get("retry-after")
    return f"{answer.status_code}: {text}" + (f" [retry-after {after}]" if after else "")


def _whole(answer: httpx.Response, member: str) -> str:
    if answer.status_code != 200:
        return _refused(answer, answer.text)
    return "" if answer.json().get(member) else f"an answer without {member}: {answer.text}"


@contextmanager
def load(
    base_url: str,
    model: str,
    *,
    clients: int = 8,
    answer_tokens: int = 60,
    extras: dict[str, Any] | None = None,
) -> Iterator[Load]:
    """Clients that ask all the time inside the block; after it all of them have their answer."""
    made = Load(base_url, model, answer_tokens, extras or {})
    thread = threading.Thread(target=lambda: asyncio.run(made.run(clients)), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stopping.set()
        thread.join(TIMEOUT_S)
    assert not thread.is_alive(), "a client still waits for its answer"
