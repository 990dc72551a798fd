"""Requests' bodies: read within limits, held within a budget, given up piece by piece."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.types import Receive

from a40console.gateway.departure import ClientLeftError
from a40console.gateway.refusals import Refusal
from a40console.gateway.toplevel import Members, MemberScanner

MIB = 1024 * 1024
_PIECE_BYTES = 64 * 1024
"""Smaller pieces are joined up to this, so that a dribbling client costs no more than its bytes."""

_VALUE_LIMIT_BYTES = 4096
_BUSY_RETRY_S = 5.0
_LENGTH_DIGITS = 18

Piece: TypeAlias = bytes | bytearray


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What bodies may take."""

    request_bytes: int = 32 * MIB
    """The largest body that is accepted."""

    held_bytes: int = 256 * MIB
    """What all bodies that are not yet sent to the engine may take together."""

    wait_s: float = 30.0
    """How long a body waits for room, unread, before the client is told to come back."""

    idle_s: float = 10.0
    """How long a client may send nothing while its body is being read."""

    slowest_bytes_per_s: float = 16 * 1024
    """Beyond `idle_s`, a body that comes more slowly is given up: others need its room."""

    def __post_init__(self) -> None:
        if self.request_bytes > self.held_bytes:
            raise ValueError("one body must fit into what all bodies may take")


class HeldBudget:
    """The bytes of all bodies in memory: first come, first served."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()

    @property
    def held_bytes(self) -> int:
        """What is promised or held now."""
        return self._held

    async def take(self, size: int, timeout_s: float) -> bool:
        """Wait until so many bytes fit and take them; False when they did not fit in time."""
        if not size:
            return True
        if not self._queue and self._held + size <= self._limit:
            self._held += size
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (turn, size)
        self._queue.append(place)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except TimeoutError:
            pass
        except BaseException:
            if _granted(turn):
                self.give_back(size)
            raise
        finally:
            if place in self._queue:
                self._queue.remove(place)
                self._admit()
        return _granted(turn)

    def give_back(self, size: int) -> None:
        """Free so many bytes; whoever waits longest is next."""
        self._held -= size
        self._admit()

    def _admit(self) -> None:
        while self._queue:
            turn, size = self._queue[0]
            if self._held + size > self._limit:
                return
            self._queue.popleft()
            if not turn.done():
                self._held += size
                turn.set_result(None)


def _granted(turn: asyncio.Future[None]) -> bool:
    return turn.done() and not turn.cancelled()


class Body:
    """One request's body, in the pieces in which it came, with its share of the budget."""

    def __init__(self, budget: HeldBudget) -> None:
        self.members: Members | None = None
        """Its top-level members, where it is a JSON object."""

        self.length = 0
        self._budget = budget
        self._taken = 0
        self._pieces: deque[Piece] = deque()
        self._kept: tuple[tuple[Piece, ...], Members | None, int] | None = None
        self._is_read = False
        self._discarded = False

    async def reserve(self, size: int, wait_s: float) -> None:
        """Take room for more of the body.

        Raises:
            Refusal: If there is none in time.
        """
        if not await self._budget.take(size, wait_s):
            raise Refusal(
                503,
                f"The gateway holds as many request bodies as it may; none of {wait_s:g} s made "
                "room for this one. Send it again.",
                retry_after_s=_BUSY_RETRY_S,
            )
        self._taken += size

    @property
    def reserved(self) -> int:
        """The room that was taken and not given back."""
        return self._taken

    def append(self, piece: bytes) -> None:
        """The next piece, as it came."""
        self.length += len(piece)
        last = self._pieces[-1] if self._pieces else None
        if last is None or len(last) + len(piece) > _PIECE_BYTES:
            self._pieces.append(piece)
        elif isinstance(last, bytearray):
            last += piece
        else:
            self._pieces[-1] = bytearray(last + piece)

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """The top-level values of these names, as far as the body has them and they are short."""
        values: dict[str, Any] = {}
        spans = self.members.spans if self.members else {}
        for name in names:
            start, end = spans.get(name, (0, 0))
            if 0 < end - start <= _VALUE_LIMIT_BYTES:
                with suppress(ValueError, RecursionError):
                    values[name] = json.loads(self._read(start, end).decode())
        return values

    def set_values(self, values: Mapping[str, object]) -> None:
        """Set top-level values: in the places of the old ones, else at the end of the object.

        Only bytes are spliced, so the rest is as the client wrote it. Where the body is no JSON
        object nothing is set. The members' places are unknown afterwards.
        """
        members, self.members = self.members, None
        if members is None:
            return
        spans, close = members.spans, members.close
        texts = {
            name: json.dumps(value, separators=(",", ":")).encode()
            for name, value in values.items()
        }
        added = b",".join(
            json.dumps(name).encode() + b":" + text
            for name, text in texts.items()
            if name not in spans
        )
        if added:
            self._replace(close, close, (b"," if spans else b"") + added)
        # From the last to the first: what stands before a place does not move.
        for name in sorted(spans.keys() & texts.keys(), key=spans.__getitem__, reverse=True):
            self._replace(*spans[name], texts[name])

    def _read(self, start: int, end: int) -> bytes:
        """The bytes between two places of the body."""
        if len(self._pieces) == 1:
            return bytes(self._pieces[0][start:end])
        found = bytearray()
        at = 0
        for piece in self._pieces:
            if at >= end:
                break
            found += piece[max(0, start - at) : max(0, end - at)]
            at += len(piece)
        return bytes(found)

    def _replace(self, start: int, end: int, text: bytes) -> None:
        """Put a text in the place of what stands between two places of the body."""
        pieces: deque[Piece] = deque()
        at = 0
        for piece in self._pieces:
            if at <= start < at + len(piece):
                pieces.append(piece[: start - at] + text + piece[end - at :])
            elif not start < at < end:
                pieces.append(piece)
            elif rest := piece[end - at :]:
                pieces.append(rest)
            at += len(piece)
        self._pieces = pieces
        self.length += len(text) - (end - start)

    async def sent(self) -> AsyncIterator[Piece]:
        """The pieces in order; each is given up, and its room with it, once it is sent."""
        pieces = self._pieces
        while pieces:
            piece = pieces.popleft()
            yield piece
            self._give_back(len(piece))
        self._give_back(self._taken)

    def whole(self) -> bytes:
        """All of it as it came; it stays held."""
        return b"".join(self._pieces)

    def rewrite(self, data: bytes) -> None:
        """Put other bytes in its place; they go out, and are given up, piece by piece as well."""
        self.members = None
        self.length = len(data)
        self._pieces = deque(
            data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)
        )

    def keep(self) -> None:
        """Keep it as it is now, beyond its sending and outside of the budget."""
        self._kept = tuple(self._pieces), self.members, self.length

    def restore(self) -> None:
        """Put back what was kept."""
        if self._kept is not None:
            pieces, self.members, self.length = self._kept
            self._pieces = deque(pieces)

    def let_go(self) -> None:
        """Keep nothing any more but what is still to be sent."""
        self._kept = None

    def hold(self, reading: asyncio.Future[Any]) -> None:
        """Keep it until a thread that reads it is done, whoever discards it meanwhile."""
        self._is_read = True
        reading.add_done_callback(self._let_go)

    def discard(self) -> None:
        """Give up whatever is still held; what a thread reads, once it is done."""
        self._discarded = True
        self._kept = None
        if not self._is_read:
            self._pieces.clear()
            self._give_back(self._taken)

    def _let_go(self, _: asyncio.Future[Any]) -> None:
        self._is_read = False
        if self._discarded:
            self.discard()

    def _give_back(self, size: int) -> None:
        size = min(size, self._taken)
        self._taken -= size
        self._budget.give_back(size)


