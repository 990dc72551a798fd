"""One block of a message, in the form that every engine of ours takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from a40console.gateway.anthropic.busters import Tally
from a40console.gateway.anthropic.foreign import as_text, text_of
from a40console.gateway.refusals import Refusal
from a40console.gateway.translation.pieces import UNPARSED
from a40console.model.session import BlockKind

Content: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant"]

_IMAGE_SOURCES = {"base64": "data", "url": "url"}


@dataclass(slots=True)
class Piece:
    """A block on its way to the engine, with where it came from."""

    kind: BlockKind
    message: int | None
    """Number of the client's message; None for tools and the system prompt."""

    block: Content
    folded: bool = False
    """A system turn's text that stands in a neighbour."""


class BlockReader:
    """Reads the blocks of messages for an engine that sees images, or does not.

    `referenced` gets the names of the tools that results make available.
    """

    def __init__(self, *, images: bool, tally: Tally, referenced: list[str]) -> None:
        self._images = images
        self._tally = tally
        self._referenced = referenced
        self.answers: list[tuple[str, bool]] = []
        """Tool results read, by id, with whether they are errors."""

    def pieces(self, content: object, role: Role, message: int) -> list[Piece]:
        """A message's content as blocks; a text is one block, empty texts are none.

        Raises:
            Refusal: If the content is neither text nor blocks.
        """
        read = [
            self._piece(block, role, message)
            for block in listed(content, f"messages.{message}.content")
        ]
        return [piece for piece in read if piece is not None]

    def _piece(self, block: Content, role: Role, message: int) -> Piece | None:
        kind, given = block.get("type"), role == "user"
        if kind == "text":
            said = text_of(block.get("text"))
            return _text("user text" if given else "assistant text", message, said)
        if kind == "tool_result" and given:
            return Piece("tool_result", message, self._result(block))
        if kind == "tool_use" and not given:
            return Piece("tool_use", message, self._use(block))
        if kind in ("thinking", "redacted_thinking"):
            return self._thinking(block, message) if not given else None
        if kind == "image" and given and (image := self._image(block)):
            return Piece("image", message, image)
        return _text("other", message, self._foreign(block))

    def _thinking(self, block: Content, message: int) -> Piece | None:
        """Reasoning without its signature, which only its own service can read."""
        said = text_of(block.get("thinking"))
        if block.get("type") == "redacted_thinking" or not said:
            self._tally["unreadable thinking"] += 1
            return None
        self._tally["thinking signature"] += bool(block.get("signature"))
        return Piece("thinking", message, {"type": "thinking", "thinking": said})

    def _use(self, block: Content) -> Content:
        """A tool call; one whose arguments never were JSON goes on as the client wrote it."""
        asked = block.get("input")
        if not isinstance(asked, dict):
            asked = _arguments(asked)
        return {
            "type": "tool_use",
            "id": text_of(block.get("id")),
            "name": text_of(block.get("name")),
            "input": asked,
        }

    def _result(self, block: Content) -> Content:
        """A tool's result, its content one text wherever it holds nothing but texts."""
        told, failed = text_of(block.get("tool_use_id")), block.get("is_error") is True
        self.answers.append((told, failed))
        content = block.get("content")
        parts = [
            part for one in listed(content, "a tool_result's content") if (part := self._part(one))
        ]
        joined = one_text(parts)
        result: Content = {"type": "tool_result", "tool_use_id": told}
        result["content"] = parts if joined is None else joined
        if failed:
            result["is_error"] = True
        return result

    def _part(self, block: Content) -> Content | None:
        if block.get("type") == "image" and (image := self._image(block)):
            return image
        said = text_of(block.get("text")) if block.get("type") == "text" else self._foreign(block)
        return {"type": "text", "text": said} if said else None

    def _image(self, block: Content) -> Content | None:
        """The image as the engine takes it; None where this model or engine cannot see it."""
        source = block.get("source")
        if not self._images or not isinstance(source, dict):
            return None
        kind = source.get("type")
        member = _IMAGE_SOURCES.get(kind) if isinstance(kind, str) else None
        if member is None or not isinstance(source.get(member), str):
            return None
        taken = {key: source[key] for key in ("type", "media_type", member) if key in source}
        return {"type": "image", "source": taken}

    def _foreign(self, block: Content) -> str:
        kind = block.get("type")
        if kind == "tool_reference":
            self._referenced.append(text_of(block.get("tool_name")) or text_of(block.get("name")))
        known = kind if isinstance(kind, str) and kind in _NAMED else "unknown block"
        self._tally[f"{known} as text"] += 1
        return as_text(block)


_NAMED = frozenset(
    {
        "compaction",
        "container_upload",
        "document",
        "image",
        "search_result",
        "server_tool_use",
        "tool_reference",
        "web_search_tool_result",
    }
)


def listed(content: object, where: str) -> list[Content]:
    """Content as a list of blocks: a text is one of them, nothing is none.

    Raises:
        Refusal: If it is something else.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [_block(one, where) for one in content]
    raise Refusal(400, f"{where}: must be a text or a list of content blocks.")


def one_text(parts: list[Content]) -> str | None:
    """The text of content that is one text or none; None where it must stay a list."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        text: str = parts[0]["text"]
        return text
    return None


def _block(one: object, where: str) -> Content:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, dict):
        return one
    raise Refusal(400, f"{where}: each block must be an object.")


def _text(kind: BlockKind, message: int, said: str) -> Piece | None:
    return Piece(kind, message, {"type": "text", "text": said}) if said else None


def _arguments(written: object) -> Content:
    """Arguments that are not an object: as one where they can be read, else as they came."""
    if written is None:
        return {}
    if isinstance(written, str):
        try:
            read = json.loads(written or "{}")
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return read
    return {UNPARSED: written}
