"""`a40console engine`: what an operator does to the engine, each verb a command of the service."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from a40console.commands.acting import act, print_result, timeout_option
from a40console.commands.engine_history import history
from a40console.commands.engine_logs import logs
from a40console.commands.install import install, uninstall
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.progress import Progress
from a40console.commands.running import ensure_service, reach_engine
from a40console.errors import UsageError
from a40console.model.control import CommandResult


@dataclass(frozen=True, slots=True)
class Waiting:
    """How a verb that takes its time was called."""

    timeout_s: float | None
    no_wait: bool
    as_json: bool


def waiting_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--timeout`, `--no-wait` and `--json`, given to the function as one value."""

    @functools.wraps(function)
    def collected(
        *positional: Any, timeout_s: float | None, no_wait: bool, as_json: bool, **others: Any
    ) -> None:
        function(*positional, waiting=Waiting(timeout_s, no_wait, as_json), **others)

    no_wait = click.option("--no-wait", is_flag=True, help="Begin it and return at once.")
    timeout = timeout_option("Seconds to wait for it, which goes on after them")
    return timeout(no_wait(json_option(collected)))


@click.group()
def command() -> None:
    """Start, stop and steer the engine."""


command.add_command(history)
command.add_command(logs)
command.add_command(install)
command.add_command(uninstall)


@command.command()
@click.argument("profile", required=False)
@waiting_options
@click.pass_obj
def start(invocation: Invocation, *, profile: str | None, waiting: Waiting) -> None:
    """Start the engine with PROFILE, or with the default one; starts the service if need be."""
    arguments = {} if profile is None else {"profile": profile}
    _do(invocation, "engine.start", arguments, waiting, done="The engine serves.", starts=True)


@command.command()
@waiting_options
@click.pass_obj
def stop(invocation: Invocation, *, waiting: Waiting) -> None:
    """Stop the engine, and verify that nothing of it is left."""
    done = "The engine has stopped; nothing of it is left."
    _do(invocation, "engine.stop", {}, waiting, done=done)


@command.command()
@waiting_options
@click.pass_obj
def restart(invocation: Invocation, *, waiting: Waiting) -> None:
    """Stop the engine and start it again with the same profile."""
    _do(invocation, "engine.restart", {}, waiting, done="The engine serves again.")


@command.command()
@click.argument("profile")
@waiting_options
@click.pass_obj
def switch(invocation: Invocation, *, profile: str, waiting: Waiting) -> None:
    """Run PROFILE instead; a start that fails rolls back to what served before."""
    done = f"The engine serves {profile}."
    _do(invocation, "engine.switch", {"profile": profile}, waiting, done=done, starts=True)


@command.command()
@click.argument("mode", metavar="on|off|N")
@waiting_options
@click.pass_obj
def speculation(invocation: Invocation, *, mode: str, waiting: Waiting) -> None:
    """Turn speculative decoding on or off, or set its depth to N tokens."""
    if mode not in ("on", "off") and not (mode.isascii() and mode.isdigit() and int(mode) > 0):
        raise UsageError(
            f"Speculation cannot be set to {mode!r}", remedy="Say on, off, or a depth such as 24."
        )
    _do(invocation, "engine.speculation", {"mode": mode}, waiting, done=f"Speculation: {mode}.")


@command.command()
@waiting_options
@click.pass_obj
def clean(invocation: Invocation, *, waiting: Waiting) -> None:
    """End exactly the processes that an engine left behind."""
    _do(invocation, "engine.clean", {}, waiting, done="Nothing of an engine is left.")


def _do(
    invocation: Invocation,
    verb: str,
    arguments: dict[str, str],
    waiting: Waiting,
    *,
    done: str,
    starts: bool = False,
) -> None:
    """Run one verb and tell its result; `starts`: with a service started for it if need be."""

    async def run() -> CommandResult:
        reach = ensure_service if starts else reach_engine
        async with await reach(invocation.paths, quiet=waiting.as_json) as client:
            if waiting.no_wait:
                return await client.start(verb, **arguments)
            progress = Progress(quiet=waiting.as_json)
            return await act(
                client, verb, timeout_s=waiting.timeout_s, progress=progress, **arguments
            )

    result = asyncio.run(run())
    text = f"{verb} has begun; its id is {result.id}." if waiting.no_wait else done
    print_result(result, text, as_json=waiting.as_json)
