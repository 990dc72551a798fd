"""Commands that act through the service: begun, followed with their phases, and told."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress

import click

from a40console.commands.number import NumberRange
from a40console.commands.output import print_json, printable
from a40console.commands.progress import Progress
from a40console.errors import ConsoleError, Exit, NoServiceError, TimedOutError
from a40console.model.control import CommandResult
from a40console.service.client import ServiceClient

POLL_S = 0.2
RESTART_GRACE_S = 10.0
"""A service that crashed is back within 5 s; its engine and the command's effect go on."""


def timeout_option(meaning: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--timeout S`; without it only the command's own end counts, for a start its profile's."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=NumberRange(min=0),
        metavar="S",
        help=f"{meaning}; as long as it takes where none is given.",
    )


def deadline_after(timeout_s: float | None) -> float:
    """The monotonic time at which the wait ends, infinite for None."""
    return math.inf if timeout_s is None else time.monotonic() + timeout_s


async def act(
    client: ServiceClient,
    command: str,
    *,
    timeout_s: float | None,
    progress: Progress,
    **arguments: str,
) -> CommandResult:
    """Begin a command and wait for its end, showing the engine's phases meanwhile.

    Raises:
        ConsoleError: The command's own trouble, with its exit code.
        NoServiceError: If the service goes away, or comes back without knowing the command.
        TimedOutError: If it still runs after `timeout_s`; it goes on.
    """
    result = await client.start(command, **arguments)
    deadline = deadline_after(timeout_s)
    with progress:
        while result.state == "running":
            if time.monotonic() > deadline:
                raise TimedOutError(
                    f"{command} is still running after {timeout_s:g} s",
                    evidence=f"command id {result.id}",
                    remedy="It goes on; watch it with: a40console status",
                )
            await asyncio.sleep(POLL_S)
            result = await _look(client, result)
            with suppress(ConsoleError):
                progress.show(await client.snapshot())
    refuse_failure(result)
    return result


async def _look(client: ServiceClient, started: CommandResult) -> CommandResult:
    """How the command is, through a restart of the service."""
    deadline = time.monotonic() + RESTART_GRACE_S
    while True:
        try:
            return await client.result(started.id)
        except NoServiceError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(POLL_S)
        except ConsoleError as error:
            if error.exit_code is not Exit.USAGE:
                raise
            raise NoServiceError(
                f"The service restarted while {started.command} ran",
                evidence=error.message,
                remedy="See what came of it with: a40console status",
            ) from error


def refuse_failure(result: CommandResult) -> None:
    """Raise the trouble of a command that did not succeed."""
    if result.trouble is not None:
        raise ConsoleError.from_trouble(result.trouble)
    if result.state in ("refused", "failed"):
        code = Exit.REFUSED if result.state == "refused" else Exit.BUG
        raise ConsoleError(f"{result.command} was {result.state}", exit_code=code)


def print_result(result: CommandResult, text: str, *, as_json: bool) -> None:
    """Tell what a command did: its JSON, or one line: its own report, else our text."""
    if as_json:
        print_json(
            {
                "command": result.command,
                "id": result.id,
                "result": result.result,
                "events": result.events,
            }
        )
        return
    facts = [f"{name}: {value}" for name, value in result.result.items() if name != "report"]
    click.echo(printable("   ".join([result.result.get("report") or text, *facts])))
