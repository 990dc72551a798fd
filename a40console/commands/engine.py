"""`a40console engine`: what an operator does to the engine, each verb a command of the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import click

from a40console.commands import engine_controls
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
from a40console.commands.profile_apply import apply
from a40console.commands.switch_cost import tell_cost
from a40console.errors import UsageError
from a40console.model.turning import way_in_words
from a40console.service.client import ServiceClient


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
@waiting_options
@click.pass_obj
def stop(invocation: Invocation, *, waiting: Waiting) -> None:
    """Stop the engine, and verify that nothing of it is left."""
    done = "The engine has stopped; nothing of it is left."
    do_verb(invocation, "engine.stop", {}, waiting, done=done)


@command.command()
@drain_option
@waiting_options
@click.pass_obj
def restart(invocation: Invocation, *, drain_s: float | None, waiting: Waiting) -> None:
    """Start the engine again with the same profile; clients wait meanwhile."""
    done = "The engine serves again."
    do_verb(invocation, "engine.restart", drain_argument(drain_s), waiting, done=done)


@command.command()
@click.argument("profile")
@click.option("--cost", "only_cost", is_flag=True, help="Say what it would cost, and do nothing.")
@drain_option
@waiting_options
@click.pass_obj
def switch(
    invocation: Invocation,
    *,
    profile: str,
    only_cost: bool,
    drain_s: float | None,
    waiting: Waiting,
) -> None:
    """Let PROFILE serve; clients wait meanwhile, and a start that fails rolls back."""
    if only_cost:
        tell_cost(invocation, profile, as_json=waiting.as_json)
        return
    done = f"The engine serves {profile}."
    arguments = {"profile": profile} | drain_argument(drain_s)
    do_verb(invocation, "engine.switch", arguments, waiting, done=done, starts=True)


@command.command()
@click.argument("mode", metavar="on|off|N")
@drain_option
@waiting_options
@click.pass_obj
def speculation(
    invocation: Invocation, *, mode: str, drain_s: float | None, waiting: Waiting
) -> None:
    """Turn speculative decoding on or off, or set its depth to N tokens.

    It is done while the engine runs where that can; where it takes a restart, that and what the
    last start took are said first, and clients wait meanwhile.
    """
    if mode not in ("on", "off") and not (mode.isascii() and mode.isdigit() and int(mode) > 0):
        raise UsageError(
            f"Speculation cannot be set to {mode!r}", remedy="Say on, off, or a depth such as 24."
        )
    arguments = {"mode": mode} | drain_argument(drain_s)
    done = f"Speculation: {mode}."
    do_verb(
        invocation, "engine.speculation", arguments, waiting, done=done, before=_what_it_takes(mode)
    )


def _what_it_takes(mode: str) -> Callable[[ServiceClient], Awaitable[str]]:
    async def told(client: ServiceClient) -> str:
        return way_in_words(await client.speculation_way(mode))

    return told


@command.command()
@waiting_options
@click.pass_obj
def clean(invocation: Invocation, *, waiting: Waiting) -> None:
    """End exactly the processes that an engine left behind."""
    do_verb(invocation, "engine.clean", {}, waiting, done="Nothing of an engine is left.")
