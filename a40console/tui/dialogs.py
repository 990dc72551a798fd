"""What the dialogs ask and say, made from the table, the reading and the service's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.command import Command
from a40console.model.control import (
    ClientEnvironment,
    CommandResult,
    Digest,
    ProfileSummary,
)
from a40console.model.engine import EngineState
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Snapshot
from a40console.model.wording import short_name
from a40console.tui import format as fmt
from a40console.tui.availability import LIVING, NAMES, runnable_first
from a40console.tui.format import shown
from a40console.tui.ink import clean
from a40console.tui.panels import texts
from a40console.tui.panels.checks import checks_text, read_checks
from a40console.tui.screens.dialog import (
    Choice,
    ConfirmDialog,
    Consequences,
    PickDialog,
    TextDialog,
)
from a40console.tui.screens.digest import READ, DigestDialog
from a40console.tui.screens.environment import EnvironmentDialog
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.note import NoteDialog

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


_LEVELS = [
    Choice(
        value="1",
        title="Level 1",
        detail="The weights wait in the host's memory: it wakes within seconds.",
    ),
    Choice(
        value="2",
        title="Level 2",
        detail="The weights are dropped: it may wake to gibberish, and the canary then refuses it.",
    ),
]
_MODEL = "As the router lists it; nothing happens without the service's yes."
_ONLY_THIS = "Leave? Only this screen closes."
_INVENTED = "SIMULATED: the answer is invented."


async def confirm(app: ConsoleApp, command: Command, consequences: Consequences) -> bool:
    """Whether the operator says yes to the command's question."""
    dialog = ConfirmDialog(command.title, command.confirm, consequences)
    answer = await app.push_screen_wait(dialog)
    return bool(answer)


async def choose_argument(app: ConsoleApp, command: Command) -> str | None:
    """The command's one argument; None where the operator thought better of it."""
    if command.argument == "text":
        return await app.push_screen_wait(NoteDialog(command.title))
    if command.argument == "model":
        return await app.push_screen_wait(NoteDialog(command.title, _MODEL, "name of the model"))
    choices = await _choices(app, command)
    if len(choices) == 1 and command.argument == "mode":
        return choices[0].value
    at = await _ran_last(app) if command.id == "engine.start" else ""
    return await app.push_screen_wait(PickDialog(command.title, choices, at))


async def _ran_last(app: ConsoleApp) -> str:
    """The profile that ran last, or the one that the settings choose; empty for neither."""
    client = await app.feed.client()
    try:
        starts = await client.starts(1)
    except ConsoleError:
        starts = ()
    return starts[0].profile if starts else app.chosen_profile


async def _choices(app: ConsoleApp, command: Command) -> list[Choice]:
    match command.argument:
        case "profile":
            client = await app.feed.client()
            current = app.reading.snapshot.engine
            serving = current.profile if current.state in LIVING else None
            return [_profile(p, serving) for p in runnable_first(await client.profiles())]
        case "mode":
            return _modes(app)
        case "level":
            return _LEVELS
        case _:
            return [
                Choice(value="no", title="Service only", detail="The engine keeps running."),
                Choice(
                    value="yes",
                    title="Service and engine",
                    detail="Running requests are cut, and the GPU's memory becomes free.",
                ),
            ]


def in_words(argument: str, value: str) -> str:
    """A command's argument as the operator reads it."""
    if argument == "engine":
        return "the engine too" if value == "yes" else "the engine keeps running"
    if argument == "level":
        return f"level {value}"
    if argument == "session":
        name, _, mode = value.rpartition(" ")
        return f"capture of {short_name(name)} {mode}"
    return value


def consequence(argument: str, value: str) -> str:
    """What an argument leads to, for the question that comes before."""
    words = in_words(argument, value)
    if argument == "engine":
        return f"{words.capitalize()}."
    if argument == "mode":
        return f"Speculation is turned {words}."
    if argument == "level":
        return next(f"{c.title}. {c.detail}" for c in _LEVELS if c.value == value)
    return f"{argument.capitalize()}: {words}"


def _profile(profile: ProfileSummary, serving: object) -> Choice:
    facts = [profile.kind, profile.model]
    if profile.speculation:
        facts.append(f"speculation {profile.speculation}")
    if profile.usd_per_hour is not None:
        invented = "SIMULATED " if profile.kind == "sim" else ""
        facts.append(f"{invented}{fmt.dollars(profile.usd_per_hour)}/h")
    if profile.origin != "shipped":
        facts.append(profile.origin)
    title = profile.name + ("  (running)" if profile.name == serving else "")
    title += f"  {profile.title}" if profile.title else ""
    refused = "" if profile.ready else profile.why_not or "this machine lacks what it needs"
    return Choice(value=profile.name, title=title, detail=" · ".join(facts), refused=refused)


