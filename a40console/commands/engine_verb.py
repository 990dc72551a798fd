"""A verb of `a40console engine`: begun in the service, followed to its end, told in one line."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from a40console.commands.acting import act, print_result, timeout_option
from a40console.commands.consent import Before
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.number import NumberRange
from a40console.commands.progress import Progress
from a40console.commands.running import ensure_service, reach_engine
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


def drain_option_that(meaning: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--drain S`, given to the function as `drain_s`, with what it means there."""
    return click.option("--drain", "drain_s", type=NumberRange(min=0), metavar="S", help=meaning)


drain_option = drain_option_that(
    "Seconds that running requests may take to end; then they are cut."
)


def drain_argument(seconds: float | None) -> dict[str, str]:
    """The argument for `--drain`, where it was given."""
    return {} if seconds is None else {"drain_s": f"{seconds:g}"}


def do_verb(
    invocation: Invocation,
    verb: str,
    arguments: dict[str, str],
    waiting: Waiting,
    *,
    done: str,
    starts: bool = False,
    before: Before | None = None,
) -> None:
    """Run one verb and tell its result.

    Args:
        invocation: How we were called.
        verb: The command's id.
        arguments: The command's.
        waiting: How long, and how it is told.
        done: What is said of its end where it says nothing itself.
        starts: With a service started for it if need be.
        before: Says what it costs, and asks where somebody loses by it.
    """

    async def run() -> CommandResult:
        reach = ensure_service if starts else reach_engine
        async with await reach(invocation.paths, quiet=waiting.as_json) as client:
            if before is not None:
                await before(client)
            if waiting.no_wait:
                return await client.start(verb, **arguments)
            progress = Progress(quiet=waiting.as_json)
            return await act(
                client, verb, timeout_s=waiting.timeout_s, progress=progress, **arguments
            )

    result = asyncio.run(run())
    text = f"{verb} has begun; its id is {result.id}." if waiting.no_wait else done
    print_result(result, text, as_json=waiting.as_json)
