"""What the service offers to machines that copy its runs, and what no other machine has yet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from a40console.config import RunsSettings
from a40console.model.run_copies import NotCopied
from a40console.service.pod_environment import with_pod
from a40console.service.query import as_json
from a40console.service.run_folder import run_folders
from a40console.service.run_ledger import RunLedger

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsLeaving:
    """Answers what may be copied from here."""

    ledger: RunLedger
    folders: Path
    """Where runs are that have not ended."""

    settings: RunsSettings
    volume: Callable[[], str]
    """The folder that holds a second copy on a volume; empty where there is none."""

    environment: Mapping[str, str] = field(default_factory=lambda: with_pod(os.environ))

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET; they stand before `/v1/runs/{id}`."""
        return {"/v1/runs/leaving": self._leaving, "/v1/runs/not-copied": self._not_copied}

    async def _leaving(self, request: Request) -> Response:
        """Ids and versions; nothing again for whoever knows them by their mark."""
        machine = request.query_params.get("machine", "")
        runs = await self.ledger.ask(lambda ledger: ledger.leaving(machine))
        told = [{"id": run.id, "version": str(run.revision), "copied": run.copied} for run in runs]
        ended = {run.id for run in runs}
        unended = [
            folder.id
            for folder in run_folders(self.folders)
            if not folder.is_kept and folder.id not in ended
        ]
        mark = hashlib.sha256(json.dumps([told, unended]).encode()).hexdigest()[:16]
        known = request.query_params.get("known") == mark
        return as_json({"mark": mark, "runs": None if known else told, "unended": unended})

    async def _not_copied(self, request: Request) -> Response:
        return as_json(
            NotCopied(
                ids=await self.ledger.ask(lambda ledger: ledger.not_copied()),
                passing=is_passing(self.settings, self.environment),
                pull=f"a40console runs pull --ssh {reached_by(self.environment)}",
                volume=self.volume(),
            )
        )


def is_passing(settings: RunsSettings, environment: Mapping[str, str]) -> bool:
    """Whether this machine will be gone with all that is on it: a rented pod, if not told else."""
    if settings.passing == "auto":
        return bool(environment.get("RUNPOD_POD_ID"))
    return settings.passing == "yes"


def reached_by(environment: Mapping[str, str]) -> str:
    """How this machine is called by ssh, as far as it knows itself."""
    user = environment.get("USER") or environment.get("LOGNAME") or "root"
    host, door = environment.get("RUNPOD_PUBLIC_IP"), environment.get("RUNPOD_TCP_PORT_22")
    if not host:
        return f"{user}@THIS-HOST"
    return f"{user}@{host}:{door}" if door else f"{user}@{host}"
