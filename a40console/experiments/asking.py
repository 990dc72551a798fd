"""Requests for an answer of a given length, in either dialect: every experiment's on speed.

An arm is comparable only where every answer is equally long. vLLM, llama.cpp and the simulated
engine take `ignore_eos` on the OpenAI routes; where a target refuses it, and on the Messages route,
answers end where the model ends them, which is told as a doubt.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a40console.experiments.bench import ArmFailedError, Bench, Request
from a40console.model.run import Dialect
from a40console.model.run_result import Doubt

WARM_UP = "warm-up"
"""The arm of what is sent before anything is measured."""

PATHS: Mapping[Dialect, str] = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}

_FIRST_TOKENS = 16
_TRIES = 3
_FREE_LENGTH = "free-length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a run a request stands."""

    arm: str
    repeat: int = 0
    index: int = 0
    warm_up: bool = False
    role: str = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the target is asked."""

    model: str
    dialect: Dialect
    forces_length: bool
    """Whether answers can be made to have exactly so many tokens."""

    run_mark: str
    """What this run's prompts are marked with, and no other's: a cache outlives a run."""

    def request(
        self,
        messages: Sequence[Mapping[str, str]],
        place: Place,
        *,
        output_tokens: int,
        temperature: float = 0.0,
        seed: int | None = None,
        free: bool = False,
        regime: str = "",
    ) -> Request:
        """One chat, answered in `output_tokens`.

        Args:
            messages: With `role` and `content`, the oldest first.
            place: Where in the run it stands.
            output_tokens: Of the answer.
            temperature: 0: greedy.
            seed: Of the sampling, where the target can be told.
            free: Whether the answer may end earlier, when the model is done.
            regime: Tells a simulated engine what work this is; a real one knows it from the text.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": output_tokens,
            "temperature": temperature,
        }
        if self.dialect == "anthropic":
            body["messages"] = [each for each in messages if each["role"] != "system"]
            if system := [each["content"] for each in messages if each["role"] == "system"]:
                body["system"] = "\n\n".join(system)
        else:
            body["messages"] = list(messages)
            if seed is not None:
                body["seed"] = seed
        if self.forces_length and not free:
            body["ignore_eos"] = True  # then `max_tokens` alone ends it
            if regime:
                body["vllm_xargs"] = {"regime": regime}
        return Request(
            path=PATHS[self.dialect],
            body=body,
            arm=place.arm,
            repeat=place.repeat,
            index=place.index,
            role=place.role,
            warm_up=place.warm_up,
        )


async def settle_asking(bench: Bench) -> Asking:
    """Find out, by a short request that is not measured, how the target is to be asked.

    Raises:
        ArmFailedError: Where it does not answer.
    """
    dialect = bench.target.dialect
    asking = Asking(
        model=bench.model,
        dialect=dialect,
        forces_length=dialect == "openai",
        run_mark=secrets.token_hex(8),  # no seed: the same run asked for again is another
    )
    status, error = await _tried(bench, asking)
    if error and asking.forces_length and 400 <= status < 500:
        asking = replace(asking, forces_length=False)
        status, error = await _tried(bench, asking)
    if error:
        raise ArmFailedError(f"the target does not answer: {error}")
    if not asking.forces_length:
        route = "the Messages route" if dialect == "anthropic" else "the target"
        text = f"{route} takes no fixed length: answers end where the model ends them"
        bench.doubt(Doubt(code=_FREE_LENGTH, text=text, invalidates=False))
    return asking


async def warm(bench: Bench, asking: Asking) -> None:
    """A short request that is not measured, for an engine that was just started.

    Raises:
        ArmFailedError: Where it does not answer.
    """
    _, error = await _tried(bench, asking)
    if error:
        raise ArmFailedError(f"the engine does not answer after its start: {error}")


async def gone(bench: Bench, asking: Asking) -> bool:
    """Whether the target answers nothing any more."""
    _, error = await _tried(bench, asking)
    return bool(error)


async def _tried(bench: Bench, asking: Asking) -> tuple[int, str]:
    """Status and error of a short request; one that fails once may be answered the next time."""
    place = Place(arm=WARM_UP, warm_up=True, role="probe")
    asked = [{"role": "user", "content": "Count from one to twenty."}]
    request = asking.request(asked, place, output_tokens=_FIRST_TOKENS, seed=bench.seed)
    status, error = 0, ""
    for _ in range(_TRIES):
        reply = await bench.client.send(request)
        status, error = reply.status, reply.sample.error
        if not error or 400 <= status < 500:
            break
    return status, error
