"""What a client asks of the Messages API, in the form in which the engine takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from a40console.gateway.anthropic.identity import identity_of, tool_durations
from a40console.gateway.anthropic.normalise import normalise
from a40console.gateway.anthropic.parsing import parse_object, too_deep
from a40console.gateway.dialect import Dialect
from a40console.model.session import Identity, Outline, Purpose


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool's result that the newest turn brings."""

    tool_use_id: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the Messages API, understood."""

    identity: Identity
    body: dict[str, Any]
    """What goes to the engine, or to the translation: normalised, the served model's name in it."""

    model: str | None
    """The model as the client wrote it; answers echo it."""

    stream: bool
    max_tokens: int | None
    """The client's own limit, before it is fitted to the engine; None where counting needs none."""

    outline: Outline
    tool_answers: tuple[ToolAnswer, ...]
    """The results in the newest turn, in their order."""

    tool_durations: tuple[tuple[str, float], ...]
    """Tool and seconds that it ran, as the client's hint header says of the tools just run."""

    removed: Mapping[str, int]
    """What did not go to the engine as it came, by kind."""

    safeguards: bool
    """The client expects a classifier of its tool calls behind the API; here is none."""

    purpose: Purpose


def read_asked(
    raw: bytes, headers: Headers, path: str, dialect: Dialect, *, counting: bool = False
) -> Asked:
    """Read a body of /v1/messages, or with `counting` of its count_tokens.

    `path` is the address as the client wrote it, any prefix included.

    Raises:
        Refusal: If the body cannot be understood, in words for the client.
    """
    asked = parse_object(raw)
    try:
        taken = normalise(asked, dialect, counting=counting)
    except RecursionError as error:
        raise too_deep() from error
    return Asked(
        identity=identity_of(
            headers, path, asked.get("metadata"), billed_as_subagent=taken.billed_as_subagent
        ),
        body=taken.body,
        model=taken.model,
        stream=asked.get("stream") is True,
        max_tokens=taken.max_tokens,
        outline=taken.outline,
        tool_answers=tuple(ToolAnswer(*answer) for answer in taken.tool_answers),
        tool_durations=tool_durations(headers),
        removed=taken.removed,
        safeguards=bool(asked.get("safeguards")),
        purpose=taken.purpose,
    )
