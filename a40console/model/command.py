"""Every operator command, once: keys, buttons, palette, help, CLI verbs and the README's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Availability = Literal["always", "service", "no_engine", "engine", "serving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing the operator can do."""

    id: str
    """Stable name, `noun.verb`."""

    title: str
    """Palette and footer text."""

    help: str
    """One sentence."""

    key: str = ""
    """Default key; empty means palette and command line only."""

    argument: str = ""
    """Name of the one argument it takes, empty for none."""

    confirm: str = ""
    """The question asked before it runs; empty for none."""

    available: Availability = "always"
    """What must be there: `engine` is any living engine, `serving` one that answers."""

    local: bool = False
    """Done by the console itself, without the service."""

    @property
    def action(self) -> str:
        """The action name that performs it: `engine.restart` → `engine_restart`."""
        return self.id.replace(".", "_").replace("-", "_")


COMMANDS: tuple[Command, ...] = (
    Command(
        id="view.overview",
        title="Overview",
        help="Who is served, how fast, what limits it.",
        key="1",
        local=True,
    ),
    Command(
        id="view.engine",
        title="Engine",
        help="Identity, phases, settings asked and in force.",
        key="2",
        local=True,
    ),
    Command(
        id="view.logs",
        title="Logs",
        help="The engine's output as it is written.",
        key="3",
        local=True,
    ),
    Command(
        id="view.events",
        title="Events",
        help="What happened and when, with its evidence and what mends it.",
        key="4",
        local=True,
    ),
    Command(
        id="view.cost",
        title="Cost",
        help="What it costs, by the hour and by the token.",
        key="5",
        local=True,
    ),
    Command(
        id="view.sessions",
        title="Sessions",
        help="Each client's session: context, reuse, tools, turn by turn.",
        key="6",
        local=True,
    ),
    Command(
        id="view.pause",
        title="Pause or resume",
        help="Freeze what is drawn, or let it move again; readings keep arriving.",
        key="space",
        local=True,
    ),
    Command(
        id="slot.show",
        title="Show the request",
        help="Everything known of the request or session under the cursor, live or finished.",
        key="enter",
        local=True,
    ),
    Command(
        id="time.back",
        title="Back in time",
        help="Look at the time before; the engine goes on.",
        key="left",
        local=True,
    ),
    Command(
        id="time.forward",
        title="Forward in time",
        help="Look at the time after, up to now.",
        key="right",
        local=True,
    ),
    Command(
        id="time.now",
        title="Now",
        help="Follow the present again.",
        key="0",
        local=True,
    ),
    Command(
        id="time.shorter",
        title="Shorter time span",
        help="Let charts cover less time, down to 5 min.",
        key="left_square_bracket",
        local=True,
    ),
    Command(
        id="time.longer",
        title="Longer time span",
        help="Let charts cover more time, up to 24 h.",
        key="right_square_bracket",
        local=True,
    ),
    Command(
        id="engine.start",
        title="Start engine",
        help="Start the engine with the chosen profile.",
        key="S",
        argument="profile",
        available="no_engine",
    ),
    Command(
        id="engine.stop",
        title="Stop engine",
        help="Stop the engine and verify that nothing of it is left.",
        key="X",
        confirm="Stop the engine? Running requests are cut.",
        available="engine",
    ),
    Command(
        id="engine.restart",
        title="Restart engine",
        help="Stop the engine and start it again with the same profile.",
        key="R",
        confirm="Restart the engine? Running requests are cut.",
        available="engine",
    ),
    Command(
        id="engine.switch",
        title="Switch profile",
        help="Start another profile instead; a failed start rolls back.",
        key="m",
        argument="profile",
        confirm="Switch? Running requests are cut.",
        available="service",
    ),
    Command(
        id="engine.speculation",
        title="Speculation on or off",
        help="Turn speculative decoding on or off; the engine restarts for it.",
        key="s",
        argument="mode",
        confirm="Change speculation? The engine restarts; running requests are cut.",
        available="engine",
    ),
    Command(
        id="engine.clean",
        title="End what is left of the engine",
        help="End exactly the processes that an engine left behind.",
        key="K",
        confirm="End the processes that the engine left behind?",
        available="service",
    ),
    Command(
        id="request.test",
        title="Test request",
        help="Send a short prompt through the gateway and show the answer.",
        key="t",
        available="serving",
    ),
    Command(
        id="limit.why",
        title="Why slow",
        help="The evidence for the limit, and what was ruled out.",
        key="w",
        local=True,
    ),
    Command(
        id="client.env",
        title="Connect a client",
        help="What Claude Code or another client must set, and the first request that it sends.",
        key="e",
        available="service",
    ),
    Command(
        id="sessions.capture",
        title="Capture a session",
        help="Write the text of one session's requests and answers to private files, or no more.",
        key="C",
        argument="session",
        available="service",
    ),
    Command(
        id="digest.show",
        title="Since you looked",
        help="What happened since you last read the events.",
        key="u",
        available="service",
    ),
    Command(
        id="note.add",
        title="Note",
        help="Record one line among the events and on the time axis.",
        key="n",
        argument="text",
        available="service",
    ),
    Command(
        id="alarms.mute",
        title="Mute alarms",
        help="No bell and no notification until it is pressed again.",
        key="A",
        local=True,
    ),
    Command(
        id="doctor.run",
        title="Doctor",
        help="What this machine lacks, each with the line that mends it.",
        available="service",
    ),
    Command(
        id="help.show",
        title="Help",
        help="Keys, commands and what each figure means.",
        key="question_mark",
        local=True,
    ),
    Command(
        id="console.quit",
        title="Leave",
        help="Close the console; the service and the engine keep running.",
        key="q",
        local=True,
    ),
    Command(
        id="service.stop",
        title="Stop service",
        help="Stop the service; with engine=yes the engine too.",
        argument="engine",
        confirm="Stop the service? Clients lose the gateway.",
        available="service",
    ),
)
"""The table. Order is the order of the help screen."""

BY_ID = {command.id: command for command in COMMANDS}
