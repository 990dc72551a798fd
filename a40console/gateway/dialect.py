"""What the engine that serves understands of the Messages API, and by which route it is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

from a40console.gateway.upstream import Upstream

Route: TypeAlias = Literal["native", "translated"]
"""The engine's own Messages API, or its chat completions with our translation around them."""

SystemTurns: TypeAlias = Literal["keep", "fold"]
"""Where a system message in the middle of a conversation goes: its place, or into its neighbour."""

Counting: TypeAlias = Literal["messages", "tokenize", "none"]
"""Who counts a prompt: the engine's count_tokens, its /tokenize over chat messages, or nobody."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one run of an engine wants to be asked."""

    route: Route
    system_turns: SystemTurns
    """`keep` only where a later system message was seen to leave the turns before it alone."""

    images: bool
    """Whether an image block reaches the model; where not, text stands in its place."""

    counting: Counting
    served_name: str
    """The model's name for the engine; whatever the client calls it."""

    max_model_len: int | None
    """Tokens that one request may take, prompt and answer; None where the engine does not say."""

    evidence: tuple[str, ...]
    """What was seen, in sentences for the operator."""

    running_usage: bool = False
    """Whether each chunk of a chat answer may be asked to count the tokens so far."""

    results_first: bool = True
    """Whether the native API leaves tools' results before the text that follows them in a turn."""

    schemas: bool = True
    """Whether the native API holds an answer to a JSON schema that is asked for."""

    budgets: bool = False
    """Whether the native API takes a budget for thinking; vLLM without a parser refuses it."""

    tells_stops: bool = True
    """Whether the native API says which stop sequence ended an answer."""

    clamps: bool = False
    """Whether a limit that is more than the window leaves is taken, and means all that is left.

    vLLM 0.32 does so, up to the whole window; 0.27 refuses it.
    """

    def for_body(self, body: dict[str, Any]) -> Dialect:
        """The dialect for one request: what the native API would not honour is translated."""
        if self.route == "translated":
            return self
        config = body.get("output_config")
        schema = isinstance(config, dict) and config.get("format") is not None
        stops = bool(body.get("stop_sequences"))
        if (schema and not self.schemas) or (stops and not self.tells_stops):
            return replace(self, route="translated")
        return self

    def says(self) -> str:
        """The route in a few words, with how system messages and counting go."""
        counted = {
            "messages": "tokens counted by the engine",
            "tokenize": "tokens counted by the engine's tokenizer",
            "none": "tokens not counted",
        }
        return ", ".join(
            (
                "native Messages API" if self.route == "native" else "translated to chat",
                f"system turns {'kept' if self.system_turns == 'keep' else 'folded'}",
                "images" if self.images else "no images",
                counted[self.counting],
            )
        )


class DialectOf(Protocol):
    """Knows how an engine wants to be asked."""

    async def of(self, upstream: Upstream) -> Dialect:
        """The dialect of the engine that serves, found out where it is not known."""
