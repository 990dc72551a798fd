"""Every operator command, once: keys, buttons, palette, help, CLI verbs and the README's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Availability = Literal["always", "service", "no_engine", "engine", "serving", "asleep"]

_LOOK = frozenset({"client.env", "digest.show", "doctor.run"})
"""What asks the service and changes nothing."""


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

    options: tuple[str, ...] = ()
    """Names of what else it may be told."""

    confirm: str = ""
    """The question asked before it runs; empty for none."""

    available: Availability = "always"
    """What must be there: `engine` is any living engine, `serving` one that answers, `asleep` one
    that does not until it is woken."""

    local: bool = False
    """Done by the console itself, without the service."""

    @property
    def action(self) -> str:
        """The action name that performs it: `engine.restart` → `engine_restart`."""
        return self.id.replace(".", "_").replace("-", "_")

    @property
    def acts(self) -> bool:
        """Whether it changes what runs or what is kept: what a read-only console forbids."""
        return not self.local and self.id not in _LOOK


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
        id="view.runs",
        title="Runs",
        help="Controlled experiments: those that run, what was found, and how two compare.",
        key="7",
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
        help="Start the engine again with the same profile; clients wait meanwhile.",
        key="R",
        options=("drain_s",),
        confirm="Restart the engine? Clients wait; what still runs after the drain is cut.",
        available="engine",
    ),
    Command(
        id="engine.switch",
        title="Switch profile",
        help="Let another profile serve; clients wait meanwhile, a failed start rolls back.",
        key="m",
        argument="profile",
        options=("drain_s",),
        confirm="Switch? Clients wait; what still runs after the drain is cut.",
        available="service",
    ),
    Command(
        id="engine.apply",
        title="Apply the edited profile",
        help="Let what the profile's file says now be in force; a restart where it takes one.",
        key="d",
        argument="changes",
        options=("drain_s",),
        available="engine",
    ),
    Command(
        id="engine.speculation",
        title="Speculation on or off",
        help="Turn speculative decoding on or off: live where the engine can, else by restart.",
        key="s",
        argument="mode",
        options=("drain_s",),
        confirm="Change speculation?",
        available="engine",
    ),
    Command(
        id="profile.fix",
        title="Fix the profile",
        help="Change the one key of a profile that mends its failed start; shown first.",
        key="P",
        argument="fix",
        available="service",
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
        id="request.abort",
        title="Abort the request",
        help="End the request under the cursor in the engine; the others go on.",
        key="x",
        argument="request",
        confirm="Abort it? Its client gets no more of its answer.",
        available="serving",
    ),
    Command(
        id="cache.reset",
        title="Reset the prefix cache",
        help="Let the engine forget every prompt that it has kept; only while nothing runs.",
        confirm="Reset it? Every session's next prompt is read from its begin.",
        available="serving",
    ),
    Command(
        id="engine.drain",
        title="Drain the engine",
        help="Let what runs end and admit nothing new; says what is left after the bound.",
        options=("drain_s",),
        confirm="Drain? New requests are held until admission is resumed.",
        available="serving",
    ),
    Command(
        id="admission.pause",
        title="Pause admission",
        help="Hold new requests at the gateway; what runs goes on.",
        confirm="Pause admission? New requests are held until it is resumed.",
        available="service",
    ),
    Command(
        id="admission.resume",
        title="Resume admission",
        help="Let the requests go that are held, the first one first.",
        available="service",
    ),
    Command(
        id="engine.sleep",
        title="Put the engine to sleep",
        help="Free the GPU's memory; nobody is served until it is woken.",
        argument="level",
        options=("drain_s",),
        confirm="Put it to sleep? Nobody is served until it is woken, and its cache is lost.",
        available="serving",
    ),
    Command(
        id="engine.wake",
        title="Wake the engine",
        help="Take the memory again; it serves once it stands the canary.",
        available="asleep",
    ),
    Command(
        id="engine.probe",
        title="Probe for idle silicon",
        help="Measure 1, 2 and 4 streams for 20 s: does one leave the silicon idle?",
        options=("seconds",),
        available="serving",
    ),
    Command(
        id="router.load",
        title="Load a model of the router",
        help="Let llama-server's router load one of its models.",
        argument="model",
        available="serving",
    ),
    Command(
        id="router.unload",
        title="Unload a model of the router",
        help="Let llama-server's router unload one of its models.",
        argument="model",
        confirm="Unload it? Its requests are cut, and its cache is lost.",
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
        id="experiment.compaction",
        title="Compaction experiment",
        help="Set and start it: which way of keeping the context small is the cheapest here.",
        key="c",
        available="service",
        local=True,
    ),
    Command(
        id="experiment.choose",
        title="Bench",
        help="Choose an experiment, set it, see what it costs and disturbs, and start it.",
        key="b",
        available="service",
        local=True,
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
