"""Commands as they run: each in a task of its own, its outcome kept for whoever asks."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from a40console.errors import ConsoleError, Exit, UsageError
from a40console.model.calls import CALLABLE
from a40console.model.control import CommandResult, Trouble
from a40console.operations.status import EngineStatus
from a40console.operations.who import ask_as, asking, is_told
from a40console.service.forbidding import forbidden_error
from a40console.service.journal import Journal

KEPT_RESULTS = 200

Handler = Callable[[Mapping[str, str]], Awaitable[dict[str, str]]]
"""Does a command with its arguments and answers with result texts; raises ConsoleError."""

log = logging.getLogger(__name__)


class CommandTasks:
    """Starts commands by id and remembers how they went."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        journal: Journal,
        forbidden: str = "",
        read_status: Callable[[], EngineStatus] = EngineStatus,
    ) -> None:
        """With who forbids commands that act, if anybody, and what is steered."""
        self._forbidden = forbidden
        self._read_status = read_status
        self._handlers = handlers
        self._journal = journal
        self._results: dict[str, CommandResult] = {}
        self._first_event: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, command: str, arguments: Mapping[str, str], who: str = "") -> CommandResult:
        """Begin a command, which `who` asks for.

        Raises:
            UsageError: If there is no such command here, or it takes no such argument.
            RefusedError: If commands that act are forbidden.
        """
        handler = self._handlers.get(command)
        if handler is None:
            raise UsageError(
                f"The service has no command {command}",
                evidence="It has " + ", ".join(sorted(self._handlers)),
            )
        known = {CALLABLE[command].argument, *CALLABLE[command].options}
        if unknown := arguments.keys() - known:
            raise UsageError(f"{command} takes no argument {min(unknown)}")
        if self._forbidden and CALLABLE[command].acts:
            text = f"{command}: read-only"
            data = {"who": who, "evidence": self._forbidden}
            self._journal.record("command.refused", text, "info", data)
            raise forbidden_error(command, self._forbidden)
        result = CommandResult(command=command, id=secrets.token_hex(6), state="running")
        self._results[result.id] = result
        self._first_event[result.id] = self._journal.last_id
        self._forget()
        ask_as(who)  # the task begins with a copy of what is set here
        task = asyncio.create_task(self._run(handler, result, arguments), name=command)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return result

    def result(self, command_id: str) -> CommandResult:
        """How a command is going.

        Raises:
            UsageError: If its id is unknown, or too old.
        """
        if command_id not in self._results:
            raise UsageError(
                f"No command has the id {command_id}",
                evidence=f"the last {KEPT_RESULTS} are kept, since the service started",
            )
        result = self._results[command_id]
        events = self._journal.since(self._first_event[command_id], 100)
        return replace(result, events=events) if result.state == "running" else result

    def _forget(self) -> None:
        """Drop the oldest results; one that still runs is waited for by somebody."""
        surplus = len(self._results) - KEPT_RESULTS
        ended = [key for key, result in self._results.items() if result.state != "running"]
        for key in ended[: max(0, surplus)]:
            del self._results[key], self._first_event[key]

    async def _run(
        self, handler: Handler, started: CommandResult, arguments: Mapping[str, str]
    ) -> None:
        before = self._read_status().in_words
        try:
            answer = await handler(arguments)
            ended = replace(started, state="done", result=answer)
        except ConsoleError as error:
            refused = error.exit_code in (Exit.USAGE, Exit.REFUSED)
            ended = replace(
                started, state="refused" if refused else "failed", trouble=error.trouble
            )
        except asyncio.CancelledError:
            ended = replace(
                started, state="failed", trouble=Trouble(message="The service was stopped first")
            )
        except Exception as error:
            log.exception("%s failed", started.command)
            ended = replace(
                started,
                state="failed",
                trouble=Trouble(
                    message=f"{started.command} met a bug of ours",
                    evidence=f"{type(error).__name__}: {error}",
                    remedy="The trace is in service.log.",
                ),
            )
        if ended.trouble is not None:
            # A refusal is an answer to whoever asked; what was tried and failed is news.
            refused = ended.state == "refused"
            changed = {} if refused else {"before": before, "after": self._read_status().in_words}
            self._journal.record(
                "command.refused" if refused else "command.failed",
                f"{ended.command}: {ended.trouble.message}",
                "info" if refused else "warn",
                {
                    "evidence": ended.trouble.evidence,
                    "remedy": ended.trouble.remedy,
                    "who": asking(),
                    **changed,
                },
            )
        events = self._journal.since(self._first_event[started.id], 100)
        if ended.trouble is None and not is_told():
            self._note_done(ended, before)
        self._results[started.id] = replace(ended, events=events)

    def _note_done(self, ended: CommandResult, before: str) -> None:
        """Write down who did it, where the command itself does not."""
        if not CALLABLE[ended.command].acts or not (who := asking()):
            return
        told = ended.result.get("report") or next(iter(ended.result.values()), "done")
        data = {"who": who, "before": before, "after": self._read_status().in_words, "result": told}
        self._journal.record("command.done", f"{ended.command} by {who}", "info", data)
