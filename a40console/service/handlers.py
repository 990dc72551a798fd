"""The commands that the service carries out, by their ids in the command table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from a40console.config import Settings
from a40console.errors import RefusedError, UsageError
from a40console.model.event import NOTE_KIND
from a40console.operations.operator import EngineOperator
from a40console.operations.roles import Recorder
from a40console.service.asked_seconds import MOST_DRAIN_S, asked_seconds
from a40console.service.notes import cleaned
from a40console.service.probe import probe_request
from a40console.service.tasks import Handler

EMBEDDED_PROFILE = "smollm2-135m"
ANSWER_GRACE_S = 0.3
"""How long a service that was told to stop still answers, so that its last result is read."""


class Handlers:
    """Carries out commands on the engine, the gateway and the service, and `others`."""

    def __init__(
        self,
        *,
        operator: EngineOperator,
        settings: Settings,
        has_gpu: Callable[[], bool],
        gateway: Callable[[], tuple[str, str | None]],
        stop: Callable[[], None],
        record: Recorder,
        others: Mapping[str, Handler],
    ) -> None:
        self._operator = operator
        self._settings = settings
        self._has_gpu = has_gpu
        self._gateway = gateway
        self._stop = stop
        self._record = record
        self._others = others

    def table(self) -> dict[str, Handler]:
        """Command id to what does it."""
        return {
            "engine.start": self._start,
            "engine.stop": self._stop_engine,
            "engine.restart": self._restart,
            "engine.switch": self._switch,
            "engine.apply": self._apply,
            "engine.speculation": self._speculation,
            "engine.clean": self._clean,
            "request.test": self._test,
            "note.add": self._note,
            **self._others,
            "service.stop": self._stop_service,
        }

    def default_profile(self) -> str:
        """The profile that is started when none is named.

        Raises:
            RefusedError: If there is a GPU and nothing says what should run on it.
        """
        if self._settings.profile:
            return self._settings.profile
        if self._has_gpu():
            raise RefusedError(
                "This machine has a GPU: name the profile to run on it",
                remedy="See them with: a40console profiles list",
            )
        return EMBEDDED_PROFILE

    async def _start(self, arguments: Mapping[str, str]) -> dict[str, str]:
        name = _named(arguments) if "profile" in arguments else self.default_profile()
        await self._operator.start(name)
        return {"profile": name}

    async def _stop_engine(self, arguments: Mapping[str, str]) -> dict[str, str]:
        return {"report": await self._operator.stop()}

    async def _restart(self, arguments: Mapping[str, str]) -> dict[str, str]:
        return await self._operator.restart(drain_s=_drain_s(arguments))

    async def _switch(self, arguments: Mapping[str, str]) -> dict[str, str]:
        return await self._operator.switch(_named(arguments), drain_s=_drain_s(arguments))

    async def _apply(self, arguments: Mapping[str, str]) -> dict[str, str]:
        shown = arguments.get("changes", "")
        return await self._operator.apply(shown, drain_s=_drain_s(arguments))

    async def _speculation(self, arguments: Mapping[str, str]) -> dict[str, str]:
        mode = arguments.get("mode", "")
        result = await self._operator.speculate(mode, drain_s=_drain_s(arguments))
        return result | {"mode": mode}

    async def _clean(self, arguments: Mapping[str, str]) -> dict[str, str]:
        return {"report": await self._operator.clean()}

    async def _test(self, arguments: Mapping[str, str]) -> dict[str, str]:
        profile = self._operator.status.profile
        url, token = self._gateway()
        return await probe_request(url, token, profile.public_name if profile else "none")

    async def _note(self, arguments: Mapping[str, str]) -> dict[str, str]:
        text = cleaned(arguments.get("text", ""))
        self._record(NOTE_KIND, text)
        return {"report": f"Noted: {text}"}

    async def _stop_service(self, arguments: Mapping[str, str]) -> dict[str, str]:
        living = self._operator.status.living
        report = "the engine keeps running" if living else "no engine runs"
        if arguments.get("engine") == "yes":
            try:
                report = await self._operator.stop()
            except RefusedError:
                report = "no engine ran"
        await self._operator.settle()
        asyncio.get_running_loop().call_later(ANSWER_GRACE_S, self._stop)
        return {"report": report}


def _drain_s(arguments: Mapping[str, str]) -> float | None:
    """How long running requests may take to end; None where the settings say it."""
    return asked_seconds(arguments, "drain_s", most=MOST_DRAIN_S)


def _named(arguments: Mapping[str, str]) -> str:
    name = arguments.get("profile", "")
    if not name.strip():
        raise UsageError("No profile is named", remedy="See them with: a40console profiles list")
    return name
