"""The sessions of a rehearsed day: what its clients sent and got, told to the book in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import read_asked
from a40console.gateway.clients import client_of
from a40console.gateway.dialect import Dialect
from a40console.gateway.meter import Passage
from a40console.gateway.sessions import SessionBook

PATH = "/v1/messages"


class RehearsedSessions:
    """Drives a book by a day that was played elsewhere.

    Args:
        served_name: The model's name.
        wall: From the day's clock to Unix time.
    """

    def __init__(self, served_name: str, wall: Callable[[float], float]) -> None:
        self._now_s = 0.0
        self._wall = wall
        self._dialect = Dialect(
            route="native",
            system_turns="keep",
            images=False,
            counting="messages",
            served_name=served_name,
            max_model_len=None,
            evidence=(),
        )
        self._passages: dict[str, Passage] = {}
        self._ended: set[str] = set()
        self.after = 0
        """Number of the newest request that was told."""

        self.book = SessionBook(lambda: self._now_s, lambda: wall(self._now_s))

    def replay(
        self, asked: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], now_s: float
    ) -> None:
        """What happened up to now: arrivals and ends, each at its own instant."""
        ends = [
            (row["ended_s"], row)
            for row in rows
            if row["ended_s"] is not None and row["request_id"] not in self._ended
        ]
        happened = [(each["received_s"], "asked", each) for each in asked]
        happened += [(at_s, "ended", row) for at_s, row in ends]
        for at_s, kind, told in sorted(happened, key=lambda entry: entry[0]):
            self._now_s = max(self._now_s, at_s)
            if kind == "asked":
                self._arrive(told)
            else:
                self._end(told)
        self._now_s = now_s
        for row in rows:
            self._progress(row)

    def known(self, request_id: str) -> Passage | None:
        """A request as the gateway would have it."""
        return self._passages.get(request_id)

    def _arrive(self, told: dict[str, Any]) -> None:
        headers = Headers(told["headers"])
        passage = Passage(
            order=told["number"],
            request_id=told["request_id"],
            route="messages",
            received_at_s=told["received_s"],
        )
        passage.client = client_of(headers.get("user-agent"))
        asked = read_asked(json.dumps(told["body"]).encode(), headers, PATH, self._dialect)
        self.book.arrived(passage, asked)
        passage.sent_at_s = told["received_s"]
        self._passages[passage.request_id] = passage
        self.after = told["number"]

    def _progress(self, row: dict[str, Any]) -> None:
        passage = self._passages.get(row["request_id"])
        if passage is not None and passage.ended_at_s is None:
            passage.first_token_at_s = row["first_token_s"]
            passage.last_token_at_s = row["last_token_s"]
            passage.prompt_tokens = row["prompt_tokens"]

    def _end(self, row: dict[str, Any]) -> None:
        passage = self._passages.get(row["request_id"])
        self._ended.add(row["request_id"])
        if passage is None:
            return
        self._progress(row)
        passage.cached_tokens = row["cached_tokens"]
        passage.totalled(row["generated_tokens"])
        passage.finish_reason, passage.status = row["finish_reason"], 200
        passage.ended_at_s = row["ended_s"]
        if row["tool"] is not None:
            self.book.called(passage, row["tool"], row["call"])
        self.book.ended(passage)
