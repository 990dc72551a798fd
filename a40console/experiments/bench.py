"""What an experiment works with: clients, the engine's controls, records, limits.

Implemented where the run's process is put together: an experiment needs nothing of the console.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from a40console.model.experiment import Experiment, Value
from a40console.model.figures import Figure, Missing
from a40console.model.run import RunPlan, RunTarget
from a40console.model.run_record import ArmEnd, Record, Sample
from a40console.model.run_result import Doubt, RunResult

ArmRepeat: TypeAlias = tuple[str, int]
"""An arm, and which of its repeats."""


class RunStoppedError(Exception):
    """The run is to end now: cancelled, or a limit met. What was measured till then stands."""


class ArmFailedError(Exception):
    """An arm cannot go on: the engine died, or refuses what the arm is made of. Says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, in the OpenAI or the Anthropic dialect."""

    path: str
    """`/v1/chat/completions`, `/v1/completions`, `/v1/messages`."""

    body: Mapping[str, Any]
    """Without `stream`; the client adds it, and what makes the server tell usage."""

    arm: str
    repeat: int = 0
    index: int = 0
    role: str = "turn"
    warm_up: bool = False
    due_s: float | None = None
    """On the run's clock; None: at once (a closed loop)."""

    timeout_s: float = 600.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    sample: Sample
    """Already recorded."""

    text: str = ""
    status: int = 0
    """HTTP status; 0 where none came."""

    events: tuple[str, ...] = ()
    """Types of the stream's events in order, each run of equal ones once."""

    blocks: tuple[Mapping[str, Any], ...] = ()
    """Content blocks or tool calls as the answer ended up: type, text, name, arguments, id."""

    stop_reason: str = ""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """Per token, where they were asked for: token, logprob, top_logprobs."""


class Client(Protocol):
    """Sends requests, stamps them at the socket, and records a sample of each."""

    async def send(self, request: Request) -> Reply:
        """One request, streamed; whatever goes wrong is in the sample.

        Raises:
            RunStoppedError: Where the run was cancelled or met a limit meanwhile.
        """

    async def send_whole(self, request: Request) -> Reply:
        """One request that is not streamed."""

    async def closed(self, streams: Sequence[Sequence[Request]]) -> Sequence[Reply]:
        """Several streams at once, each sending its next request when its last one ended."""


class Engine(Protocol):
    """The engine under test, as far as it may be steered; each says why where it may not."""

    async def window_tokens(self) -> int | Missing:
        """Tokens that a request may hold, prompt and answer."""

    async def count_tokens(self, path: str, body: Mapping[str, Any]) -> int | Missing:
        """Prompt tokens of a request, by the engine's tokenizer."""

    async def reset_cache(self) -> Missing | None:
        """Empty the prefix cache; None when it was done."""

    async def speculation(self, setting: str) -> Missing | None:
        """`off`, `on` or a depth, live; None when it is in force.

        What was in force before the run is put back by whoever put the run together.
        """

    async def restart(self, speculation: str) -> Missing | None:
        """Start the engine anew, with `off`: without speculation configured at all, or `as-was`.

        A run that ends in between leaves `as-was` to whoever put it together, as above.
        """

    async def speculation_depth(self) -> int | Missing:
        """The deepest that it was started for; 0 where it was started without."""

    async def canary(self) -> Sequence[tuple[str, bool | None, str]]:
        """The canary's checks: name, passed (None: skipped), evidence."""


class Bench(Protocol):
    """One run's workplace."""

    client: Client
    engine: Engine
    target: RunTarget
    settled: Mapping[str, Value]
    model: str
    """The name that requests ask for."""

    simulated: bool
    """Whether the engine's words are invented, and no model's."""

    seed: int
    usd_per_h: Figure

    def now_s(self) -> float:
        """Seconds since the run began, monotonic."""

    def record(self, record: Record) -> None:
        """Append to the run's file."""

    def doubt(self, doubt: Doubt) -> None:
        """Record a doubt and keep it for the result."""

    async def step(self, arm: str, done: int, total: int, text: str) -> None:
        """Tell progress.

        Raises:
            RunStoppedError: Where the run was cancelled or met a limit.
        """

    def arm(self, name: str, repeat: int) -> AbstractAsyncContextManager[None]:
        """Around one repeat of an arm: what the counters, clocks and loads did, as an `ArmEnd`.

        The arm's samples are those recorded within; warm-ups and what is in no score stay outside.
        Doubts are told too, but for this client's speed: `saturation` judges it by the figures that
        an experiment tells.
        """

    def samples(self, arm: str, repeat: int | None = None) -> Sequence[Sample]:
        """What was recorded of an arm."""

    def arm_ends(self, arm: str) -> Sequence[ArmEnd]:
        """What was recorded around the repeats of an arm that have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What planning may rest on."""

    generation_tokens_per_s: Figure
    """Of one stream, lately or from earlier runs."""

    prefill_tokens_per_s: Figure
    window_tokens: Figure
    usd_per_h: Figure
    speculation_depth: int | Missing
    can_reset_cache: bool
    live_speculation: bool


class Design(Protocol):
    """One experiment."""

    offer: Experiment

    def plan(self, settled: Mapping[str, Value], known: Known, target: RunTarget) -> RunPlan:
        """What it would take; `refusal` where it cannot be run so."""

    async def run(self, bench: Bench) -> RunResult:
        """Measure and conclude.

        Raises:
            ArmFailedError: Where nothing usable can come of it.
        """

    def partial(self, bench: Bench, why: str) -> RunResult:
        """The result of what was measured until it was stopped."""
