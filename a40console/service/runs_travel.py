"""Runs that come here, leave from here, and are kept a second time: put together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from a40console.config import RunsSettings
from a40console.link.pulled import PulledRuns
from a40console.operations.roles import Recorder
from a40console.paths import Paths
from a40console.service.pod_environment import with_pod
from a40console.service.run_ledger import RunLedger
from a40console.service.runs_arriving import RunsArriving
from a40console.service.runs_home import RunsHome, home_of_runs
from a40console.service.runs_leaving import RunsLeaving

BEGIN_S = 3.0
"""How long the service's start may be held up by that; the rest is taken in meanwhile."""

Endpoint = Callable[[Request], Awaitable[Response]]


class RunsTravel:
    """What the service does so that runs outlive their machine."""

    def __init__(
        self, paths: Paths, settings: RunsSettings, ledger: RunLedger, record: Recorder
    ) -> None:
        environment = with_pod(os.environ)
        self._arriving = RunsArriving(PulledRuns(paths.pulled), ledger, record)
        folder = home_of_runs(settings, environment, paths.state)
        self._home = (
            None
            if folder is None
            else RunsHome(folder, outlives=settings.home != "auto", ledger=ledger, record=record)
        )
        self._leaving = RunsLeaving(
            ledger=ledger,
            folders=paths.runs,
            settings=settings,
            volume=lambda: "" if self._home is None else str(self._home.folder),
            environment=environment,
        )

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET; they stand before `/v1/runs/{run}`."""
        return self._leaving.reads()

    async def begin(self) -> None:
        """Take in what lies there, so that whoever started the service for it finds it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_S):
                await self._arriving.look()

    async def run(self) -> None:
        """Take in and keep for ever; ends when cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._arriving.run())
            if self._home is not None:
                group.create_task(self._home.run())
