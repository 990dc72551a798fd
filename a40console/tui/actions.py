"""Performs commands: checks, asks what must be asked, tells the service, says how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.command import Command
from a40console.model.control import CommandResult, Trouble
from a40console.model.figures import Missing, number
from a40console.tui import dialogs
from a40console.tui import format as fmt
from a40console.tui.availability import why_not

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_LOOK_EVERY_S = 0.5

Handler = Callable[["ConsoleApp", Command], Awaitable[None]]


async def perform(app: ConsoleApp, command: Command) -> None:
    """Do one command; every failure ends as a toast with its evidence and its remedy."""
    try:
        reason = why_not(command, app.reading)
        if reason is not None:
            app.say(command.title, f"Not now: {reason}.", "warning")
            return
        await HANDLERS.get(command.id, ask_service)(app, command)
    except ConsoleError as error:
        tell_trouble(app, command, error.trouble)
    finally:
        app.asking = False


def tell_trouble(app: ConsoleApp, command: Command, trouble: Trouble) -> None:
    """Say what went wrong, with the evidence and what to do."""
    parts = [trouble.message, trouble.evidence, trouble.remedy]
    app.say(command.title, "\n".join(part for part in parts if part), "error")


async def ask_service(app: ConsoleApp, command: Command) -> None:
    """The way of every command that the service carries out."""
    arguments: dict[str, str] = {}
    if command.argument:
        chosen = await dialogs.choose_argument(app, command)
        if chosen is None:
            return
        arguments[command.argument] = chosen
    if command.confirm and not await dialogs.confirm(app, command, _consequences(app, arguments)):
        return
    app.asking = False
    named = " ".join(arguments.values())
    app.say(command.title, f"Under way{': ' + named if named else ''}.")
    result = await _finished(app, command, arguments)
    if result.trouble is not None:
        tell_trouble(app, command, result.trouble)
        return
    app.say(command.title, _outcome(result))


async def _finished(app: ConsoleApp, command: Command, arguments: dict[str, str]) -> CommandResult:
    client = await app.feed.client()
    result = await client.start(command.id, **arguments)
    while result.state == "running":
        await asyncio.sleep(_LOOK_EVERY_S)
        result = await client.result(result.id)
    return result


def _outcome(result: CommandResult) -> str:
    lines = [f"{name}: {value}" for name, value in result.result.items()]
    lines += [event.text for event in result.events]
    return "\n".join(["Done.", *lines])


def _consequences(app: ConsoleApp, arguments: dict[str, str]) -> list[str]:
    """What the operator should know before saying yes."""
    snapshot = app.reading.snapshot
    lines = [f"{name.capitalize()}: {value}" for name, value in arguments.items()]
    running = number(snapshot.requests.running)
    if running:
        lines.append(f"{fmt.plural(running, 'request')} running now.")
    if not isinstance(snapshot.engine.profile, Missing):
        lines.append(f"Profile: {snapshot.engine.profile}")
    return lines


async def _test_request(app: ConsoleApp, command: Command) -> None:
    app.say(command.title, "Sent; waiting for the answer.")
    result = await _finished(app, command, {})
    if result.trouble is not None:
        tell_trouble(app, command, result.trouble)
        return
    dialogs.show_answer(app, command, result)


async def _environment(app: ConsoleApp, command: Command) -> None:
    client = await app.feed.client()
    dialogs.show_environment(app, command, await client.environment())


async def _events(app: ConsoleApp, command: Command) -> None:
    client = await app.feed.client()
    dialogs.show_events(app, command, await client.events())
    app.mark_events_read()


async def _explain(app: ConsoleApp, command: Command) -> None:
    dialogs.show_explanation(app, command)


async def _help(app: ConsoleApp, command: Command) -> None:
    dialogs.show_help(app, command)


async def _leave(app: ConsoleApp, command: Command) -> None:
    if await dialogs.leave(app, command):
        app.exit()


HANDLERS: dict[str, Handler] = {
    "request.test": _test_request,
    "client.env": _environment,
    "events.read": _events,
    "limit.explain": _explain,
    "help.show": _help,
    "console.quit": _leave,
}
"""Commands that the console does itself or shows in its own way; the service does the others."""
