"""`a40console runs pull`: brings the runs of another machine here, before that one is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import click

from a40console.commands.far import lead
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import note, print_json, printable
from a40console.commands.running import is_locked
from a40console.errors import (
    ConsoleError,
    Exit,
    NoServiceError,
    TimedOutError,
    UsageError,
)
from a40console.link.calls import SocketCalls
from a40console.link.far import is_held
from a40console.link.place import records
from a40console.link.pulled import PulledRuns
from a40console.link.runs_pull import Offer, Offers, RunsPull, machine_name
from a40console.paths import Paths, locate
from a40console.service.caller import own_name
from a40console.tui.format import plural

TIMEOUT_S = 60.0
TURN_S = 60.0
"""How long a link that copies by itself is waited for."""

TAKEN_S = 10.0
"""How long the service of this machine may take to put what came into the ledger."""

_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """What a pull brought."""

    origin: str
    copied: tuple[str, ...]
    here: int
    """Runs that were here already."""

    unended: tuple[str, ...]
    waiting: int
    """Documents that this machine's ledger has not taken yet."""

    trouble: str = ""
    """Why it could not be noted over there; empty where it was."""


@click.command("pull")
@click.argument("ids", nargs=-1, metavar="[RUN]...")
@click.option("--ssh", "target", metavar="USER@HOST[:PORT]", help="The machine that has them.")
@click.option("--there", metavar="COMMAND", help="The console's command on that machine.")
@click.option("--again", is_flag=True, help="Also those that are here already.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    ids: tuple[str, ...],
    target: str | None,
    there: str | None,
    again: bool,
    as_json: bool,
) -> None:
    """Copy runs of another machine here: all that are not here yet, or those named.

    Cut short, it goes on where it was. While a link stands they come by themselves.
    """
    paths = _linked(invocation.paths, target, there)
    pulled = PulledRuns(paths.pulled)
    done = _pull(paths, pulled, ids, again=again)
    done = replace(done, waiting=_wait_until_taken(pulled))
    if as_json:
        print_json(done)
        return
    for line in _told(done):
        click.echo(printable(line))


def _linked(paths: Paths, target: str | None, there: str | None) -> Paths:
    """The paths through the link: the one named, the one before the command, or the only one."""
    if target is None and paths.remote:
        return paths
    if target is None:
        held = [record for record in records(paths) if is_held(paths, record)]
        if len(held) != 1:
            names = ", ".join(record.target for record in held)
            raise UsageError(
                "From which machine?",
                evidence=f"links stand to {names}" if held else "no link stands",
                remedy="Name it: a40console runs pull --ssh user@host",
            )
        target = held[0].target
    return lead(paths, target, there=there, words=("runs", "pull")).paths


def _pull(paths: Paths, pulled: PulledRuns, ids: Sequence[str], *, again: bool) -> Pulled:
    calls = SocketCalls(paths.control_socket, timeout_s=TIMEOUT_S, who=own_name())
    pull = RunsPull(calls, pulled, machine=machine_name(), origin=paths.remote)
    with pulled.alone(TURN_S) as alone:
        if not alone:
            raise TimedOutError(
                f"Another process has been copying runs for {TURN_S:.0f} s",
                remedy="See how far it is: a40console links",
            )
        offers = pull.offers()
        if offers is None:  # without a mark everything is told
            raise NoServiceError(f"{paths.remote} does not tell its runs")
        offers = replace(offers, runs=tuple(_named(offers, ids)))
        wanted = pull.wanted(offers, again=again)
        trouble = _copy(pull, wanted, pull.unnoted(offers))
    return Pulled(
        origin=paths.remote,
        copied=tuple(offer.id for offer in wanted),
        here=len(offers.runs) - len(wanted),
        unended=offers.unended,
        waiting=0,
        trouble=trouble,
    )


def _copy(pull: RunsPull, wanted: Sequence[Offer], unnoted: Sequence[Offer]) -> str:
    """Copy them one after the other; why it cannot be noted over there, where that is forbidden.

    What came is noted together, also of a pull that is cut: each time is an event over there.
    """
    here = list(unnoted)
    try:
        for number, offer in enumerate(wanted, start=1):
            note(f"{number} of {len(wanted)}: {offer.id}")
            pull.copy(offer)
            here.append(offer)
    except BaseException:
        with suppress(ConsoleError):  # it is noted the next time
            pull.note(here)
        raise
    return _note(pull, here)


def _note(pull: RunsPull, here: Sequence[Offer]) -> str:
    if not here:
        return ""
    try:
        pull.note(here)
    except ConsoleError as error:
        if error.exit_code is not Exit.REFUSED:
            raise
        return error.message
    return ""


def _named(offers: Offers, ids: Sequence[str]) -> list[Offer]:
    """The runs that were named, by beginnings or ends of their ids; all of them where none was.

    Raises:
        UsageError: If one names no run that has ended, or more than one.
    """
    if not ids:
        return list(offers.runs)
    found = []
    for name in ids:
        fitting = [run for run in offers.runs if run.id.startswith(name) or run.id.endswith(name)]
        exact = [run for run in fitting if run.id == name]
        if len(exact or fitting) != 1:
            unended = any(name in run for run in offers.unended)
            many = f"it fits {len(fitting)} runs"
            none = "it has not ended yet" if unended else "it has no run of that name"
            raise UsageError(
                f"{name} names no one run over there",
                evidence=many if fitting else none,
                remedy="See them: a40console --ssh … runs list",
            )
        found += exact or fitting
    return found


def _wait_until_taken(pulled: PulledRuns) -> int:
    """Let a service of this machine put them into the ledger; how many still wait for one."""
    deadline_s = time.monotonic() + TAKEN_S
    while (waiting := len(pulled.waiting())) and is_locked(locate(os.environ)):
        if time.monotonic() > deadline_s:
            break
        time.sleep(_POLL_S)
    return waiting


def _told(done: Pulled) -> list[str]:
    lines = [f"{plural(len(done.copied), 'run')} copied from {done.origin}"]
    if done.here:
        lines[0] += f"; {done.here} were here already"
    if done.unended:
        lines.append(f"Not ended yet, and still there: {', '.join(done.unended)}")
    if done.trouble:
        lines.append(f"It is not noted over there that they are here: {done.trouble}")
    if done.waiting:
        lines.append(
            f"{plural(done.waiting, 'run')} will be in the ledger once a service runs here: "
            "a40console runs list"
        )
    return lines
