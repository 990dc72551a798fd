"""What the console changes in a running engine, through vLLM's own EngineClient."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

EXTENSION = "depth.DepthWorker"
"""How the name that the engine's worker extension was given ends, where it is ours."""

START_DEPTH_VARIABLE = "A40CONSOLE_SPECULATION_DEPTH"
"""The depth to begin with, where that is not the deepest."""

ANSWER_S = 30.0
"""How long an engine is waited for: it answers between two passes, and one may take seconds."""

REFRESH_S = 10.0
"""How old what the worker said may be before it is asked again: asking takes its time from it."""

CONTROLS = ("speculation", "abort", "reset-prefix-cache", "sleep", "wake", "pause", "resume")
SLEEP_LEVELS = (1, 2)

_logger = logging.getLogger("vllm.plugins.a40console")


class RefusedError(Exception):
    """It cannot be done as things are; the text says why."""


class UnansweredError(Exception):
    """The engine did not answer in time, or could not do it; the text says which."""


class Controls:
    """The controls of one engine; each waits for the engine, a limited time.

    Args:
        engine: vLLM's EngineClient.
        steps: The engine steps counted so far; None where they are not counted.
        clock: Monotonic seconds.
    """

    def __init__(
        self, engine: Any, steps: Callable[[], int | None], clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._steps = steps
        self._clock = clock
        self._turn = asyncio.Lock()
        self._why_not = dict(why_not(engine))
        self._depth: dict[str, Any] = {
            "depth": None,
            "deepest": 0,
            "method": None,
            "why_not": self._why_not.get("speculation", "the worker was not asked yet"),
        }
        self._asked_s = float("-inf")
        self._asking: asyncio.Future[None] | None = None
        self._abandoned: set[asyncio.Future[Any]] = set()
        """Calls that took too long and are not over: an engine that hangs answers none."""

    async def begin(self) -> None:
        """Asks the worker what it can, and sets the depth that the engine is to begin with."""
        if "speculation" in self._why_not:
            return
        wanted = os.environ.get(START_DEPTH_VARIABLE, "")
        try:
            if wanted.isdecimal():
                await self.set_speculation(int(wanted))
            else:
                await self._ask_worker()
        except (RefusedError, UnansweredError) as error:
            _logger.warning("a40console: the depth of speculation was not set: %s", error)

    def told(self) -> dict[str, Any]:
        """The state that goes with every answer: the depth, and per control why not, if so.

        The worker is asked again in passing where what it said has grown old.
        """
        self._refresh()
        return {
            "speculation": dict(self._depth),
            "controls": {name: self._refusal(name) for name in CONTROLS},
        }

    def _refusal(self, name: str) -> str | None:
        if name == "speculation" and name not in self._why_not:
            refusal: str | None = self._depth["why_not"]
            return refusal
        return self._why_not.get(name)

    async def set_speculation(self, tokens: int) -> dict[str, Any]:
        """Proposes at most so many tokens a pass from the next pass on.

        Raises:
            RefusedError: If this engine cannot, or not so deep.
            UnansweredError: If it does not answer.
        """
        self._require("speculation")
        async with self._turn:
            told = await self._ask_worker(tokens)
            if told["why_not"]:
                raise RefusedError(told["why_not"])
            if tokens > told["deepest"]:
                raise RefusedError(
                    f"{tokens} is deeper than the {told['deepest']} that it was started with"
                )
            if told["depth"] != tokens:
                raise UnansweredError(f"the depth stays {told['depth']}")
            return {"after": tokens, "steps": self._steps(), **told}

    async def speculation(self) -> dict[str, Any]:
        """The depth as the worker reports it, now.

        Raises:
            RefusedError: If this engine was started without our extension.
            UnansweredError: If it does not answer.
        """
        self._require("speculation")
        return dict(await self._ask_worker())

    async def abort(self, request_id: str) -> bool:
        """Ends a request, by the engine's id of it or by the client's; whether there was one."""
        self._require("abort")
        states = self._engine.output_processor.request_states
        internal = request_id in states
        if not internal and not any(s.external_req_id == request_id for s in states.values()):
            return False
        await self._answer(self._engine.abort(request_id, internal=internal))
        return True

    async def reset_prefix_cache(self) -> bool:
        """Forgets every cached prefix; False while a running request holds blocks."""
        self._require("reset-prefix-cache")
        return bool(await self._answer(self._engine.reset_prefix_cache()))

    async def sleep(self, level: int) -> None:
        """Frees the GPU's memory: 1 keeps the weights in the host's, 2 drops them."""
        self._require("sleep")
        if level not in SLEEP_LEVELS:
            raise RefusedError(f"level must be one of {SLEEP_LEVELS}, not {level}")
        await self._answer(self._engine.sleep(level))

    async def wake(self) -> None:
        """Takes the memory again."""
        self._require("wake")
        await self._answer(self._engine.wake_up())

    async def pause(self) -> None:
        """Schedules nothing more: what runs stays where it is, with its cache."""
        self._require("pause")
        await self._answer(self._engine.pause_generation(mode="keep", clear_cache=False))

    async def resume(self) -> None:
        """Schedules again."""
        self._require("resume")
        await self._answer(self._engine.resume_generation())

    def _require(self, name: str) -> None:
        if reason := self._why_not.get(name):
            raise RefusedError(reason)

    async def _ask_worker(self, tokens: int | None = None) -> dict[str, Any]:
        if tokens is None:
            call = self._engine.collective_rpc("a40console_depth")
        else:
            call = self._engine.collective_rpc("a40console_set_depth", args=(tokens,))
        told = agreed(await self._answer(call))
        self._depth = {name: told.get(name) for name in self._depth}
        self._asked_s = self._clock()
        return told

    def _refresh(self) -> None:
        idle = (self._asking is None or self._asking.done()) and not self._abandoned
        due = self._clock() - self._asked_s >= REFRESH_S
        if idle and due and "speculation" not in self._why_not:
            self._asking = asyncio.ensure_future(self._ask_in_passing())

    async def _ask_in_passing(self) -> None:
        with contextlib.suppress(UnansweredError):
            async with self._turn:
                await self._ask_worker()

    async def _answer(self, call: Awaitable[Any]) -> Any:
        """The engine's answer; a call that takes too long goes on without us."""
        waiting = asyncio.ensure_future(call)
        await asyncio.wait({waiting}, timeout=ANSWER_S)
        if not waiting.done():
            self._abandoned.add(waiting)
            waiting.add_done_callback(self._over)
            raise UnansweredError(
                f"the engine did not answer in {ANSWER_S:.0f} s; what it was asked for it may "
                "still do"
            )
        try:
            return waiting.result()
        except Exception as error:
            raise UnansweredError(f"the engine could not: {error!r}") from error

    def _over(self, call: asyncio.Future[Any]) -> None:
        """Takes an abandoned call's error, which asyncio would otherwise report as lost."""
        self._abandoned.discard(call)
        with contextlib.suppress(asyncio.CancelledError):
            call.exception()


def why_not(engine: Any) -> Iterable[tuple[str, str]]:
    """The controls that this engine lacks, each with the reason."""
    needed = {
        "abort": "abort",
        "reset-prefix-cache": "reset_prefix_cache",
        "sleep": "sleep",
        "wake": "wake_up",
        "pause": "pause_generation",
        "resume": "resume_generation",
        "speculation": "collective_rpc",
    }
    for control, method in needed.items():
        if not callable(getattr(engine, method, None)):
            yield control, f"this vLLM's engine client lacks {method}"
    config = getattr(engine, "vllm_config", None)
    extension = getattr(getattr(config, "parallel_config", None), "worker_extension_cls", "")
    if not getattr(getattr(config, "model_config", None), "enable_sleep_mode", False):
        reason = "the engine was started without --enable-sleep-mode"
        yield from (("sleep", reason), ("wake", reason))
    if getattr(config, "speculative_config", None) is None:
        yield "speculation", "the engine was started without speculation"
    elif not str(extension).endswith(EXTENSION):
        yield "speculation", "the engine was started without our worker extension"


def agreed(answers: Any) -> dict[str, Any]:
    """What the workers say, where they all say the same.

    Raises:
        UnansweredError: If they do not, or say something else.
    """
    if not isinstance(answers, list) or not answers:
        raise UnansweredError(f"the workers' answer is not understood: {answers!r}")
    first = answers[0]
    if not isinstance(first, dict) or any(answer != first for answer in answers):
        raise UnansweredError(f"the workers do not agree: {answers!r}")
    return first
