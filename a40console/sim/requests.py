"""One request as the simulated engine knows it, from its order to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from a40console.sim.blocks import Table
from a40console.sim.sheets import Regime
from a40console.sim.text import answer, token_id

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a client asks for."""

    request_id: str
    external_id: str
    """The id that the client gave, or the one that was made for it."""

    prompt: tuple[int, ...]
    max_tokens: int
    answer_tokens: int
    """What the model would write if it were let."""

    regime: Regime = "session"
    seed: int = 0
    garbled: bool = False
    words: tuple[str, ...] = ()
    """What the model will say, where that was written down; else it makes something up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one pass brought one request."""

    request_id: str
    at_s: float
    tokens: tuple[str, ...]
    finish_reason: FinishReason | None = None


@dataclass(slots=True, eq=False)
class Request:
    """A request under way."""

    order: Order
    arrived_s: float
    ready_s: float
    """When it is tokenised and the scheduler sees it."""

    tokens: list[int] = field(default_factory=list)
    """Prompt and answer so far, as the engine sees them."""

    keys: list[int] = field(default_factory=list)
    table: Table | None = None
    """None while it waits."""

    computed: int = 0
    """Tokens whose KV entries are there."""

    cached: int | None = None
    """Prompt tokens that were there already; None until it was admitted."""

    generated: int = 0
    passes: int = 0
    preemptions: int = 0
    scheduled_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    finish_reason: FinishReason | None = None
    ended_s: float | None = None
    dice: Random = field(default_factory=Random)
    _words: Iterator[str] = field(default_factory=lambda: iter(()))

    @classmethod
    def of(cls, order: Order, arrived_s: float, ready_s: float, seed: int) -> Request:
        """A request for an order; the engine's seed and its own throw its dice."""
        return cls(
            order=order,
            arrived_s=arrived_s,
            ready_s=ready_s,
            tokens=list(order.prompt),
            dice=Random(seed * 1_000_003 + order.seed),  # noqa: S311 - to be repeated
            _words=iter(order.words)
            if order.words
            else answer(order.regime, order.seed, garbled=order.garbled),
        )

    @property
    def decoding(self) -> bool:
        """Whether everything but the newest token is computed."""
        return self.generated > 0 and self.computed >= len(self.tokens) - 1

    @property
    def left(self) -> int:
        """Tokens that it will still emit."""
        return min(self.order.answer_tokens, self.order.max_tokens) - self.generated

    @property
    def phase(self) -> Literal["queued", "prefill", "decode"]:
        """Where it is."""
        if self.generated:
            return "decode"
        return "queued" if self.table is None else "prefill"

    def write(self, count: int, at_s: float) -> tuple[str, ...]:
        """Emit its next tokens, all of one pass."""
        words = tuple(next(self._words) for _ in range(count))
        self.tokens.extend(map(token_id, words))
        self.generated += count
        self.passes += 1
        self.first_token_s = at_s if self.first_token_s is None else self.first_token_s
        self.last_token_s = at_s
        return words

    @property
    def natural_end(self) -> FinishReason:
        """How it ends if nobody ends it."""
        return "stop" if self.order.answer_tokens <= self.order.max_tokens else "length"
