"""What must hold before anything stops for a profile: seen to while the old one serves.

A switch that cannot succeed costs the clients nothing that way.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from a40console.engines import command
from a40console.engines.capability import find_program
from a40console.engines.command import Site, plan
from a40console.engines.transfer import TransferRate
from a40console.errors import ConsoleError, RefusedError
from a40console.model.figures import Missing
from a40console.model.profile import Profile
from a40console.operations.flag_check import demand_flags
from a40console.operations.ladder import placed, rungs
from a40console.operations.models import ModelStore, StoredModel
from a40console.operations.roles import Recorder, Starter, Tell
from a40console.operations.status import EngineStatus
from a40console.operations.words import transfer_in_words
from a40console.paths import Paths

SHARED_MEMORY_BYTES = 256 * 1024 * 1024
"""Workers of one engine hand tensors and NCCL's messages through it."""

FETCHED = ("missing", "partial")
_PLACES = ("/", "./", "../", "~")
"""How a model's name begins that can only be a place on this disk."""


Outcome = Literal["passed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was seen to before a switch."""

    name: str
    outcome: Outcome
    evidence: str


class Preflight:
    """Looks through what a start will need.

    Args:
        paths: Where our own files lie.
        starter: Knows whether this machine can run a profile.
        recorder: Writes what was seen.
        memory: Sees that the GPU's memory will do; raises RefusedError where it will not.
    """

    def __init__(
        self,
        paths: Paths,
        starter: Starter,
        recorder: Recorder,
        memory: Callable[[Profile], Coroutine[Any, Any, Finding]] | None = None,
    ) -> None:
        self._paths = paths
        self._starter = starter
        self._record = recorder
        self._memory = memory

    async def demand(self, profile: Profile, status: EngineStatus, tell: Tell) -> None:
        """See to everything that can be known ahead, and fetch the model where it is not here.

        Args:
            profile: What is to start.
            status: Of the engine that serves meanwhile.
            tell: Takes how far it is.

        Raises:
            RefusedError: If the start cannot succeed; nothing was touched.
        """
        tell("looking ahead")
        await self._starter.check(profile)
        found = [Finding("machine", "passed", "the engine's program is here, the disk takes it")]
        found.append(await asyncio.to_thread(_command_line, profile, self._paths))
        told, seen = await asyncio.to_thread(demand_flags, profile, self._paths)
        found.append(Finding("flags", "passed" if told else "skipped", seen))
        found.append(await asyncio.to_thread(_shared_memory, profile))
        found.append(await self._model(profile, status, tell))
        if self._memory is not None:
            found.append(await self._memory(profile))
        self._record(
            "engine.preflight",
            f"{profile.name} can be started, as far as can be told ahead",
            data={each.name: f"{each.outcome}: {each.evidence}" for each in found},
        )

    async def foresee(self, profile: Profile) -> None:
        """See to what can be told at once: nothing is fetched, written down or run for it.

        Raises:
            RefusedError: If the start cannot succeed.
        """
        await self._starter.check(profile)
        await asyncio.to_thread(_command_line, profile, self._paths)
        await asyncio.to_thread(demand_flags, profile, self._paths, ask=False)
        await asyncio.to_thread(_shared_memory, profile)
        if profile.kind not in ("sim", "attached") and not profile.fetched_by_engine:
            store = ModelStore(self._paths, {profile.name: profile}, _environment(profile))
            model = await asyncio.to_thread(store.find, profile.name)
            if not _can_be_fetched(model):
                _refuse_unusable(model, profile)
        if self._memory is not None:
            await self._memory(profile)

    async def _model(self, profile: Profile, status: EngineStatus, tell: Tell) -> Finding:
        """The model on this disk, fetched if need be."""
        if profile.kind == "sim":
            return Finding("model", "skipped", "a simulated engine has none")
        if profile.kind == "attached":
            return Finding("model", "skipped", "it is the endpoint's")
        if profile.fetched_by_engine:
            return Finding("model", "skipped", f"llama-server itself fetches {profile.model}")
        store = ModelStore(self._paths, {profile.name: profile}, _environment(profile))
        model = await asyncio.to_thread(store.find, profile.name)
        if _can_be_fetched(model):
            model = await self._fetch(store, model, profile, status, tell)
        _refuse_unusable(model, profile)
        if model.state in FETCHED:
            return Finding("model", "skipped", f"{profile.model} is for the engine to find")
        return Finding("model", "passed", f"{model.name} is here ({model.state})")

    async def _fetch(
        self,
        store: ModelStore,
        model: StoredModel,
        profile: Profile,
        status: EngineStatus,
        tell: Tell,
    ) -> StoredModel:
        rate, loop = TransferRate(), asyncio.get_running_loop()
        serving = status.profile.name if status.profile and status.living else ""
        meanwhile = f"; {serving} serves meanwhile" if serving else ""
        self._record("model.fetching", f"{model.name} is fetched for {profile.name}{meanwhile}")

        def progress(done: int, whole: int) -> None:
            size = whole or Missing("the source does not say")
            tell(f"fetching {transfer_in_words(rate.read(loop.time(), done, size))}")

        fetched = await store.fetch(model, progress)
        self._record("model.fetched", f"{model.name} is here")
        return fetched


def _environment(profile: Profile) -> dict[str, str]:
    return {**os.environ, **profile.environment}


def _can_be_fetched(model: StoredModel) -> bool:
    return model.state in FETCHED and model.kind != "local"


def _refuse_unusable(model: StoredModel, profile: Profile) -> None:
    """Refuse a model that is damaged, or is not at the place on this disk that is named."""
    if model.state == "damaged":
        raise RefusedError(
            f"The model of {profile.name} is damaged",
            evidence=f"{model.path}: {model.detail}",
            remedy=f"Fetch it anew: a40console models fetch {profile.name}",
        )
    if model.state in FETCHED and profile.model.startswith(_PLACES):
        raise RefusedError(
            f"The model of {profile.name} is not here",
            evidence=f"{model.path}: {model.detail or model.state}",
            remedy="Put it there, or name a repository of the hub in the profile.",
        )


def _command_line(profile: Profile, paths: Paths) -> Finding:
    """Every rung's command line can be written."""
    found = find_program(profile, os.environ, paths.environments)
    site = Site(
        python=sys.executable,
        embedded_script=Path(command.__file__).with_name("embedded.py"),
        socket_path=paths.runtime / "engine.sock",
        port=1,
        executable=found.path if found else None,
    )
    for rung in range(rungs(profile)):
        try:
            plan(placed(profile, rung), site)
        except ConsoleError as error:
            where = f" (placement {rung})" if rung else ""
            raise RefusedError(
                f"{error.message}{where}", evidence=error.evidence, remedy=error.remedy
            ) from error
    return Finding("command line", "passed", f"{rungs(profile)} to try")


def _shared_memory(profile: Profile) -> Finding:
    """Room in /dev/shm where an engine has several workers."""
    workers = _workers(profile)
    try:
        disk = os.statvfs("/dev/shm")  # noqa: S108 - it is looked at, not written to
    except OSError as error:
        return Finding("shared memory", "skipped", error.strerror or str(error))
    free = disk.f_bavail * disk.f_frsize
    told = f"{free / 2**20:,.0f} MiB of /dev/shm are free"
    if workers < 2:
        return Finding("shared memory", "skipped", f"one worker needs none; {told}")
    if free < SHARED_MEMORY_BYTES:
        raise RefusedError(
            f"{profile.name} has {workers} workers, and too little shared memory",
            evidence=f"{told}, {SHARED_MEMORY_BYTES / 2**20:,.0f} MiB are needed",
            remedy="Free /dev/shm, or start the container with more (docker run --shm-size).",
        )
    return Finding("shared memory", "passed", told)


_WORKERS = {"--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp"}


def _workers(profile: Profile) -> int:
    """How many processes an engine divides its model among."""
    count = profile.tensor_parallel or 1
    for number in _values(profile.arguments):
        count *= number
    return count


def _values(arguments: tuple[str, ...]) -> Iterator[int]:
    for word, after in zip_longest(arguments, arguments[1:], fillvalue=""):
        flag, equals, value = word.replace("_", "-").partition("=")
        value = value if equals else after
        if flag in _WORKERS and value.isascii() and value.isdecimal():
            yield max(1, int(value))
