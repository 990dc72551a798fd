"""`a40console engine`: what an operator does to the engine, each verb a command of the service."""

from __future__ import annotations

import functools

import click

from a40console.commands import engine_controls
from a40console.commands.asking import yes_option
from a40console.commands.consent import Before, ask_those_who_lose, consent
from a40console.commands.engine_history import history
from a40console.commands.engine_logs import logs
from a40console.commands.engine_verb import (
    Waiting,
    do_verb,
    drain_argument,
    drain_option,
    waiting_options,
)
from a40console.commands.install import install, uninstall
from a40console.commands.invocation import Invocation
from a40console.commands.output import printable
from a40console.commands.profile_apply import apply
from a40console.commands.runs_left import runs_left
from a40console.commands.switch_cost import costs_of_switch, tell_cost
from a40console.errors import UsageError
from a40console.model.turning import told
from a40console.service.client import ServiceClient

MOST_DEPTH_DIGITS = 6
"""The service knows the least depth that is too deep; more digits are no number of tokens."""


@click.group()
def command() -> None:
    """Start, stop and steer the engine."""


command.add_command(apply)
command.add_command(history)
command.add_command(logs)
command.add_command(install)
command.add_command(uninstall)
for _verb in engine_controls.VERBS:
    command.add_command(_verb)


@command.command()
@click.argument("profile", required=False)
@waiting_options
@click.pass_obj
def start(invocation: Invocation, *, profile: str | None, waiting: Waiting) -> None:
    """Start the engine with PROFILE, or with the default one; starts the service if need be."""
    arguments = {} if profile is None else {"profile": profile}
    do_verb(invocation, "engine.start", arguments, waiting, done="The engine serves.", starts=True)


@command.command()
@yes_option
@waiting_options
@click.pass_obj
def stop(invocation: Invocation, *, yes: bool, waiting: Waiting) -> None:
    """Stop the engine, and verify that nothing of it is left.

    On a rented pod it names the runs that no other machine has. Where a request runs or is held it
    asks; without a terminal it then needs --yes.
    """
    done = "The engine has stopped; nothing of it is left."
    asks = consent("engine.stop", yes=yes, as_json=waiting.as_json, costs=runs_left)
    do_verb(invocation, "engine.stop", {}, waiting, done=done, before=asks)


@command.command()
@drain_option
@yes_option
@waiting_options
@click.pass_obj
def restart(invocation: Invocation, *, drain_s: float | None, yes: bool, waiting: Waiting) -> None:
    """Start the engine again with the same profile; clients wait meanwhile.

    Where a request runs or is held it asks; without a terminal it then needs --yes.
    """
    done = "The engine serves again."
    asks = consent("engine.restart", yes=yes)
    arguments = drain_argument(drain_s)
    do_verb(invocation, "engine.restart", arguments, waiting, done=done, before=asks)


@command.command()
@click.argument("profile")
@click.option("--cost", "only_cost", is_flag=True, help="Say what it would cost, and do nothing.")
@drain_option
@yes_option
@waiting_options
@click.pass_obj
def switch(
    invocation: Invocation,
    *,
    profile: str,
    only_cost: bool,
    drain_s: float | None,
    yes: bool,
    waiting: Waiting,
) -> None:
    """Let PROFILE serve; clients wait meanwhile, and a start that fails rolls back.

    What it costs is said first. Where a request runs or is held it asks; without a terminal it
    then needs --yes.
    """
    drain = drain_argument(drain_s)
    if only_cost:
        tell_cost(invocation, profile, drain, as_json=waiting.as_json)
        return
    done = f"The engine serves {profile}."
    arguments = {"profile": profile} | drain
    costs = functools.partial(costs_of_switch, profile, drain)
    asks = consent("engine.switch", yes=yes, as_json=waiting.as_json, costs=costs)
    do_verb(invocation, "engine.switch", arguments, waiting, done=done, starts=True, before=asks)


@command.command()
@click.argument("mode", metavar="on|off|N")
@drain_option
@yes_option
@waiting_options
@click.pass_obj
def speculation(
    invocation: Invocation, *, mode: str, drain_s: float | None, yes: bool, waiting: Waiting
) -> None:
    """Turn speculative decoding on or off, or set its depth to N tokens.

    It is done while the engine runs where that can; where it takes a restart, that and what the
    last start took are said first, and clients wait meanwhile. Where a request runs or is held a
    restart asks; without a terminal it then needs --yes.
    """
    if mode not in ("on", "off") and not _is_depth(mode):
        raise UsageError(
            f"Speculation cannot be set to {mode!r}", remedy="Say on, off, or a depth such as 24."
        )
    arguments = {"mode": mode} | drain_argument(drain_s)
    asks = _turning(mode, yes=yes, as_json=waiting.as_json)
    do_verb(
        invocation,
        "engine.speculation",
        arguments,
        waiting,
        done=f"Speculation: {mode}.",
        before=asks,
    )


def _is_depth(mode: str) -> bool:
    return mode.isascii() and mode.isdigit() and len(mode) <= MOST_DEPTH_DIGITS and int(mode) > 0


def _turning(mode: str, *, yes: bool, as_json: bool) -> Before:
    """Says how it would be done; only a restart asks."""

    async def before(client: ServiceClient) -> None:
        way = await client.speculation_way(mode)
        for sentence in () if as_json else told(way):
            click.echo(printable(sentence), err=True)
        if way.how == "restart" and not yes:
            await ask_those_who_lose(client, "engine.speculation")

    return before


@command.command()
@waiting_options
@click.pass_obj
def clean(invocation: Invocation, *, waiting: Waiting) -> None:
    """End exactly the processes that an engine left behind."""
    do_verb(invocation, "engine.clean", {}, waiting, done="Nothing of an engine is left.")
