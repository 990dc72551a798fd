"""`a40console env`: what a client must be told, ready for `eval` or to paste."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from math import isinf

import click

from a40console.commands.acting import deadline_after, timeout_option
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import (
    note,
    print_json,
    printable,
    stderr_is_terminal,
    stdout_is_terminal,
)
from a40console.commands.running import POLL_S, connect
from a40console.errors import NoServiceError, RefusedError, TimedOutError, UsageError
from a40console.model.client_lines import FORMS, Form, at_address, client_lines
from a40console.model.control import ClientEnvironment
from a40console.model.first_request import Arrivals, sentences
from a40console.paths import Paths
from a40console.service.client import ServiceClient


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be printed."""

    form: Form
    kind: str | None
    addresses: bool
    as_json: bool


_KINDS = ("loopback", "link", "tunnel", "network", "tcp", "proxy")


@click.command()
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    default="sh",
    help="For which shell, or as Claude Code's settings file.",
)
@click.option(
    "--address",
    "kind",
    type=click.Choice(_KINDS),
    help="By which address the client comes; --addresses lists them.",
)
@click.option("--addresses", is_flag=True, help="List how the gateway is reached, and its limits.")
@click.option("--wait", is_flag=True, help="Wait for a first request and say what it is.")
@timeout_option("Give up waiting after S seconds")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    form: Form,
    kind: str | None,
    addresses: bool,
    wait: bool,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """The client's environment: eval "$(a40console env)". Holds the gateway's token."""
    if timeout_s is not None and not wait:
        raise UsageError("--timeout goes with --wait")
    asyncio.run(
        _tell(
            invocation.paths,
            Wanted(form, kind, addresses, as_json),
            wait_until=deadline_after(timeout_s) if wait else None,
        )
    )


async def _tell(paths: Paths, wanted: Wanted, *, wait_until: float | None) -> None:
    async with await connect(paths) as client:
        arrivals = Arrivals()
        if wait_until is not None:
            arrivals.look(await client.snapshot())
        _print(await client.environment(), wanted)
        if wait_until is not None:
            await _wait(client, arrivals, wait_until, over_link=bool(paths.remote))


def _print(environment: ClientEnvironment, wanted: Wanted) -> None:
    if wanted.addresses:
        _print_addresses(environment, as_json=wanted.as_json)
        return
    variables = environment.variables
    if wanted.kind is not None:
        variables = at_address(variables, _url(environment, wanted.kind))
    if wanted.as_json:
        print_json(variables)
        return
    click.echo(client_lines(variables, wanted.form), nl=False)
    if not (stdout_is_terminal() or stderr_is_terminal()):
        return  # nobody reads what else is worth knowing
    for sentence in environment.advice:
        note(sentence)


def _url(environment: ClientEnvironment, kind: str) -> str:
    """The address of this kind.

    Raises:
        RefusedError: If there is none, or it is closed.
    """
    found = next((way for way in environment.addresses if way.kind == kind), None)
    if found is None:
        known = ", ".join(way.kind for way in environment.addresses)
        raise RefusedError(f"The gateway has no {kind} address", evidence=f"it has: {known}")
    if found.refused:
        raise RefusedError(f"{found.url} leads nowhere", evidence=found.refused)
    if found.limit:
        note(f"{found.url}: {found.limit}")
    return found.url


def _print_addresses(environment: ClientEnvironment, *, as_json: bool) -> None:
    if as_json:
        print_json({"addresses": environment.addresses})
        return
    for way in environment.addresses:
        click.echo(printable(f"{way.kind:<9} {way.url}   {way.text}"))
        for sentence in (way.refused, way.limit):
            if sentence:
                click.echo(printable(f"{'':<9} {sentence}"))


async def _wait(
    client: ServiceClient, arrivals: Arrivals, until_s: float, *, over_link: bool
) -> None:
    """Tell what comes first.

    Raises:
        TimedOutError: If nothing came.
        NoServiceError: If the service of this machine ended; a link that is cut is waited for.
    """
    note("Waiting for a request …")
    try:
        async with asyncio.timeout(None if isinf(until_s) else until_s - time.monotonic()):
            while True:
                try:
                    await _first(client, arrivals)
                except NoServiceError as error:
                    if not over_link:
                        raise
                    note(printable(f"{error.message}. Waiting all the same …"))
                    await _until_it_answers(client)
                else:
                    return
    except TimeoutError as error:
        raise TimedOutError(
            "No request came",
            remedy="Is the client started from the shell that has these lines?",
        ) from error


async def _first(client: ServiceClient, arrivals: Arrivals) -> None:
    async with aclosing(client.snapshots()) as snapshots:
        async for snapshot in snapshots:
            if session := arrivals.look(snapshot):
                for sentence in sentences(await client.session(session)):
                    note(printable(sentence))
                return


async def _until_it_answers(client: ServiceClient) -> None:
    while True:
        await asyncio.sleep(POLL_S)
        with suppress(NoServiceError):
            await client.hello()
            return
