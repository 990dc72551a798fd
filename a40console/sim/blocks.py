"""The KV cache: blocks of tokens, shared by whoever begins alike, evicted oldest first. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

_ROOT = 0x9E3779B97F4A7C15


@dataclass(slots=True)
class Block:
    """One block of the pool."""

    number: int
    key: int | None = None
    """Names its tokens and all before them; None until it is full."""

    holders: int = 0


@dataclass(slots=True)
class Table:
    """The blocks that one sequence holds, in order."""

    blocks: list[Block] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    """Names of its full blocks, as far as they are known."""


def block_keys(
    tokens: Sequence[int], size: int, *, known: Sequence[int] = (), salt: int = 0
) -> list[int]:
    """The names of all full blocks of a sequence, continuing from those already known."""
    keys = list(known)
    before = keys[-1] if keys else _ROOT ^ salt
    for start in range(len(keys) * size, len(tokens) - size + 1, size):
        before = hash((before, *tokens[start : start + size]))
        keys.append(before)
    return keys


class BlockPool:
    """A fixed number of blocks, each held by sequences, kept for reuse, or never used."""

    def __init__(self, blocks: int, block_tokens: int, *, caching: bool) -> None:
        self.block_tokens = block_tokens
        self.caching = caching
        self._blocks = [Block(number) for number in range(blocks)]
        self._idle: OrderedDict[int, Block] = OrderedDict(
            (block.number, block) for block in self._blocks
        )
        """Held by nobody, the one to take first in front."""

        self._by_key: dict[int, Block] = {}

    @property
    def size(self) -> int:
        """Blocks in all."""
        return len(self._blocks)

    @property
    def held(self) -> int:
        """Blocks that sequences hold."""
        return len(self._blocks) - len(self._idle)

    @property
    def reusable(self) -> int:
        """Blocks that nobody holds and that still know their tokens."""
        return sum(1 for block in self._by_key.values() if not block.holders)

    def hits(self, keys: Sequence[int]) -> int:
        """How many of the first blocks are there already."""
        if not self.caching:
            return 0
        count = 0
        for key in keys:
            if key not in self._by_key:
                break
            count += 1
        return count

    def admit(self, keys: Sequence[int], hits: int, more: int) -> Table | None:
        """A table of the first `hits` named blocks and `more` fresh ones; None without room."""
        shared = [self._by_key[key] for key in keys[:hits]]
        idle = sum(1 for block in shared if not block.holders)
        if len(self._idle) - idle < more:
            return None
        for block in shared:
            self._hold(block)
        table = Table(shared, list(keys[:hits]))
        table.blocks += [self._take() for _ in range(more)]
        return table

    def extend(self, table: Table, tokens: int) -> bool:
        """Room for so many tokens in all; whether there was."""
        lacking = -(-tokens // self.block_tokens) - len(table.blocks)
        if lacking > len(self._idle):
            return False
        table.blocks += [self._take() for _ in range(max(0, lacking))]
        return True

    def name(self, table: Table, keys: Sequence[int]) -> None:
        """Give full blocks their names, so that others find them."""
        if not self.caching:
            return
        for index in range(len(table.keys), len(keys)):
            block = table.blocks[index]
            table.keys.append(keys[index])
            if keys[index] not in self._by_key:
                block.key = keys[index]
                self._by_key[keys[index]] = block

    def release(self, table: Table) -> None:
        """Give the blocks back; the end of a sequence is evicted before its beginning."""
        for block in reversed(table.blocks):
            block.holders -= 1
            if not block.holders:
                self._idle[block.number] = block
                if block.key is None:
                    self._idle.move_to_end(block.number, last=False)
        table.blocks, table.keys = [], []

    def forget(self) -> bool:
        """Let every block forget its tokens; False, and nothing done, while any is held."""
        if self.held:
            return False
        for block in self._by_key.values():
            block.key = None
        self._by_key.clear()
        return True

    def _hold(self, block: Block) -> None:
        if not block.holders:
            del self._idle[block.number]
        block.holders += 1

    def _take(self) -> Block:
        _, block = self._idle.popitem(last=False)
        if block.key is not None:
            del self._by_key[block.key]
            block.key = None
        block.holders = 1
        return block
