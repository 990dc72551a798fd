"""The runs of a rehearsal: what others have measured and written down, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from a40console.ledger.store import Ledger
from a40console.service.api import Endpoint
from a40console.service.query import as_json


class RehearsedRuns:
    """A ledger with the shipped reference rows, which are marked; a rehearsal measures nothing.

    Args:
        path: Where the ledger is made.
    """

    def __init__(self, path: Path) -> None:
        self._ledger = Ledger.open(path)
        self._ledger.import_reference()

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET."""
        return {
            "/v1/hypotheses": self._hypotheses,
            "/v1/runs": self._list,
            "/v1/runs/{run}": self._one,
            "/v1/runs/{run}/records": self._records,
        }

    async def _list(self, request: Request) -> Response:
        return as_json(self._ledger.runs())

    async def _one(self, request: Request) -> Response:
        return as_json(self._ledger.run(request.path_params["run"]))

    async def _records(self, request: Request) -> Response:
        return as_json({"next": 0, "records": []})

    async def _hypotheses(self, request: Request) -> Response:
        return as_json(self._ledger.hypotheses())
