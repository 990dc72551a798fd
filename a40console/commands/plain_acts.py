"""The commands of the table, done in sentences: asked, begun, followed and told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a40console.commands import plain_words
from a40console.commands.acting import POLL_S, refuse_failure
from a40console.commands.runs_left import runs_left
from a40console.commands.sentences import Detail, explained, sentence, spoken
from a40console.commands.session_words import session_sentences
from a40console.commands.verdict import cost_line
from a40console.errors import ConsoleError, RefusedError
from a40console.model import switch_cost, turning
from a40console.model.command import COMMANDS, Command
from a40console.model.control import CommandResult, ProfileSummary, Trouble
from a40console.model.figures import Missing
from a40console.model.request_named import none_named, request_named
from a40console.model.snapshot import Slot, Snapshot
from a40console.service.client import ServiceClient
from a40console.tui import format as fmt
from a40console.tui.availability import runnable_first, why_not
from a40console.tui.blank import blank_snapshot
from a40console.tui.keymap import Keymap
from a40console.tui.losses import APPLY_BY_RESTART, at_stake, known_of_level, losses, lost_with
from a40console.tui.past import Past
from a40console.tui.plain_text import engine_text
from a40console.tui.reading import Link, Reading

Say = Callable[[str], None]

_LOG_LINES = 20
_EVENTS = 20
_LABEL = re.compile(r"^(\w+(?: \w+)*) {2,}")
"""A label before its value, with the blanks between."""


@dataclass(slots=True)
class Desk:
    """What the conversation knows."""

    keys: Keymap
    snapshot: Snapshot | None = None
    lost: Trouble | None = None
    """Why no service answers; None while one does."""

    detail: Detail = "normal"
    forbidden: str = ""
    """Who forbade to act from here; empty where nobody did."""

    muted: bool = False
    """Whether alarms ring not."""

    past: Past = field(default_factory=Past)

    @property
    def reading(self) -> Reading:
        """As the screen's availability rules take it."""
        link = Link("live") if self.snapshot and self.lost is None else Link("lost", self.lost)
        return Reading(
            snapshot=self.snapshot or blank_snapshot("no snapshot yet"),
            link=link,
            age_s=0.0,
            unread=0,
            past=self.past,
            keymap=self.keys,
            forbidden=self.forbidden,
        )


