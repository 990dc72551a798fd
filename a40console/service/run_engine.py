"""The engine under test as an experiment steers it: by the service, which alone acts on engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from a40console.errors import ConsoleError, NoServiceError, TimedOutError
from a40console.model.control import CommandResult
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.operations.asking import EngineAsk
from a40console.operations.canary import run_canary
from a40console.service.client import ServiceClient
from a40console.service.run_place import Place, ask_json, listed_models
from a40console.service.run_stop import RunStop

NOT_OURS = Missing("the engine at a URL is not ours to steer")
NO_TOKENIZER = Missing("the server does not count a prompt's tokens")
POLL_S = 0.2
RETRY_S = 1.0
SERVICE_GONE_S = 60.0
"""A service that crashed is back within seconds; one that is gone for longer does nothing."""


class RunEngine:
    """Steers the engine of one run.

    Args:
        run_id: The run: the service lets it alone act meanwhile.
        service: A client of the service that calls itself by the run's name.
        place: The target as it is reached now.
        moved: Called after the engine was started anew.
        stop: Ends what is waited for.
    """

    def __init__(
        self,
        *,
        run_id: str,
        service: ServiceClient,
        place: Callable[[], Place],
        moved: Callable[[], Awaitable[None]],
        stop: RunStop,
    ) -> None:
        self._run_id = run_id
        self._service = service
        self._place = place
        self._moved = moved
        self._stop = stop

    async def window_tokens(self) -> int | Missing:
        """Tokens that a request may hold, prompt and answer."""
        place = self._place()
        if place.engine is not None:
            window = (await self._patiently(self._service.snapshot)).engine.max_model_len
            known = number(window)
            return window if isinstance(window, Missing) else int(known or 0)
        listed = await self._stop.bounded(listed_models(place.endpoint))
        told = [each.get("max_model_len") for each in listed if each.get("id") == place.model]
        known_tokens = next((each for each in told if isinstance(each, int)), None)
        return Missing("/v1/models does not tell it") if known_tokens is None else known_tokens

    async def count_tokens(self, path: str, body: Mapping[str, Any]) -> int | Missing:
        """Prompt tokens of a request, by the engine's tokenizer."""
        return await self._stop.bounded(_counted(self._place(), path, body))

    async def reset_cache(self) -> Missing | None:
        """Empty the prefix cache; None when it was done."""
        return await self._do("cache.reset")

    async def speculation(self, setting: str) -> Missing | None:
        """`off`, `on` or a depth, live; None when it is in force."""
        if self._place().engine is None:
            return NOT_OURS
        try:
            way = await self._patiently(lambda: self._service.speculation_way(setting))
        except ConsoleError as error:
            return Missing(_told(error))
        if way.how != "live":
            return Missing(f"it cannot be changed while the engine runs: {way.why}")
        return await self._do("engine.speculation", mode=setting)

    async def restart(self, speculation: str) -> Missing | None:
        """Start the engine anew, with `off`: without speculation configured at all, or `as-was`."""
        done = await self._do("run.restart", id=self._run_id, speculation=speculation)
        if done is None:
            await self._moved()
        return done

    async def speculation_depth(self) -> int | Missing:
        """The deepest that it was started for; 0 where it was started without."""
        engine = self._place().engine
        if engine is None:
            return NOT_OURS
        asked = engine.profile.speculation
        return asked.tokens if asked is not None and asked.ready else 0

    async def canary(self) -> Sequence[tuple[str, bool | None, str]]:
        """The canary's checks: name, passed (None: skipped), evidence."""
        place = self._place()
        engine = place.engine
        profile = engine.profile if engine else _unknown_profile(place.model)
        async with EngineAsk(place.endpoint) as ask:
            report = await self._stop.bounded(run_canary(ask, profile))
        return [(check.name, check.passed, check.evidence) for check in report.checks]

    async def _do(self, command: str, **arguments: str) -> Missing | None:
        """A command of the service, to its end; why it was not done."""
        if self._place().engine is None:
            return NOT_OURS
        try:
            result = await self._patiently(
                lambda: self._service.start(command, **arguments), again=(NoServiceError,)
            )
            result = await self._ended(result)
        except ConsoleError as error:
            return Missing(_told(error))
        if result.trouble is not None:
            return Missing(_told(ConsoleError.from_trouble(result.trouble)))
        return None if result.state == "done" else Missing(f"{command} was {result.state}")

    async def _ended(self, result: CommandResult) -> CommandResult:
        while result.state == "running":
            await self._stop.bounded(asyncio.sleep(POLL_S))
            started = result
            result = await self._patiently(lambda: self._service.result(started.id))  # noqa: B023
        return result

    async def _patiently(
        self,
        ask: Callable[[], Awaitable[Any]],
        again: tuple[type[ConsoleError], ...] = (NoServiceError, TimedOutError),
    ) -> Any:
        """The service's answer, waited for where it restarts just now.

        Args:
            ask: Asks it.
            again: What to ask again after. A service that was only slow has taken a command:
                given to it twice it would be done twice.
        """
        left = int(SERVICE_GONE_S / RETRY_S)
        while True:
            try:
                return await self._stop.bounded(ask())
            except again:
                if (left := left - 1) < 0:
                    raise
                await self._stop.bounded(asyncio.sleep(RETRY_S))


def _told(error: ConsoleError) -> str:
    return f"{error.message}: {error.evidence}" if error.evidence else error.message


def _unknown_profile(model: str) -> Profile:
    """For a server of which nothing else is known: every check is tried."""
    return Profile(name=model, kind="vllm", model=model, tool_call_parser="unknown")


async def _counted(place: Place, path: str, body: Mapping[str, Any]) -> int | Missing:
    asked = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    if path.endswith("/messages"):
        told = await ask_json(place.endpoint, "POST", "/v1/messages/count_tokens", asked)
        return _count(told.get("input_tokens"))
    if place.kind == "llamacpp":
        return await _counted_by_llama(place, asked)
    keys = ("messages", "tools", "chat_template_kwargs", "prompt")
    rendered = {key: asked[key] for key in keys if key in asked} | {"model": place.model}
    if "messages" in rendered:
        rendered["add_generation_prompt"] = True
    return _count((await ask_json(place.counters, "POST", "/tokenize", rendered)).get("count"))


async def _counted_by_llama(place: Place, asked: Mapping[str, Any]) -> int | Missing:
    prompt = asked.get("prompt")
    if prompt is None:
        keys = ("messages", "tools", "chat_template_kwargs")
        chat = {key: asked[key] for key in keys if key in asked}
        prompt = (await ask_json(place.counters, "POST", "/apply-template", chat)).get("prompt")
    if not isinstance(prompt, str):
        return NO_TOKENIZER
    words = {"content": prompt, "add_special": True, "parse_special": True}
    tokens = (await ask_json(place.counters, "POST", "/tokenize", words)).get("tokens")
    return len(tokens) if isinstance(tokens, list) else NO_TOKENIZER


def _count(told: object) -> int | Missing:
    return told if isinstance(told, int) else NO_TOKENIZER
