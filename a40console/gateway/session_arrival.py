"""A request of a route whose prompts are not outlined, as the book of sessions reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from a40console.gateway.anthropic.identity import identity_of
from a40console.gateway.session_entries import Answered
from a40console.model.session import Identity, Outline, Purpose


@dataclass(frozen=True, slots=True)
class PlainArrival:
    """Who sends it and what it asks for; what it has in common with the one before is not known."""

    identity: Identity
    model: str | None
    stream: bool
    max_tokens: int | None
    outline: Outline = ()
    tool_answers: tuple[Answered, ...] = ()
    tool_durations: tuple[tuple[str, float], ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)
    safeguards: bool = False
    purpose: Purpose = "turn"


def plain_arrival(
    headers: Headers, address: str, *, model: str | None, stream: bool, max_tokens: int | None
) -> PlainArrival:
    """A request by its headers and its address, any prefix included."""
    return PlainArrival(identity_of(headers, address), model, stream, max_tokens)
