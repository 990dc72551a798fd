"""The stub's ledger: runs of every kind, what is told of them, and what is written down."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a40console.ledger.documents import Document, read, written
from a40console.model.codec import encode
from a40console.model.control import Trouble
from a40console.model.run import ENDED, Run
from tests import make_runs


class StubRuns:
    """Answers what a service tells of runs; `known` is whether there are any."""

    def __init__(self, *, known: bool) -> None:
        self._runs = {run.id: run for run in make_runs.several()} if known else {}
        self._hypotheses = make_runs.hypotheses() if known else ()

    def routes(self) -> list[Route]:
        return [
            Route("/v1/runs", self._list),
            Route("/v1/runs/compare", self._compare),
            Route("/v1/runs/{name}", self._one),
            Route("/v1/runs/{name}/records", self._records),
            Route("/v1/runs/{name}/document", self._document),
            Route("/v1/hypotheses", self._claims),
        ]

    def done(self, command: str, arguments: dict[str, str]) -> dict[str, str]:
        """What a command of the runs reports."""
        said = ", ".join(f"{name}={text}" for name, text in sorted(arguments.items()))
        if command == "runs.import":
            document = read(json.loads(arguments["document"]))
            self._runs[document.run.id] = document.run
            said = f"{document.run.id} with {len(document.samples)} requests"
        return {"report": f"{command}: {said}"}

    async def _list(self, request: Request) -> Response:
        limit = int(request.query_params["limit"])
        newest = sorted(self._runs.values(), key=lambda run: run.id, reverse=True)
        return JSONResponse(encode(tuple(newest[:limit])))

    async def _one(self, request: Request) -> Response:
        found = self._found(request)
        return found if isinstance(found, Response) else JSONResponse(encode(found))

    async def _records(self, request: Request) -> Response:
        found = self._found(request)
        if isinstance(found, Response):
            return found
        after = int(request.query_params["after"])
        records = make_runs.records(found)[after : after + 100]
        return JSONResponse({"next": after + len(records), "records": encode(records)})

    async def _document(self, request: Request) -> Response:
        found = self._found(request)
        if isinstance(found, Response):
            return found
        if found.state not in ENDED:
            return _refused(f"Run {found.id} has not ended", code=5)
        measured = not found.reference
        document = Document(
            run=found,
            samples=make_runs.samples(found) if measured else (),
            arm_ends=make_runs.arm_ends(found) if measured else (),
        )
        return JSONResponse(written(document))

    async def _compare(self, request: Request) -> Response:
        left, right = request.query_params["left"], request.query_params["right"]
        return JSONResponse(encode(replace(make_runs.comparison(), left=left, right=right)))

    async def _claims(self, request: Request) -> Response:
        return JSONResponse(encode(self._hypotheses))

    def _found(self, request: Request) -> Run | Response:
        name: Any = request.path_params["name"]
        found = [run for key, run in self._runs.items() if key.startswith(name)]
        if len(found) == 1:
            return found[0]
        return _refused(f"No run is known as {name}", code=2)


def _refused(message: str, *, code: int) -> Response:
    trouble = Trouble(message=message, remedy="See them with: a40console runs list", exit_code=code)
    return JSONResponse(encode(trouble), status_code=400)
