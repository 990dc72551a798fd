"""Watches an engine that is not ours, without a service: its answers alone make the snapshots."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from a40console import __version__
from a40console.advisor.advice import FindingClock
from a40console.errors import UsageError
from a40console.model.engine import Endpoint, EngineState
from a40console.model.event import Severity
from a40console.model.figures import Missing
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import Host, Snapshot
from a40console.service.assemble import Moment, Parts, assemble, gpus_of
from a40console.service.cost import UNPAID
from a40console.service.engine_block import foreign_block
from a40console.service.journal import now
from a40console.service.self_report import self_report
from a40console.service.view_evidence import view_evidence
from a40console.telemetry.host import HostSampler
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView

log = logging.getLogger(__name__)

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


async def snapshots(
    url: str, *, api_key: str | None = None, interval_s: float = 1.0
) -> AsyncIterator[Snapshot]:
    """Snapshots of the engine at a URL, the first after two readings so that rates are there.

    Raises:
        UsageError: If the URL is none.
    """
    host = _host_of(url)
    sampler = EngineSampler(
        kind="foreign",
        endpoint=Endpoint(url.rstrip("/"), api_key=api_key),
        period_s=interval_s,
        on_event=_log_event,
    )
    machine = HostSampler(disk_path=Path(tempfile.gettempdir()), engine_pids=lambda: ())
    findings = FindingClock(rise_s=0.0)  # the first look may be the only one
    began_s, seq = time.monotonic(), 0
    reading = asyncio.create_task(sampler.run())
    try:
        await asyncio.sleep(min(2 * interval_s + 0.5, 3.0))
        while True:
            seq += 1
            machine.sample()
            view = sampler.view((), ())
            local = machine.view() if host in _LOOPBACK else _elsewhere()
            yield assemble(
                _parts(url, view, local, (seq, time.monotonic() - began_s, interval_s)), findings
            )
            await asyncio.sleep(interval_s)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def _parts(url: str, view: EngineView, host: Host, moment: tuple[int, float, float]) -> Parts:
    seq, uptime_s, interval_s = moment
    reachable = view.progress.health_status == 200 or any(s.state == "ok" for s in view.sources)
    state = EngineState.SERVING if reachable else EngineState.ABSENT
    return Parts(
        moment=Moment(
            seq=seq,
            at=now(),
            monotonic_s=time.monotonic(),
            interval_s=interval_s,
            events_last_id=0,
        ),
        service=ServiceInfo(
            version=__version__, pid=os.getpid(), uptime_s=uptime_s, home="", read_only=True
        ),
        engine=foreign_block(
            kind=view.kind,
            url=url,
            report=self_report(view),
            reachable=reachable,
            state=EngineState.ASLEEP if view.asleep is True else state,
        ),
        view=view,
        gateway=None,
        host=host,
        gpus=gpus_of(view, Missing("the engine's GPUs are not read from here")),
        sources=(),
        profile=None,
        account=UNPAID,
        evidence=view_evidence(view),
    )


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{url!r} is not the address of an engine",
            remedy="Write it like http://127.0.0.1:8000",
        )
    return parts.hostname


def _elsewhere() -> Host:
    """No host figure at all; the origin is the one that claims no limit."""
    why = Missing("the engine runs on another machine")
    return Host(
        source="none",
        age_s=why,
        cpu_quota_vcpu=why,
        quota_origin="host",
        cpu_used_vcpu=why,
        throttled_ms_per_s=why,
        busiest_engine_thread=why,
        memory_used_bytes=why,
        memory_limit_bytes=why,
        shm_used_bytes=why,
        shm_total_bytes=why,
        disk_free_bytes=why,
    )


def _log_event(kind: str, text: str, severity: Severity, data: Mapping[str, str]) -> None:
    log.info("%s (%s): %s %s", kind, severity, text, dict(data))