def declared_length(headers: Mapping[str, str]) -> int | None:
    """The length that a request says its body has; None where it says none."""
    declared = headers.get("content-length")
    if declared is None or not declared.isdecimal() or len(declared) > _LENGTH_DIGITS:
        return None
    return int(declared)


async def read_body(
    receive: Receive, declared: int | None, budget: HeldBudget, limits: BodyLimits
) -> Body:
    """Read a request's body; while there is no room for it, it is left unread at the client.

    `declared` is its Content-Length.

    Raises:
        Refusal: If it is too large, finds no room, or stops coming.
        ClientLeftError: If the client leaves meanwhile.
    """
    if declared is not None and declared > limits.request_bytes:
        raise _too_large(limits)
    body = Body(budget)
    scanner = MemberScanner()
    try:
        await body.reserve(declared or 0, limits.wait_s)
        clock = asyncio.get_running_loop().time
        waited_s, more = 0.0, True
        while more:
            # Every byte buys time: one now and then does not hold the room for ever.
            allowed_s = limits.idle_s + body.length / limits.slowest_bytes_per_s
            asked_s = clock()
            piece, more = await _next_piece(
                receive, min(limits.idle_s, max(0.0, allowed_s - waited_s))
            )
            waited_s += clock() - asked_s
            if body.length + len(piece) > limits.request_bytes:
                raise _too_large(limits)
            if body.length + len(piece) > body.reserved:
                await body.reserve(len(piece), limits.wait_s)
            scanner.feed(piece)
            body.append(piece)
    except BaseException:
        body.discard()
        raise
    body.members = scanner.finish()
    return body


async def _next_piece(receive: Receive, idle_s: float) -> tuple[bytes, bool]:
    try:
        async with asyncio.timeout(idle_s):
            message = await receive()
    except TimeoutError as error:
        raise Refusal(
            408, f"The request's body comes too slowly: nothing for {idle_s:.3g} s."
        ) from error
    if message["type"] == "http.disconnect":
        raise ClientLeftError
    return message.get("body", b""), message.get("more_body", False)


def _too_large(limits: BodyLimits) -> Refusal:
    return Refusal(
        413,
        f"The request's body is larger than the {limits.request_bytes / MIB:g} MiB that the "
        "gateway accepts.",
    )