def _modes(app: ConsoleApp) -> list[Choice]:
    """The other mode where the present one is known, else both."""
    mode = app.reading.snapshot.speculation.mode
    on = Choice(value="on", title="On", detail="Draft tokens ahead and verify them.")
    off = Choice(value="off", title="Off", detail="One token a pass and sequence.")
    if isinstance(mode, Missing):
        return [on, off]
    return [on] if mode == "off" else [off]


def show_answer(app: ConsoleApp, command: Command, result: CommandResult) -> None:
    """The answer to the test request, and what it took."""
    invented = _INVENTED if app.reading.snapshot.simulated else ""
    app.push_screen(
        TextDialog(command.title, lambda width: texts.answer(result, width, before=invented))
    )


def show_digest(app: ConsoleApp, title: str, digest: Digest) -> None:
    """What happened meanwhile; a command's key closes it and does what it does elsewhere."""

    def closed(answer: str | None) -> None:
        if answer == READ:
            app.mark_events_read()
        elif answer is not None:
            app.action_command(answer)

    app.push_screen(DigestDialog(title, digest, app.keys.keys), closed)


def show_checks(app: ConsoleApp, command: Command, result: CommandResult) -> None:
    """What the doctor found, each with the line that mends it."""
    checks = read_checks(result.result)
    app.push_screen(TextDialog(command.title, lambda width: checks_text(checks, width)))


def show_help(app: ConsoleApp, command: Command) -> None:
    """Keys, those of the view in front first, commands and what each figure means."""
    keys, front = app.keys, app.screen_stack[0]
    view = front.VIEW if isinstance(front, MonitorScreen) else ""
    app.push_screen(TextDialog(command.title, lambda width: texts.manual(keys, width, view)))


def show_environment(app: ConsoleApp, command: Command, environment: ClientEnvironment) -> None:
    """The client's environment, its token covered until it is asked for."""
    to = f" to {clean(app.reading.remote)}" if app.reading.remote else ""
    app.push_screen(EnvironmentDialog(f"{command.title}{to}", environment))


async def leave(app: ConsoleApp, command: Command) -> bool:
    """Whether the operator really leaves, once told what keeps running and what it costs."""
    question = "Leave? The demo ends with this screen." if app.demo else _ONLY_THIS
    dialog = ConfirmDialog("Leave the console", question, lambda: _remains(app))
    answer = await app.push_screen_wait(dialog)
    return bool(answer)


def _remains(app: ConsoleApp) -> list[str]:
    if app.demo:
        return [
            "Its service and its SIMULATED engine are stopped, and its folder is removed.",
            "Nothing is paid: the price and the dollars shown are SIMULATED.",
        ]
    reading = app.reading
    engine = reading.snapshot.engine
    if reading.link.state != "live":
        return ["No service answers, so nothing is known of what keeps running."]
    if engine.state is EngineState.ORPHANED:
        key = reading.keymap.hint("engine.clean")
        end = f"Stay and press {key} to end them" if key else "Stay and end them from the palette"
        return [
            "The service keeps running, and so do processes that an engine left behind.",
            f"{end}: they may hold GPU memory, and nothing can start before.",
        ]
    if engine.state not in LIVING:
        return [f"The service keeps running; {NAMES[engine.state]}."]
    running = number(reading.snapshot.requests.running)
    busy = f" with {fmt.plural(running, 'request')}" if running else ""
    name = "" if isinstance(engine.profile, Missing) else f" {engine.profile}"
    invented = "SIMULATED " if reading.snapshot.simulated else ""
    return [
        f"The service and the {invented}engine{name} keep running{busy}.",
        _costs(reading.snapshot),
    ]


def _costs(snapshot: Snapshot) -> str:
    """What it costs to leave the engine running."""
    rate = snapshot.cost.usd_per_hour
    if snapshot.simulated:
        priced = "the price" if isinstance(rate, Missing) else f"{shown(rate, fmt.dollars)} an hour"
        return f"Nothing is paid for it: {priced} is SIMULATED."
    if isinstance(rate, Missing):
        return f"Its cost is not known: {rate.reason}."
    return f"It costs {shown(rate, fmt.dollars)} an hour until it is stopped."
