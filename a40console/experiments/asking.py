"""Requests for an answer of a given length, in either dialect.

An arm is comparable only where every answer is equally long. vLLM, llama.cpp and the simulated
engine take `ignore_eos` on the OpenAI routes; where a target refuses it, and on the Messages route,
answers end where the model ends them, which is told as a doubt.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

from a40console.experiments.bench import ArmFailedError, Bench, Request
from a40console.experiments.transcript import PATHS
from a40console.model.run import Dialect
from a40console.model.run_result import Doubt

WARM_UP = "warm-up"
"""The arm of what is sent before anything is measured."""

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
        self, text: str, place: Place, *, output_tokens: int, temperature: float, seed: int
    ) -> Request:
        """One question, answered in `output_tokens`; sampling is seeded where the target can."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": output_tokens,
            "temperature": temperature,
        }
        if self.dialect == "openai":
            body["seed"] = seed
        if self.forces_length:
            body["ignore_eos"] = True
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
    request = asking.request(
        "Count from one to twenty.",
        place,
        output_tokens=_FIRST_TOKENS,
        temperature=0.0,
        seed=bench.seed,
    )
    status, error = 0, ""
    for _ in range(_TRIES):
        reply = await bench.client.send(request)
        status, error = reply.status, reply.sample.error
        if not error or 400 <= status < 500:
            break
    return status, error
