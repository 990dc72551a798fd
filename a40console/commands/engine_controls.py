"""The verbs of `a40console engine` that steer one that runs: abort, cache, drain, sleep, probe."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.asking import confirm, yes_option
from a40console.commands.consent import asked
from a40console.commands.engine_verb import (
    Waiting,
    do_verb,
    drain_argument,
    drain_option,
    drain_option_that,
    waiting_options,
)
from a40console.commands.invocation import Invocation
from a40console.commands.number import NumberRange
from a40console.commands.output import printable
from a40console.commands.running import reach_engine
from a40console.errors import RefusedError
from a40console.model.command import BY_ID
from a40console.model.figures import Missing
from a40console.model.request_named import none_named, request_named
from a40console.model.snapshot import Slot
from a40console.tui.losses import known_of_level, lost_with


@click.command()
@click.argument("named", metavar="REQUEST|SLOT")
@yes_option
@waiting_options
@click.pass_obj
def abort(invocation: Invocation, *, named: str, yes: bool, waiting: Waiting) -> None:
    """End one request, by its id or by the number of the slot that it is in; the others go on.

    A slot is taken again within a second: by its number the request that is in it now is meant,
    and named before it is ended.
    """
    slot = asyncio.run(_named(invocation, named, quiet=waiting.as_json))
    confirm(BY_ID["request.abort"].confirm, yes=yes, lost=lost_with(slot))
    if yes and named != slot.request_id and not waiting.as_json:
        click.echo(printable(f"Slot {slot.slot} holds {slot.request_id}."), err=True)
    request = {"request": slot.request_id}
    do_verb(invocation, "request.abort", request, waiting, done="It is aborted.")


async def _named(invocation: Invocation, named: str, *, quiet: bool) -> Slot:
    """The request that is meant.

    Raises:
        RefusedError: If none runs by that name.
    """
    async with await reach_engine(invocation.paths, quiet=quiet) as client:
        slots = (await client.snapshot()).slots
    if isinstance(slots, Missing):
        raise RefusedError("No request can be named", evidence=slots.reason)
    if (slot := request_named(slots, named)) is not None:
        return slot
    message, evidence = none_named(slots, named)
    raise RefusedError(message, evidence=evidence, remedy="See what runs: a40console status")


@click.command("reset-cache")
@yes_option
@waiting_options
@click.pass_obj
def reset_cache(invocation: Invocation, *, yes: bool, waiting: Waiting) -> None:
    """Let the engine forget every prompt that it has kept; only while nothing runs."""
    asks = asked("cache.reset", yes=yes)
    do_verb(invocation, "cache.reset", {}, waiting, done="The prefix cache is empty.", before=asks)


@click.command()
@click.option(
    "--level",
    type=click.Choice(["1", "2"]),
    default="1",
    help="1 keeps the weights in the host's memory; 2 drops them, and may wake to gibberish.",
)
@yes_option
@drain_option
@waiting_options
@click.pass_obj
def sleep(
    invocation: Invocation, *, level: str, yes: bool, drain_s: float | None, waiting: Waiting
) -> None:
    """Free the GPU's memory; nobody is served until it is woken.

    What runs may end first; what still runs after the drain is cut.
    """
    asks = asked("engine.sleep", yes=yes, known=known_of_level(level))
    arguments = {"level": level} | drain_argument(drain_s)
    do_verb(invocation, "engine.sleep", arguments, waiting, done="The engine sleeps.", before=asks)


@click.command()
@waiting_options
@click.pass_obj
def wake(invocation: Invocation, *, waiting: Waiting) -> None:
    """Take the memory again; it serves once it stands the canary."""
    do_verb(invocation, "engine.wake", {}, waiting, done="The engine serves.")


@click.command()
@drain_option_that("Seconds to wait for what runs; what is left then is told.")
@waiting_options
@click.pass_obj
def drain(invocation: Invocation, *, drain_s: float | None, waiting: Waiting) -> None:
    """Let what runs end and admit nothing new, until `engine resume`.

    Nothing is cut: what still runs after the bound is told and goes on.
    """
    do_verb(invocation, "engine.drain", drain_argument(drain_s), waiting, done="It is drained.")


@click.command()
@waiting_options
@click.pass_obj
def pause(invocation: Invocation, *, waiting: Waiting) -> None:
    """Hold new requests at the gateway until `engine resume`; what runs goes on."""
    do_verb(invocation, "admission.pause", {}, waiting, done="Admission is paused.")


@click.command()
@waiting_options
@click.pass_obj
def resume(invocation: Invocation, *, waiting: Waiting) -> None:
    """Let the requests go that are held, the first one first."""
    do_verb(invocation, "admission.resume", {}, waiting, done="Admission is resumed.")


@click.command()
@click.option(
    "--seconds",
    type=NumberRange(min=3, max=120),
    metavar="S",
    help="How long to measure in all; 20 by default.",
)
@waiting_options
@click.pass_obj
def probe(invocation: Invocation, *, seconds: float | None, waiting: Waiting) -> None:
    """Measure 1, 2 and 4 streams: speed that grows with them was idle silicon at one.

    The engine must be idle; a client's request that comes meanwhile ends the probe.
    """
    arguments = {} if seconds is None else {"seconds": f"{seconds:g}"}
    do_verb(invocation, "engine.probe", arguments, waiting, done="Measured.")


@click.command()
@click.argument("model")
@waiting_options
@click.pass_obj
def load(invocation: Invocation, *, model: str, waiting: Waiting) -> None:
    """Let llama-server's router load MODEL."""
    do_verb(invocation, "router.load", {"model": model}, waiting, done="It is loaded.")


@click.command()
@click.argument("model")
@yes_option
@waiting_options
@click.pass_obj
def unload(invocation: Invocation, *, model: str, yes: bool, waiting: Waiting) -> None:
    """Let llama-server's router unload MODEL."""
    confirm(f"{model}: {BY_ID['router.unload'].confirm}", yes=yes)
    do_verb(invocation, "router.unload", {"model": model}, waiting, done="It is unloaded.")


VERBS: tuple[click.Command, ...] = (
    abort,
    reset_cache,
    sleep,
    wake,
    drain,
    pause,
    resume,
    probe,
    load,
    unload,
)
