"""`a40console sessions`: the clients' sessions, one of them in full, and its text to files."""

from __future__ import annotations

import asyncio

import click

from a40console.commands.acting import act, print_result
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.output import print_json, print_lines, terminal_width
from a40console.commands.progress import Progress
from a40console.commands.running import connect
from a40console.model.control import CommandResult
from a40console.model.figures import Missing
from a40console.model.session import SessionDetail
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths
from a40console.tui.ink import Line, line
from a40console.tui.panels.session_list import sessions_of
from a40console.tui.panels.session_text import full, listing

NARROWEST, WIDEST = 80, 200
MOST_TURNS = 500


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Clients' sessions: context, reuse, speed, cost, turn by turn. Starts nothing."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sessions, as_json=as_json)


@command.command("list")
@json_option
@click.pass_obj
def list_sessions(invocation: Invocation, *, as_json: bool) -> None:
    """Every session of the last 24 hours, the one that asked last first."""
    snapshot = asyncio.run(_snapshot(invocation.paths))
    if as_json:
        print_json({"sessions": snapshot.sessions})
        return
    print_lines(invocation, lines(snapshot, _width()))


@command.command("show")
@click.argument("session", metavar="ID")
@click.option(
    "--turns",
    type=click.IntRange(1, MOST_TURNS),
    default=20,
    show_default=True,
    help="How many of its requests, the newest.",
)
@json_option
@click.pass_obj
def show_session(invocation: Invocation, *, session: str, turns: int, as_json: bool) -> None:
    """One session in full; the beginning of its id will do."""
    detail, snapshot = asyncio.run(_read(invocation.paths, session, turns))
    if as_json:
        print_json(detail)
        return
    print_lines(invocation, full(detail, snapshot.findings, _width()))


@command.command("capture")
@click.argument("session", metavar="ID")
@click.argument("mode", type=click.Choice(["on", "off"]))
@json_option
@click.pass_obj
def capture_session(invocation: Invocation, *, session: str, mode: str, as_json: bool) -> None:
    """Write the text of one session's requests and answers to private files, or no more."""

    async def run() -> CommandResult:
        async with await connect(invocation.paths) as client:
            return await act(
                client,
                "sessions.capture",
                timeout_s=None,
                progress=Progress(quiet=True),
                session=f"{session} {mode}",
            )

    print_result(asyncio.run(run()), f"Capture {mode}.", as_json=as_json)


def lines(snapshot: Snapshot, width: int) -> list[Line]:
    """The list as the console draws it, or why there is none."""
    if isinstance(snapshot.sessions, Missing):
        return [line(f"– {snapshot.sessions.reason}")]
    if not sessions_of(snapshot):
        return [
            line("No client has sent anything in the last 24 hours."),
            line("Connect one with: a40console env"),
        ]
    return listing(snapshot, width)


async def _snapshot(paths: Paths) -> Snapshot:
    async with await connect(paths) as client:
        return await client.snapshot()


async def _read(paths: Paths, session: str, turns: int) -> tuple[SessionDetail, Snapshot]:
    async with await connect(paths) as client:
        return await client.session(session, turns=turns), await client.snapshot()


def _width() -> int:
    return max(NARROWEST, min(terminal_width(), WIDEST))