class Acts:
    """Does commands; a question takes the next line that is typed as its answer."""

    def __init__(self, client: ServiceClient, desk: Desk, say: Say, *, remote: str = "") -> None:
        self._client = client
        self._call = f"a40console --ssh {remote}" if remote else "a40console"
        self._desk = desk
        self._say = say
        self._answer: asyncio.Future[str] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._free = asyncio.Event()
        """Set once the next line may be taken."""

        self._tellers: dict[str, Callable[[str], Awaitable[None]]] = {
            "view.engine": self._tell_engine,
            "view.logs": self._tell_logs,
            "view.events": self._tell_events,
            "digest.show": self._tell_events,
            "view.cost": self._tell_cost,
            "view.sessions": self._tell_sessions,
            "limit.why": self._tell_limit,
            "client.env": self._tell_environment,
            "alarms.mute": self._mute,
        }

    @property
    def takes_answer(self) -> bool:
        """Whether the next line answers a question."""
        return self._answer is not None and not self._answer.done()

    def answer(self, text: str) -> None:
        """The answer to the question that stands."""
        if self._answer is not None:
            self._answer.set_result(text)

    async def finished(self) -> None:
        """The input has ended: questions get no answer, what was begun is followed to its end."""
        while self._running:
            if self.takes_answer:
                self.answer("")
            await asyncio.wait(self._running, timeout=POLL_S)

    async def perform(self, command: Command, argument: str) -> None:
        """Do a command; one that asks or takes time goes on beside what is typed meanwhile."""
        self._free.clear()
        task = asyncio.create_task(self._perform(command, argument))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda done: self._free.set())
        await self._free.wait()

    async def _perform(self, command: Command, argument: str) -> None:
        try:
            reason = why_not(command, self._desk.reading)
            if reason is not None:
                self._say(sentence(f"Not now: {reason}"))
                return
            if command.id in self._tellers:
                await self._tellers[command.id](argument)
            elif command.local:
                self._say(f"{command.title} is for the screen; here there is nothing to do for it.")
            else:
                await self._ask_service(command, argument)
        except ConsoleError as error:
            self._tell_trouble(error.trouble)

    def help(self) -> None:
        """Every word, one a line."""
        usable = [c for c in COMMANDS if not c.local or c.id in self._tellers]
        for line in plain_words.manual(usable, self._desk.keys):
            self._say(line)

    async def _ask_service(self, command: Command, argument: str) -> None:
        arguments: dict[str, str] = {}
        if command.argument:
            chosen = argument or await self._choose(command)
            if not chosen:
                self._say("Nothing done.")
                return
            arguments[command.argument] = chosen
        if command.id == "request.abort":  # a slot is taken again while the question stands
            slot = self._request(arguments["request"])
            arguments["request"] = slot.request_id
            for text in lost_with(slot):
                self._say(sentence(text))
        for text in await self._costs(command, arguments):
            self._say(sentence(text))
        if command.confirm and not await self._confirmed(command):
            self._say("Nothing done.")
            return
        self._say(sentence(f"{command.title}: under way"))
        self._free.set()
        result = await self._client.start(command.id, **arguments)
        while result.state == "running":
            await asyncio.sleep(POLL_S)
            result = await self._client.result(result.id)
        refuse_failure(result)
        self._tell_result(command, result)

    async def _costs(self, command: Command, arguments: Mapping[str, str]) -> Sequence[str]:
        """What a command takes and loses, for the question that comes then."""
        snapshot = self._desk.reading.snapshot
        match command.id:
            case "engine.switch":
                return switch_cost.told(await self._client.switch_cost(arguments["profile"]))
            case "engine.speculation":
                way = await self._client.speculation_way(arguments["mode"])
                if way.how == "live":
                    return turning.told(way)
                lost = losses(command.id, snapshot)
                return [*turning.told(way), *at_stake(snapshot), *lost]
        stops = command.id in ("engine.stop", "engine.restart", "engine.sleep", "service.stop")
        known = known_of_level(arguments.get("level", ""))
        lost = [*(at_stake(snapshot) if stops else ()), *losses(command.id, snapshot), *known]
        if command.id in ("engine.stop", "service.stop"):
            lost += await runs_left(self._client)
        return lost

    def _request(self, named: str) -> Slot:
        """The request that is meant now.

        Raises:
            RefusedError: If none runs by that name.
        """
        known = self._desk.reading.snapshot.slots
        slots = () if isinstance(known, Missing) else known
        if (slot := request_named(slots, named)) is not None:
            return slot
        message, evidence = none_named(slots, named)
        raise RefusedError(message, evidence=evidence)

    async def _choose(self, command: Command) -> str:
        if command.argument == "fix":
            return await self._shown_fix()
        if command.argument == "changes":
            return await self._shown_changes()
        if command.argument != "profile":
            return await self._question(f"{command.title}: which {command.argument}?")
        profiles = runnable_first(await self._client.profiles())
        self._say(f"{command.title}. Type a number or a name; an empty line cancels.")
        for number, profile in enumerate(profiles, start=1):
            self._say(_profile(number, profile))
        typed = await self._question("Which profile?")
        return _chosen(typed, profiles)

    async def _shown_fix(self) -> str:
        """The change of a profile that is offered, once the operator agrees to it; else empty."""
        offer = await self._client.fix()
        self._say(sentence(f"Profile {offer.profile}: {offer.cause}"))
        self._say(sentence(f"Changed would be {offer.change}, in {offer.file}"))
        self._say(sentence(offer.why))
        typed = await self._question("Type yes to change it.")
        return offer.id if typed.lower() in ("y", "yes") else ""

    async def _shown_changes(self) -> str:
        """What the running profile's file says otherwise, once the operator agrees; else empty."""
        found = await self._client.changes()
        for change in found.changes:
            takes = "By a restart" if change.effect == "restart" else "As it runs"
            self._say(sentence(f"{takes}: {change.change}"))
        if not found.changes:
            self._say(sentence(f"{found.profile} runs as its file says"))
            return ""
        if found.needs_restart:
            snapshot = self._desk.reading.snapshot
            for text in (*at_stake(snapshot), *losses("engine.apply", snapshot)):
                self._say(sentence(text))
        restarts = f"{APPLY_BY_RESTART} " if found.needs_restart else ""
        typed = await self._question(f"{restarts}Type yes to apply them.")
        return found.id if typed.lower() in ("y", "yes") else ""

    async def _confirmed(self, command: Command) -> bool:
        typed = await self._question(f"{command.confirm} Type yes to do it.")
        return typed.lower() in ("y", "yes")

    async def _question(self, text: str) -> str:
        self._say(text)
        self._answer = asyncio.get_running_loop().create_future()
        self._free.set()
        try:
            return await self._answer
        finally:
            self._answer = None

    def _tell_result(self, command: Command, result: CommandResult) -> None:
        self._say(sentence(f"{command.title}: done"))
        for name, value in result.result.items():
            self._say(sentence(f"{name.replace('_', ' ')}: {value}"))
        for event in result.events:
            self._say(sentence(event.text))

    def _tell_trouble(self, trouble: Trouble) -> None:
        for part in (trouble.message, trouble.evidence, trouble.remedy):
            if part:
                self._say(sentence(part))

    async def _tell_engine(self, argument: str) -> None:
        for text in engine_text(self._desk.reading):
            self._say(spoken(_LABEL.sub(r"\1: ", text)))

    async def _tell_limit(self, argument: str) -> None:
        for told in explained(await self._client.why()):
            self._say(told)

    async def _tell_cost(self, argument: str) -> None:
        self._say(sentence(f"Cost: {cost_line(self._desk.reading.snapshot)}"))

    async def _tell_sessions(self, argument: str) -> None:
        for told in session_sentences(self._desk.reading.snapshot):
            self._say(sentence(told))

    async def _mute(self, argument: str) -> None:
        self._desk.muted = not self._desk.muted
        self._say(f"Alarms {'off until this is typed again' if self._desk.muted else 'on'}.")

    async def _tell_logs(self, argument: str) -> None:
        chunk = await self._client.logs()
        lines = [line for line in chunk.text.splitlines() if line.strip()]
        if not lines:
            self._say("The engine has written nothing.")
        for line in lines[-_LOG_LINES:]:
            self._say(line)

    async def _tell_events(self, argument: str) -> None:
        events: Any = await self._client.events()
        if not events:
            self._say("Nothing has happened yet.")
        for event in events[-_EVENTS:]:
            self._say(sentence(f"{fmt.clock(event.at)}: {event.text}"))

    async def _tell_environment(self, argument: str) -> None:
        environment = await self._client.environment()
        names = ", ".join(environment.variables)
        self._say(f"A client needs {names}. The token is not said here.")
        self._say(
            "In the client's shell type: eval, space, quote, dollar, parenthesis, "
            f"{self._call} env."
        )
        self._say(f'eval "$({self._call} env)"')


def _profile(number: int, profile: ProfileSummary) -> str:
    ready = "" if profile.ready else f". Not ready: {profile.why_not or 'something is missing'}"
    return sentence(f"{number}: {profile.name}, {profile.title}{ready}")


def _chosen(typed: str, profiles: Sequence[ProfileSummary]) -> str:
    if typed.isdigit() and 1 <= int(typed) <= len(profiles):
        return profiles[int(typed) - 1].name
    return typed
