"""Ways of keeping a session's context small, as pure policies over its pieces.

`cc-auto` and `cc-clear` do what Claude Code does; `per-turn` and `block` are an own agent's ways;
`none` never shrinks. All but `none` act once the context to be sent passes a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, get_args

from a40console.experiments.transcript import Piece, Pieces, tokens_of

Way: TypeAlias = Literal["cc-auto", "cc-clear", "per-turn", "block", "none"]
WAYS: tuple[Way, ...] = get_args(Way)

TOLD: Mapping[Way, str] = {
    "cc-auto": "Claude Code's way: a summary, and the session begun anew from it",
    "cc-clear": "Claude Code's way: old tool results are cleared",
    "per-turn": "an own agent's way: the two oldest messages go, turn by turn",
    "block": "an own agent's way: the oldest messages go at once, down to low_water",
    "none": "never made smaller, as the ceiling",
}
"""What each does, in words for a plan."""

RESULTS_KEPT = 3
"""Results of tools that `cc-clear` leaves."""

FILES_RELOADED = 3
"""Files that `cc-auto` reads again after a restart, the newest ones."""

CLEARED = "[Old tool result content cleared]"
CLEARED_TOKENS = 10
PAIR = 2
"""`per-turn` drops so many messages a turn: a question and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What became of a context."""

    pieces: Pieces
    """What is sent; with `summarise`, what it is before the restart."""

    removed_tokens: int = 0
    summarise: bool = False
    """Whether a summary has to be asked for, and the history begun anew from it."""

    @property
    def happened(self) -> bool:
        """Whether anything was done."""
        return self.summarise or self.removed_tokens > 0


class Shrinking(Protocol):
    """One way."""

    def __call__(self, pieces: Pieces, context_tokens: float) -> Shrunk:
        """What to send instead.

        Args:
            pieces: The history with the new message at its end, the system prompt first.
            context_tokens: What that comes to, as the engine counted the last one.
        """


def way_of(way: Way, limit_tokens: int, low_water: float) -> Shrinking:
    """A way with its limit.

    Args:
        way: Which.
        limit_tokens: Past which it acts.
        low_water: `block` goes down to this share of the room that is beside the system prompt.
    """
    return _WAYS[way](limit_tokens, low_water)


def restarted(history: Pieces, summary: Piece, reloaded: Callable[[Piece], Piece]) -> Pieces:
    """The history of `cc-auto` after its summary: the files last read again, and what is new.

    The newest message stays as it is, so that every arm answers the same one.
    """
    system, *between, new = history
    files = [piece for piece in between if piece.is_file][-FILES_RELOADED:]
    again = tuple(replace(reloaded(piece), kind="files") for piece in files)
    return (system, summary, *again, new)


def _never(_limit_tokens: int, _low_water: float) -> Shrinking:
    return lambda pieces, _context_tokens: Shrunk(pieces=pieces)


def _auto(limit_tokens: int, _low_water: float) -> Shrinking:
    def shrink(pieces: Pieces, context_tokens: float) -> Shrunk:
        # A history that has just been restarted cannot be made smaller that way.
        long = sum(piece.kind in {"assistant", "tool_result"} for piece in pieces) > PAIR
        return Shrunk(pieces=pieces, summarise=context_tokens > limit_tokens and long)

    return shrink


def _clear(limit_tokens: int, _low_water: float) -> Shrinking:
    def shrink(pieces: Pieces, context_tokens: float) -> Shrunk:
        if context_tokens <= limit_tokens:
            return Shrunk(pieces=pieces)
        results = [at for at, piece in enumerate(pieces) if piece.kind == "tool_result"]
        old = set(results[:-RESULTS_KEPT])
        kept = tuple(
            replace(piece, text=CLEARED, tokens=min(CLEARED_TOKENS, piece.tokens), is_file=False)
            if at in old and piece.text != CLEARED
            else piece
            for at, piece in enumerate(pieces)
        )
        return Shrunk(pieces=kept, removed_tokens=tokens_of(pieces) - tokens_of(kept))

    return shrink


def _per_turn(limit_tokens: int, _low_water: float) -> Shrinking:
    def shrink(pieces: Pieces, context_tokens: float) -> Shrunk:
        system, *rest = pieces
        if context_tokens <= limit_tokens or len(rest) <= PAIR:
            return Shrunk(pieces=pieces)
        return Shrunk(pieces=(system, *rest[PAIR:]), removed_tokens=tokens_of(rest[:PAIR]))

    return shrink


def _block(limit_tokens: int, low_water: float) -> Shrinking:
    def shrink(pieces: Pieces, context_tokens: float) -> Shrunk:
        if context_tokens <= limit_tokens:
            return Shrunk(pieces=pieces)
        system, *rest = pieces
        room = limit_tokens - system.tokens
        wanted = context_tokens - (system.tokens + room * low_water)
        dropped = 0
        while len(rest) > PAIR and dropped < wanted:
            dropped += tokens_of(rest[:PAIR])
            rest = rest[PAIR:]
        return Shrunk(pieces=(system, *rest), removed_tokens=dropped)

    return shrink


_WAYS: Mapping[Way, Callable[[int, float], Shrinking]] = {
    "cc-auto": _auto,
    "cc-clear": _clear,
    "per-turn": _per_turn,
    "block": _block,
    "none": _never,
}
