"""`a40console links`: the links that `--ssh` opened, which outlive their consoles."""

from __future__ import annotations

import os

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, printable
from a40console.link.far import is_held
from a40console.link.opening import close_link
from a40console.link.place import LinkPlace, LinkRecord, records
from a40console.link.target import parse_target
from a40console.tui.format import plural


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """The links to other machines; without a word after it: their list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command, as_json=as_json)


@command.command("list")
@json_option
@click.pass_obj
def list_command(invocation: Invocation, *, as_json: bool) -> None:
    """Every link: up, down or ended, since when and why."""
    found = [(record, is_held(invocation.paths, record)) for record in records(invocation.paths)]
    if as_json:
        print_json({"links": [_as_json(record, held=held) for record, held in found]})
        return
    for record, held in found:
        click.echo(printable(_line(record, held=held)))
    if not found:
        click.echo("No links. Open one: a40console --ssh user@host")


@command.command("close")
@click.argument("target")
@click.pass_obj
def close_command(invocation: Invocation, *, target: str) -> None:
    """End a link; service and engine over there go on."""
    place = LinkPlace(invocation.paths, parse_target(target))
    closed = close_link(place, os.environ)
    click.echo(printable(f"{'Closed' if closed else 'There was no'} link to {place.target}"))


def _line(record: LinkRecord, *, held: bool) -> str:
    state = record.state if held else "ended"
    port = f"   gateway http://127.0.0.1:{record.gateway_port}" if record.gateway_port else ""
    reason = f"   {record.reason}" if record.reason else ""
    told = f"{record.target}   {state} since {record.since}{port}   {record.drops} drops{reason}"
    return told + _copies(record)


def _copies(record: LinkRecord) -> str:
    """How far the runs of the other machine are copied, where there were any."""
    told = []
    if record.runs_copied:
        told.append(plural(record.runs_copied, "run") + " copied")
    if record.runs_left:
        told.append(f"{record.runs_left} still to come")
    if record.runs_trouble:
        told.append(f"runs are not copied: {record.runs_trouble}")
    return "".join(f"   {part}" for part in told)


def _as_json(record: LinkRecord, *, held: bool) -> dict[str, object]:
    return {
        "target": record.target,
        "state": record.state if held else "ended",
        "since": record.since,
        "reason": record.reason,
        "gateway_port": record.gateway_port or None,
        "drops": record.drops,
        "runs_copied": record.runs_copied,
        "runs_left": record.runs_left,
        "runs_trouble": record.runs_trouble,
    }
