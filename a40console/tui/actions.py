"""Performs commands: checks, asks what must be asked, tells the service, says how it went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from a40console.errors import ConsoleError, Exit
from a40console.model.command import Command
from a40console.model.control import CommandResult, Trouble
from a40console.model.figures import Missing
from a40console.model.instants import iso_utc
from a40console.model.run_copies import told as told_left
from a40console.model.switch_cost import told as told_cost
from a40console.tui import dialogs
from a40console.tui.availability import why_not
from a40console.tui.losses import at_stake, losses
from a40console.tui.panels.moments import day_of, when_s
from a40console.tui.screens.slot import show_slot
from a40console.tui.toasts import ActionToast

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_LOOK_EVERY_S = 0.5
_LONGEST_EVIDENCE = 160
_RUNS_LEFT_WAIT_S = 2.0

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
    app.say(command.title, _told(trouble), "error")


def _told(trouble: Trouble) -> str:
    """In a toast, which must not cover the screen: the events have a long evidence whole."""
    evidence = trouble.evidence
    if len(evidence) > _LONGEST_EVIDENCE:
        evidence = f"{evidence[:_LONGEST_EVIDENCE].rstrip()} …"
    parts = [trouble.message, evidence, trouble.remedy]
    return "\n".join(part for part in parts if part)


async def ask_service(app: ConsoleApp, command: Command) -> None:
    """The way of every command that the service carries out."""
    arguments: dict[str, str] = {}
    if command.argument:
        chosen = await dialogs.choose_argument(app, command)
        if chosen is None:
            return
        arguments[command.argument] = chosen
    cost = (*await _switch_cost(app, command, arguments), *await _runs_left(app, command))
    if command.confirm and not await dialogs.confirm(
        app,
        command,
        lambda: [
            *_consequences(app, arguments),
            *losses(command.id, app.reading.snapshot),
            *cost,
        ],
    ):
        return
    await carry_out(app, command, arguments)


async def carry_out(
    app: ConsoleApp, command: Command, arguments: dict[str, str], named: str | None = None
) -> bool:
    """Let the service do it, and say how it ended; whether it was done.

    Args:
        app: The console.
        command: What to do.
        arguments: With what.
        named: How the arguments are called; None says them in words.
    """
    app.asking = False
    if named is None:
        named = " ".join(dialogs.in_words(*argument) for argument in arguments.items())
    said = ActionToast(app, command.title)
    result = await _finished(app, command, arguments, said, named)
    if result is not None:
        said.say(_outcome(result, named))
    return result is not None


async def _finished(
    app: ConsoleApp,
    command: Command,
    arguments: dict[str, str],
    said: ActionToast,
    named: str = "",
) -> CommandResult | None:
    """How the command ended; None where it failed, which is then said."""
    try:
        client = await app.feed.client()
        result = await client.start(command.id, **arguments)
        looks = 0
        while result.state == "running":
            if looks == 1:  # what ends at once is said once
                said.say(f"Under way{': ' if named else ''}{named}.")
            looks += 1
            await asyncio.sleep(_LOOK_EVERY_S)
            result = await client.result(result.id)
        trouble = result.trouble
    except ConsoleError as error:
        trouble = error.trouble
    if trouble is None:
        return result
    said.say(_told(trouble), "error")
    return None


def _outcome(result: CommandResult, named: str) -> str:
    """That it is done, and what the journal says of it: the end, and what was wrong meanwhile."""
    told = [event.text for event in result.events[:-1] if event.severity != "info"]
    told += [event.text for event in result.events[-1:] if event.text != named]
    values = [value for value in result.result.values() if not named or named not in value]
    return "\n".join([f"Done{': ' if named else ''}{named}.", *(told or values)])


def _consequences(app: ConsoleApp, arguments: dict[str, str]) -> list[str]:
    """What the operator should know before saying yes."""
    snapshot = app.reading.snapshot
    old, new = snapshot.engine.profile, arguments.get("profile")
    switched = new is not None and not isinstance(old, Missing)
    lines = [dialogs.consequence(name, value) for name, value in arguments.items()]
    if switched:
        lines = [f"From {old} to {new}."]
    if app.reading.link.state != "live":
        return [*lines, "No service answers: what runs now is not known."]
    lines += at_stake(snapshot)
    if not switched and not isinstance(old, Missing):
        lines.append(f"Profile: {old}{', SIMULATED' if snapshot.simulated else ''}")
    return lines


async def _switch_cost(
    app: ConsoleApp, command: Command, arguments: dict[str, str]
) -> tuple[str, ...]:
    """What a switch will cost those who use the engine; nothing for other commands.

    Raises:
        ConsoleError: If the switch would be refused.
    """
    if command.id != "engine.switch":
        return ()
    client = await app.feed.client()
    try:
        return told_cost(await client.switch_cost(arguments["profile"]))
    except ConsoleError as error:
        if error.exit_code in (Exit.REFUSED, Exit.USAGE):
            raise
        return (f"What it costs cannot be told: {error.message}.",)


async def _runs_left(app: ConsoleApp, command: Command) -> tuple[str, ...]:
    """Which runs the machine would take with it, before it is given back; none else.

    A service that does not know, or stands still, keeps nobody from ending it.
    """
    if command.id not in {"engine.stop", "service.stop"}:
        return ()
    try:
        async with asyncio.timeout(_RUNS_LEFT_WAIT_S):
            client = await app.feed.client()
            return told_left(await client.runs_left())
    except (ConsoleError, TimeoutError):
        return ()


async def _test_request(app: ConsoleApp, command: Command) -> None:
    said = ActionToast(app, command.title)
    said.say("Sent; waiting for the answer.")
    result = await _finished(app, command, {}, said)
    if result is not None:
        said.clear()
        dialogs.show_answer(app, command, result)


async def _doctor(app: ConsoleApp, command: Command) -> None:
    said = ActionToast(app, command.title)
    result = await _finished(app, command, {}, said)
    if result is not None:
        said.clear()
        dialogs.show_checks(app, command, result)


async def _environment(app: ConsoleApp, command: Command) -> None:
    client = await app.feed.client()
    dialogs.show_environment(app, command, await client.environment())


async def _digest(app: ConsoleApp, command: Command) -> None:
    read_to = app.absence.read_to
    if read_to is None or not app.reading.unread:
        app.say(command.title, f"Nothing new since {_last_read(app)}.")
        app.action_command("view.events")
        return
    client = await app.feed.client()
    digest = await client.digest(since_event=read_to, since_s=app.absence.read_since_s)
    dialogs.show_digest(app, command.title, digest)
    app.mark_events_read()


def _last_read(app: ConsoleApp) -> str:
    """When the journal was last read, by the snapshot's clock."""
    now_s = app.past.now_s or time.time()
    since_s = app.absence.read_since_s
    return when_s(since_s if since_s > 0 else now_s + since_s, day_of(iso_utc(now_s)))


