"""`a40console stop`: end the service, and with `--engine` the engine too."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from a40console.commands.acting import (
    deadline_after,
    print_result,
    refuse_failure,
    timeout_option,
)
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note
from a40console.commands.running import engine_lives, is_locked, lock_holder, reach_engine
from a40console.commands.runs_left import runs_left
from a40console.errors import NoServiceError, RefusedError, TimedOutError
from a40console.files import holder_told, holds_open
from a40console.model.control import CommandResult
from a40console.paths import Paths
from a40console.service.client import ServiceClient
from a40console.service.supervisor import KILL_AFTER_S

COMMAND = "service.stop"
POLL_S = 0.1
TERMINATED_AFTER_S = KILL_AFTER_S + 5.0
"""When a service that was signalled is gone, its stuck worker killed by its supervisor."""


@click.command()
@click.option("--engine", is_flag=True, help="Stop the engine as well.")
@timeout_option("Seconds to wait for it")
@json_option
@click.pass_obj
def command(
    invocation: Invocation, *, engine: bool, timeout_s: float | None, as_json: bool
) -> None:
    """Stop the service; the engine keeps running unless --engine is given."""
    result = asyncio.run(_stop(invocation.paths, engine=engine, timeout_s=timeout_s))
    left = result.result.get("report") or _left(invocation.paths)
    result = replace(result, result={**result.result, "report": f"The service has stopped; {left}"})
    print_result(result, "", as_json=as_json)


def _left(paths: Paths) -> str:
    """What runs now, where the service did not tell before it ended."""
    if paths.remote or not _readable(paths.engine_runs):
        return "whether an engine runs is not known"
    return "the engine keeps running" if engine_lives(paths) else "no engine runs"


def _readable(folder: Path) -> bool:
    return not folder.exists() or os.access(folder, os.R_OK | os.X_OK)


async def _stop(paths: Paths, *, engine: bool, timeout_s: float | None) -> CommandResult:
    deadline = deadline_after(timeout_s)
    try:
        # Without hello: a service of another version must be stoppable too.
        return await _ask_to_stop(ServiceClient(paths.control_socket), paths, deadline, engine)
    except NoServiceError:
        if is_locked(paths):
            deaf = "its control socket is gone"
        elif engine and engine_lives(paths):
            return await _ask_to_stop(await reach_engine(paths), paths, deadline, engine)
        elif paths.remote or not _readable(paths.engine_runs):
            raise
        else:
            raise _nothing_to_stop(paths) from None
    except _DeafError as error:
        deaf = str(error)
    return await _terminate(paths, deaf, deadline, engine=engine)


def _nothing_to_stop(paths: Paths) -> NoServiceError:
    """No service runs; whether an engine does, and how that is stopped."""
    if engine_lives(paths):
        return NoServiceError(
            "No service runs, but the engine does",
            evidence=f"its record is in {paths.engine_runs}",
            remedy="Stop it with: a40console stop --engine",
        )
    return NoServiceError(
        "Nothing to stop: neither a service nor an engine runs",
        evidence=f"nothing answers at {paths.control_socket}, and no process of ours lives",
    )


class _DeafError(Exception):
    """The service answers, but not so that it could be told to stop."""


async def _ask_to_stop(
    client: ServiceClient, paths: Paths, deadline: float, engine: bool
) -> CommandResult:
    async with client:
        for sentence in await runs_left(client):
            note(sentence)
        try:
            started = await client.start(COMMAND, engine="yes" if engine else "no")
        except (RefusedError, TimedOutError) as error:
            raise _DeafError(f"{error.message}: {error.evidence}") from error
        return await _until_gone(client, paths, started, deadline)


async def _until_gone(
    client: ServiceClient, paths: Paths, started: CommandResult, deadline: float
) -> CommandResult:
    """Wait until nothing answers and the lock is free, so that another may start at once."""
    result = started
    while time.monotonic() < deadline:
        try:
            result = await client.result(started.id)
            refuse_failure(result)
        except NoServiceError:
            if not is_locked(paths):
                return replace(result, state="done")
        await asyncio.sleep(POLL_S)
    raise TimedOutError(
        "The service has not stopped in time",
        evidence=f"command {started.id} is {result.state}",
        remedy="It goes on; look again with: a40console status",
    )


async def _terminate(paths: Paths, deaf: str, deadline: float, *, engine: bool) -> CommandResult:
    """End a service that takes no commands by the signal it stops on; engines outlive it."""
    pid = lock_holder(paths)
    if engine or pid is None or not holds_open(pid, paths.service_lock):
        raise RefusedError(
            "A service runs but takes no commands",
            evidence=f"{deaf}; {holder_told(paths.service_lock)} holds {paths.service_lock}",
            remedy="End it with: a40console stop, without --engine" if engine else "End it by hand",
        )
    os.kill(pid, signal.SIGTERM)
    hopeless_at_s = time.monotonic() + TERMINATED_AFTER_S
    while is_locked(paths):
        if time.monotonic() > hopeless_at_s:
            left = " ".join(map(str, service_processes(pid, paths)))
            raise TimedOutError(
                f"The service, process {pid}, does not stop",
                evidence=deaf,
                remedy=f"End it with: kill -9 {left}",
            )
        if time.monotonic() > deadline:
            raise TimedOutError(
                f"The service, process {pid}, has not stopped in time",
                evidence=deaf,
                remedy=f"It is told to, and killed {KILL_AFTER_S:.0f} s after that; "
                "look again with: a40console status",
            )
        await asyncio.sleep(POLL_S)
    return CommandResult(command=COMMAND, id="", state="done", result={"terminated": deaf})


def service_processes(supervisor: int, paths: Paths) -> list[int]:
    """What must end for the lock to be free: the supervisor first, or it starts another worker."""
    found = [supervisor]
    with suppress(OSError, ValueError):
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        found += [pid for pid in map(int, children) if holds_open(pid, paths.service_lock)]
    return found
