"""Messages for an engine whose template may know nothing of system turns within a conversation.

What becomes of a message depends on those before it, never on what is asked later: the prompt of
a later turn begins with the prompt of the earlier one, and the prefix cache keeps its worth. The
one thing that looks ahead is a system turn after an answer: where it was the newest message once,
it stays the user's for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from a40console.gateway.anthropic.blocks import BlockReader, Piece, listed, one_text
from a40console.gateway.anthropic.busters import BILLING_LINE, Tally, without_busters
from a40console.gateway.anthropic.foreign import as_text, text_of
from a40console.gateway.anthropic.tools import ToolChanges
from a40console.gateway.refusals import Refusal
from a40console.model.session import BlockKind


@dataclass(slots=True)
class Turn:
    """One message of those that the engine gets."""

    role: Literal["user", "assistant", "system"]
    pieces: list[Piece] = field(default_factory=list)
    open: bool = False
    """Made of a system turn: the user's own words, when they come, go on with it."""


class Conversation:
    """Takes the client's messages one by one and keeps them as the engine will see them."""

    def __init__(self, *, keep: bool, images: bool, tally: Tally) -> None:
        self._keep = keep
        self._tally = tally
        self.changes = ToolChanges()
        self._reader = BlockReader(images=images, tally=tally, referenced=self.changes.referenced)
        self.head: list[Piece] = []
        """The system prompt, with system messages that stand before the first turn."""

        self.turns: list[Turn] = []
        self.effort: object = None
        """The newest message's own wish for effort; None where none has any."""

        self.billed_as_subagent = False
        """The billing line says that a sub-agent asks."""

    @property
    def billed(self) -> bool:
        """A billing line was there: it is Claude Code that asks."""
        return self._tally[BILLING_LINE] > 0

    def system(self, content: object) -> None:
        """The top-level system prompt."""
        self.head.extend(self._system_pieces(content, None, "system"))

    def message(self, number: int, message: object) -> None:
        """The next message.

        Raises:
            Refusal: If it cannot be understood.
        """
        if not isinstance(message, dict):
            raise Refusal(400, f"messages.{number}: must be an object with role and content.")
        config = message.get("output_config")
        if isinstance(config, dict) and config.get("effort") is not None:
            self.effort = config["effort"]
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self._reader.answers.clear()
            self._add("assistant", self._reader.pieces(content, "assistant", number))
        elif role == "user":
            self._add("user", self._reader.pieces(content, "user", number))
        else:
            pieces = self._system_pieces(content, number, f"messages.{number}.content")
            if pieces:
                self._system_turn(pieces)

    def answers(self) -> list[tuple[str, bool]]:
        """The tool results since the assistant spoke last."""
        return self._reader.answers

    def messages(self) -> list[dict[str, Any]]:
        """What the engine gets: one message at least, where all of them were the head's."""
        self._give_to_user()
        return [_message(turn) for turn in self.turns or (Turn("user"),)]

    def _add(self, role: Literal["user", "assistant"], pieces: list[Piece]) -> None:
        if role == "assistant":
            self._give_to_user()
        last = self.turns[-1] if self.turns else None
        if last is not None and last.open and role == "user":
            last.open = False
            last.pieces.extend(pieces)
            return
        self.turns.append(Turn(role, pieces))

    def _system_turn(self, pieces: list[Piece]) -> None:
        """Put a system turn where it neither moves nor is the last word.

        After a user's turn it always joins that turn: there it was the newest message once, and a
        prompt that ends in a system turn derails tool calls. After an answer it may keep its place
        only before the user's next words.
        """
        last = self.turns[-1] if self.turns else None
        if last is None:
            self.head.extend(pieces)
        elif last.role == "user":
            last.pieces.extend(_folded(pieces))
        elif self._keep:
            self.turns.append(Turn("system", pieces))
        else:
            self.turns.append(Turn("user", _folded(pieces), open=True))

    def _give_to_user(self) -> None:
        """System turns that nobody spoke after but the model: they are, or were, the last word."""
        said: list[Piece] = []
        while self.turns and self.turns[-1].role == "system":
            said[:0] = _folded(self.turns.pop().pieces)
        if said:
            self.turns.append(Turn("user", said))

    def _system_pieces(self, content: object, number: int | None, where: str) -> list[Piece]:
        kind: BlockKind = "system" if number is None else "system turn"
        pieces = []
        for block in listed(content, where):
            said = self._system_text(block, number is not None)
            if said:
                pieces.append(Piece(kind, number, {"type": "text", "text": said}))
        return pieces

    def _system_text(self, block: dict[str, Any], inline: bool) -> str:
        if inline and (told := self.changes.read(block)) is not None:
            return told
        if block.get("type") not in ("text", None):
            self._tally["unknown block as text"] += 1
            return as_text(block)
        text, subagent = without_busters(text_of(block.get("text")), self._tally)
        self.billed_as_subagent = self.billed_as_subagent or subagent
        return text


def _folded(pieces: list[Piece]) -> list[Piece]:
    """A system turn's texts, marked in the way in which Claude Code marks its own reminders."""
    said = "\n".join(piece.block["text"] for piece in pieces)
    text = f"<system-reminder>\n{said}\n</system-reminder>"
    block = {"type": "text", "text": text}
    return [Piece("system turn", pieces[0].message, block, folded=True)]


def _message(turn: Turn) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for piece in turn.pieces:
        if piece.folded and blocks and blocks[-1]["type"] == "tool_result":
            # A text of its own after a tool's result is a new question to some templates, which
            # then drop the reasoning of the turns before it: they would be rewritten.
            blocks[-1] = _with_reminder(blocks[-1], piece.block)
        else:
            blocks.append(piece.block)
    text = one_text(blocks)
    if turn.role == "system":
        return {"role": "system", "content": "\n".join(block["text"] for block in blocks)}
    return {"role": turn.role, "content": blocks if text is None else text}


def _with_reminder(result: dict[str, Any], reminder: dict[str, Any]) -> dict[str, Any]:
    content = result["content"]
    if isinstance(content, list):
        return {**result, "content": [*content, reminder]}
    text = f"{content}\n\n{reminder['text']}" if content else reminder["text"]
    return {**result, "content": text}