async def _why(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.explain import toggle

    toggle(app)


async def _help(app: ConsoleApp, command: Command) -> None:
    dialogs.show_help(app, command)


async def _fix(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.fix import fix_profile

    await fix_profile(app, command)


async def _apply(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.apply import apply_edited

    await apply_edited(app, command)


async def _leave(app: ConsoleApp, command: Command) -> None:
    if await dialogs.leave(app, command):
        app.exit()


async def _capture(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.capture import choose_capture

    wanted = await choose_capture(app, command)
    if wanted is not None:
        await carry_out(app, command, {"session": wanted})


async def _abort(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.abort import abort_request

    await abort_request(app, command)


async def _mute(app: ConsoleApp, command: Command) -> None:
    app.mute_alarms()


async def _speculation(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.speculation_turn import confirmed_mode

    mode = await confirmed_mode(app, command)
    if mode is not None:
        await carry_out(app, command, {"mode": mode})


async def _experiment(app: ConsoleApp, command: Command) -> None:
    from a40console.tui.screens.run_starting import set_experiment

    await set_experiment(app, command)


HANDLERS: dict[str, Handler] = {
    "alarms.mute": _mute,
    "request.abort": _abort,
    "sessions.capture": _capture,
    "profile.fix": _fix,
    "engine.apply": _apply,
    "engine.speculation": _speculation,
    "slot.show": show_slot,
    "experiment.compaction": _experiment,
    "experiment.choose": _experiment,
    "request.test": _test_request,
    "client.env": _environment,
    "doctor.run": _doctor,
    "digest.show": _digest,
    "limit.why": _why,
    "help.show": _help,
    "console.quit": _leave,
}
"""Commands that the console does itself or shows in its own way; the service does the others."""
