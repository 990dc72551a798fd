"""The engine's operator, put together from its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from a40console.config import ServiceSettings
from a40console.engines.capability import gpu_present
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.operations.asking import EngineAsk
from a40console.operations.canary import CanaryReport, run_canary
from a40console.operations.ending import explain
from a40console.operations.memory import GpuMemory
from a40console.operations.operator import Engineering, EngineOperator
from a40console.operations.past_starts import PastStarts
from a40console.operations.preflight import Preflight
from a40console.operations.roles import Admission, Recorder
from a40console.operations.room import Room
from a40console.operations.start import EngineStarter
from a40console.operations.status import EngineStatus
from a40console.operations.switch import Canary
from a40console.operations.watch import RestartPolicy
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles
from a40console.telemetry.host import HostSampler
from a40console.telemetry.nvml import GpuSampler


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operator finds in the service."""

    paths: Paths
    settings: ServiceSettings
    gpu: GpuSampler
    host: HostSampler
    threads: Callable[[], int]
    past: PastStarts
    recorder: Recorder
    admission: Admission


def engine_operator(around: Surroundings) -> EngineOperator:
    """The operator of this machine's engine."""
    paths, settings = around.paths, around.settings
    starter = EngineStarter(
        paths=paths,
        memory=GpuMemory(around.gpu.view, expected=gpu_present(), wait_s=settings.gpu_wait_s),
        threads=around.threads,
        recorder=around.recorder,
        past=around.past,
        clock=time.monotonic,
    )

    room = Room(paths, around.gpu.view, lambda: _host_bytes(around.host))

    return EngineOperator(
        paths=paths,
        find_profile=lambda name: load_profiles(paths.profiles).find(name),
        works=Engineering(
            starter=starter,
            admission=around.admission,
            canary=canary_of(paths),
            preflight=Preflight(paths, starter, around.recorder, room.demand),
            policy=RestartPolicy(enabled=settings.restart_engine),
            explain=lambda process, status: explain(process, status, time.monotonic()),
        ),
        recorder=around.recorder,
        clock=time.monotonic,
        drain_s=settings.drain_s,
    )


def canary_of(paths: Paths) -> Canary:
    """Tries the engine of a status, past the gateway."""

    async def canary(status: EngineStatus) -> CanaryReport:
        run = status.run
        if run is None:
            return CanaryReport(passed=True, checks=(), seconds=0.0)
        async with EngineAsk(run.endpoint(paths.engine_runs)) as ask:
            return await run_canary(ask, run.profile)

    return canary


def _host_bytes(host: HostSampler) -> int | Missing:
    limit = host.view().memory_limit_bytes
    found = number(limit)
    reason = limit.reason if isinstance(limit, Missing) else "not read yet"
    return Missing(reason) if found is None else int(found)


def note_kept(record: Recorder, asked: str | None, running: Profile | None) -> None:
    """Write down that another profile was asked for than the one that is found running."""
    if asked is not None and running is not None and running.name != asked:
        text = f"{asked} was asked for, but {running.name} runs and is kept"
        record("engine.kept", text, "warn", {"remedy": "a40console engine switch"})
