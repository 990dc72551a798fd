"""`a40console events`: the journal, its newest entries or those since an instant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_rich, printable
from a40console.commands.running import connect
from a40console.commands.since import event_id, since_seconds
from a40console.model.event import Event, Severity
from a40console.tui.panels.moments import second_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from a40console.service.client import ServiceClient

FOLLOW_PERIOD_S = 1.0
MOST_AT_ONCE = 5000
STYLES = {"info": ("·", "cyan"), "warn": ("▲", "yellow"), "error": ("✖", "bold red")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which entries are shown."""

    since_id: int
    since_s: float
    kind: str
    severity: Severity
    limit: int


@click.command()
@click.option("--since", metavar="2h|ID", help="As far back, or after the event with this id.")
@click.option("--kind", default="", metavar="K", help="This kind: engine is every engine.… event.")
@click.option(
    "--severity",
    type=click.Choice(["info", "warn", "error"]),
    default="info",
    help="At least this severity.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_AT_ONCE),
    default=50,
    show_default=True,
    help="How many, the newest.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens from now on.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    since: str | None,
    kind: str,
    severity: Severity,
    limit: int,
    follow: bool,
    as_json: bool,
) -> None:
    """What happened, oldest first: engine, findings, notes, refusals. Starts nothing."""
    since_id = event_id(since) if since else None
    selection = Selection(
        since_id=since_id or 0,
        since_s=since_seconds(since) if since and since_id is None else 0.0,
        kind=kind,
        severity=severity,
        limit=limit,
    )
    asyncio.run(_show(invocation, selection, follow=follow, as_json=as_json))


async def _show(
    invocation: Invocation, selection: Selection, *, follow: bool, as_json: bool
) -> None:
    async with await connect(invocation.paths) as client:
        newest = (await client.snapshot()).events_last_id
        events = await _read(client, selection)
        if as_json and not follow:
            print_json({"events": [_document(event) for event in events]})
            return
        _print(invocation, events, as_json=as_json)
        selection = replace(selection, since_s=0.0, limit=MOST_AT_ONCE)
        while follow:
            newest = max([newest, *(event.id for event in events)])
            await asyncio.sleep(FOLLOW_PERIOD_S)
            events = await _read(client, replace(selection, since_id=newest))
            _print(invocation, events, as_json=as_json)


async def _read(client: ServiceClient, selection: Selection) -> tuple[Event, ...]:
    return await client.events(
        selection.since_id,
        selection.limit,
        kind=selection.kind,
        severity=selection.severity,
        since_s=selection.since_s,
    )


def _document(event: Event) -> dict[str, object]:
    """The event for scripts, with whether it belongs on the time axis."""
    return {
        "id": event.id,
        "at": event.at,
        "kind": event.kind,
        "severity": event.severity,
        "text": event.text,
        "data": event.data,
        "marked": event.marked,
    }


def _print(invocation: Invocation, events: Sequence[Event], *, as_json: bool) -> None:
    for event in events:
        if as_json:
            print_json(_document(event), one_line=True)
        else:
            print_rich(invocation, _line(event))


def _line(event: Event) -> RenderableType:
    from rich.text import Text

    mark, style = STYLES[event.severity]
    details = "  ".join(event.data[name] for name in ("evidence", "remedy") if event.data.get(name))
    line = Text()
    line.append(f"{second_of(event.at)}  ", "dim")
    line.append(f"{mark} ", style)
    line.append(printable(f"{event.kind}  {event.text}"))
    if details:
        line.append(printable(f"  {details}"), "dim")
    return line
