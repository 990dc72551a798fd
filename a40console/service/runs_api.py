"""The part of the control API that tells experiments, runs and what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from a40console.errors import UsageError
from a40console.files import parse_json
from a40console.ledger.documents import read
from a40console.ledger.reports import report
from a40console.model.codec import DecodeError, decode
from a40console.model.run import RunSpec
from a40console.service.query import as_json, count
from a40console.service.runs import Runs

Endpoint = Callable[[Request], Awaitable[Response]]
MOST_RUNS = 1000
FARTHEST_BYTES = 2**62
"""Into a file: farther no disk can be asked."""


class RunRoutes:
    """Answers what was measured, what is measured now, and what could be."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET; the first that fits is asked."""
        return {
            "/v1/experiments": self._experiments,
            "/v1/hypotheses": self._hypotheses,
            "/v1/runs": self._list,
            "/v1/runs/compare": self._compare,
            "/v1/runs/{run}": self._one,
            "/v1/runs/{run}/records": self._records,
            "/v1/runs/{run}/document": self._document,
            "/v1/runs/{run}/report": self._report,
        }

    def posts(self) -> Mapping[str, Endpoint]:
        """Path to what answers a POST."""
        return {"/v1/run-plan": self._plan}

    async def _experiments(self, request: Request) -> Response:
        return as_json(await asyncio.to_thread(self._runs.experiments))

    async def _plan(self, request: Request) -> Response:
        return as_json(await self._runs.plan(read_spec(await request.body())))

    async def _list(self, request: Request) -> Response:
        limit = min(count(request, "limit", 100), MOST_RUNS)
        only_live = request.query_params.get("kept") == "no"
        runs = await self._runs.newest(limit, only_live=only_live)
        return await asyncio.to_thread(as_json, runs)

    async def _one(self, request: Request) -> Response:
        run = await self._runs.find(request.path_params["run"])
        return await asyncio.to_thread(as_json, run)

    async def _records(self, request: Request) -> Response:
        after = min(count(request, "after", 0), FARTHEST_BYTES)
        following, lines = await self._runs.records(request.path_params["run"], after)
        told = b'{"next":%d,"records":[%b]}' % (following, b",".join(lines))
        return Response(told, media_type="application/json")

    async def _document(self, request: Request) -> Response:
        document = await self._runs.document(request.path_params["run"])
        return await asyncio.to_thread(as_json, document)

    async def _report(self, request: Request) -> Response:
        document = await self._runs.document(request.path_params["run"])
        form = request.query_params.get("form", "md")
        text = await asyncio.to_thread(lambda: report(read(document), form))
        return as_json({"text": text})

    async def _compare(self, request: Request) -> Response:
        left, right = (request.query_params.get(side, "") for side in ("left", "right"))
        if not left or not right:
            raise UsageError("A comparison names two runs: left and right")
        return as_json(await self._runs.compare(left, right))

    async def _hypotheses(self, request: Request) -> Response:
        return as_json(await self._runs.hypotheses())


def read_spec(text: str | bytes) -> RunSpec:
    """What a run is asked for with.

    Raises:
        UsageError: If it is not the JSON of a spec.
    """
    try:
        return decode(RunSpec, parse_json(text))
    except (ValueError, DecodeError) as error:
        raise UsageError("What the run is to be cannot be read", evidence=str(error)) from error
