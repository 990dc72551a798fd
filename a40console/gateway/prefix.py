"""What a prompt shares with the one before it, and where the two part. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from a40console.model.session import Block, BlockKind, Outline

HEAD: frozenset[BlockKind] = frozenset({"tool", "system"})
"""What stands before the conversation; every agent of a session may share it."""

ANSWER: frozenset[BlockKind] = frozenset({"assistant text", "thinking", "tool_use"})

ALIKE_RATIO = 0.95
"""A block that changed and is at least so long, beside what it was, is mostly the same text."""

Change: TypeAlias = Literal["changed", "removed", "inserted", "cut"]
"""`cut`: the prompt ends where the one before went on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where a prompt parts from the one before it."""

    block: int
    """From 0, in the order in which the engine reads."""

    change: Change
    before: Block
    after: Block | None
    """None where the prompt is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two prompts of one agent, the later against the earlier."""

    before_characters: int
    prefix_characters: int
    """Of the blocks that both begin with."""

    shared_characters: int
    """Of these, and of the later blocks that both hold wherever they stand.

    A block that changed and is about as long as it was counts too: a date or a counter in it.
    """

    same_talk: bool
    """Whether they share an answer, or all that the earlier asked: else they are two talks."""

    answer_characters: int
    """Of the answer that follows where the earlier prompt ends."""

    parting: Parting | None
    """None where the later goes on from the earlier."""

    same: bool
    """Whether it is the same prompt again."""

    @property
    def continues(self) -> bool:
        """Whether it is another turn of the same conversation, altered or not."""
        return self.parting is None or self.same_talk


def characters(outline: Outline) -> int:
    """What a prompt comes to."""
    return sum(block.characters for block in outline)


def compare(before: Outline, after: Outline) -> Comparison:
    """What two prompts have in common."""
    common = _common(before, after)
    old, new = before[common:], after[common:]
    moved, gone = _moved(old, new)
    kept = before[:common]
    prefix = characters(kept)
    answered = any(block.kind in ANSWER for block in (*kept, *moved))
    parting = _parting(common, old, new)
    return Comparison(
        before_characters=characters(before),
        prefix_characters=prefix,
        shared_characters=prefix + characters(moved) + _retouched(parting),
        same_talk=answered or all(block.kind in HEAD for block in gone),
        answer_characters=0 if old else characters(_answer(new)),
        parting=parting,
        same=not old and not new,
    )


def _common(before: Outline, after: Outline) -> int:
    """How many blocks both begin with."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one.digest != other.digest or one.kind != other.kind:
            break
        count += 1
    return count


def _moved(old: Outline, new: Outline) -> tuple[Outline, Outline]:
    """The blocks that both hold beyond their parting, and those that the later has no more."""
    held = Counter((block.kind, block.digest) for block in new) if old else Counter()
    moved, gone = [], []
    for block in old:
        if held[block.kind, block.digest] > 0:
            held[block.kind, block.digest] -= 1
            moved.append(block)
        else:
            gone.append(block)
    return tuple(moved), tuple(gone)


def _answer(new: Outline) -> Outline:
    end = 0
    while end < len(new) and new[end].kind in ANSWER:
        end += 1
    return new[:end]


def _retouched(parting: Parting | None) -> int:
    """Characters of a block of which only a little changed."""
    if parting is None or parting.change != "changed" or parting.after is None:
        return 0
    before, after = parting.before, parting.after
    least, most = sorted((before.characters, after.characters))
    alike = before.kind == after.kind and least >= ALIKE_RATIO * most
    return before.characters if alike else 0


def _parting(common: int, old: Outline, new: Outline) -> Parting | None:
    if not old:
        return None
    if not new:
        return Parting(block=common, change="cut", before=old[0], after=None)
    change: Change = "changed"
    if len(old) > 1 and old[1].digest == new[0].digest:
        change = "removed"
    elif len(new) > 1 and new[1].digest == old[0].digest:
        change = "inserted"
    return Parting(block=common, change=change, before=old[0], after=new[0])
