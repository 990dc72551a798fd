"""The gate before the engine: while it is closed, requests wait for the engine that comes next.

They wait in the order in which they came, and only so many, of so many bytes, for so long: whoever
comes beyond that is told at once to come back. One whose engine was lost stands again where it
stood, before all that came after it, and finds room however many these are. Whoever closes the gate
knows that an engine is expected; while none is, the gate stays open and a request is refused as
ever.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from a40console.gateway.bodies import MIB
from a40console.gateway.meter import Passage
from a40console.gateway.refusals import Refusal

RETRY_S = 10.0
"""A client that found no room is asked to come back then: a switch lasts longer than a moment."""

SPACING_S = 0.005
"""Between two requests that are let go: the engine gets them in their order, not all at once."""

PATIENCE_S = 15.0
"""So long it may last until it is known that an engine has died: vLLM takes 3 to 5 s to exit."""

POLLS = 16
"""Questions such as `/v1/models` that may wait at once: apart from the requests, and not shown."""

POLL_S = 30.0
"""So long one of them waits at most: whoever polls asks again."""

KEPT_BODY_BYTES = 4 * MIB
"""Larger bodies are not kept for a second sending: those of images, not those of long talks."""


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """What the gate may hold."""

    requests: int = 128
    bytes: int = 128 * MIB
    """Of their bodies together; those kept for a second sending may take as much again."""

    seconds: float = 600.0
    """For one request; clients wait ten minutes for an answer by themselves."""


DEFAULT_LIMITS = HoldLimits()


@dataclass(eq=False, slots=True)
class _Place:
    turn: asyncio.Future[None]
    size: int
    number: int
    is_back: bool


class AdmissionGate:
    """Lets requests to the engine, or holds them in a bounded queue.

    Args:
        limits: What may wait.
        patience_s: How long a request that its engine gave no answer waits for the gate to be
            closed, as a sign that the engine has died; 0 where nobody closes it.
        on_resent: Told of each request that is sent a second time, before it is.
        on_unkept: Told of each that cannot be, with its size: its engine was lost, and so is it.
    """

    def __init__(
        self,
        limits: HoldLimits = DEFAULT_LIMITS,
        *,
        patience_s: float = PATIENCE_S,
        on_resent: Callable[[Passage], object] = lambda passage: None,
        on_unkept: Callable[[Passage, int], object] = lambda passage, size: None,
    ) -> None:
        self.closed: str | None = None
        """Why requests are held; None while it is open."""

        self.engine_expected = False
        """Whether it is closed because an engine comes, and not by an operator's pause alone."""

        self.is_free = True
        """Whether a request may pass at once: the gate is open, and nobody waits any more."""

        self.under_way = 0
        """Requests that have passed and are not over."""

        self.limits = limits
        self.patience_s = patience_s
        self.on_resent = on_resent
        self.on_unkept = on_unkept
        self._queue: deque[_Place] = deque()
        self._numbers = itertools.count()
        self._polls: set[asyncio.Future[None]] = set()
        self._held_bytes = 0
        self._back = 0
        self._kept_bytes = 0
        self._next: asyncio.TimerHandle | None = None
        self._dismissed = False
        self._quiet = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many requests are held."""
        return len(self._queue)

    @property
    def polls(self) -> int:
        """How many questions wait that cost the engine nothing: they are no requests."""
        return len(self._polls)

    @property
    def held_bytes(self) -> int:
        """What the bodies of those take that wait, and were not kept already."""
        return self._held_bytes

    # --- Who switches the engine --------------------------------------------------------------

    def close(self, why: str, *, engine_expected: bool = True) -> None:
        """Hold what comes from now on; `why` in words that go on from "while"."""
        self.closed = why
        self.engine_expected = engine_expected
        self.is_free = False
        if not engine_expected:
            self._end_polls()
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def open(self) -> None:
        """Let those go who wait, the first one first."""
        if self.closed is not None:
            self.closed = None
            self.engine_expected = False
            self._end_polls()
            self._let_go()

    def dismiss(self) -> None:
        """Refuse those who wait and whoever would: the gateway is about to end."""
        self._dismissed = True
        for place in self._queue:
            if not place.turn.done():
                place.turn.set_exception(_ending())
        self._end_polls(_ending())

    async def drained(self, timeout_s: float) -> int:
        """Wait until no request is under way any more; how many still are when the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.under_way:
                    self._quiet.clear()
                    await self._quiet.wait()
        return self.under_way

    # --- What passes --------------------------------------------------------------------------

    def check_room(self, size: int) -> None:
        """See whether a body of so many bytes may wait, before it is read.

        Raises:
            Refusal: If not.
        """
        limits = self.limits
        if len(self._queue) - self._back >= limits.requests:
            most = f"{limits.requests} requests"
        elif self._held_bytes + size > limits.bytes:
            most = f"{limits.bytes / MIB:g} MiB of requests"
        else:
            return
        raise self._refusal(f"as many as it may ({most})")

    def check_poll_room(self) -> None:
        """See whether one more of the questions that cost the engine nothing may wait.

        Raises:
            Refusal: If not.
        """
        if len(self._polls) >= POLLS:
            raise self._poll_refusal(f"as many as {POLLS} at once")

    async def expected(self) -> None:
        """Wait while an engine is expected, apart from the requests: for what costs it nothing.

        Raises:
            Refusal: If there is no room to wait, or the wait was too long.
        """
        if not self.engine_expected:
            return
        if self._dismissed:
            raise _ending()
        self.check_poll_room()
        turn = asyncio.get_running_loop().create_future()
        self._polls.add(turn)
        try:
            async with asyncio.timeout(POLL_S):
                await turn
        except TimeoutError:
            raise self._poll_refusal(f"and none longer than {POLL_S:g} s") from None
        finally:
            self._polls.discard(turn)

    def number(self) -> int:
        """The next one's place among all that ever came."""
        return next(self._numbers)

    async def enter(self, size: int, number: int | None = None, *, is_back: bool = False) -> None:
        """Pass, at once or in one's turn. Then comes `leave`.

        Args:
            size: The body's, in bytes.
            number: Its place among all that came; None to come last.
            is_back: It has passed before, and its engine was lost: it is bounded by what may pass.

        Raises:
            Refusal: If there is no room to wait, or the wait was too long.
        """
        if self.is_free:
            self.under_way += 1
            return
        if self._dismissed:
            raise _ending()
        if not is_back or not self.limits.requests:
            self.check_room(size)
        turn = asyncio.get_running_loop().create_future()
        place = _Place(turn, size, self.number() if number is None else number, is_back)
        self._take_place(place)
        try:
            async with asyncio.timeout(self.limits.seconds):
                await place.turn
        except TimeoutError:
            pass
        except BaseException:
            if _granted(place):
                self.leave()
            raise
        finally:
            self._give_up(place)
        if not _granted(place):
            raise self._refusal(f"and none longer than {self.limits.seconds:g} s")

    def leave(self) -> None:
        """A request that has passed is over."""
        self.under_way -= 1
        if not self.under_way:
            self._quiet.set()

    # --- Bodies that may be sent again --------------------------------------------------------

    def keep(self, size: int) -> bool:
        """Whether a body may be kept until its answer begins; then comes `let_body_go`."""
        if size > KEPT_BODY_BYTES or self._kept_bytes + size > self.limits.bytes:
            return False
        self._kept_bytes += size
        return True

    def let_body_go(self, size: int) -> None:
        """A body that was kept no longer is."""
        self._kept_bytes -= size

    # --- The queue ----------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Let the first one pass, and the next a moment later."""
        self._next = None
        while self._queue:
            place = self._queue[0]
            self._give_up(place)
            if not place.turn.done():
                self.under_way += 1
                place.turn.set_result(None)
                break
        if self._queue:
            self._next = asyncio.get_running_loop().call_later(SPACING_S, self._let_go)
        else:
            self.is_free = True

    def _take_place(self, place: _Place) -> None:
        """Among those that wait, behind all that came before it."""
        at = len(self._queue)
        while at and self._queue[at - 1].number > place.number:
            at -= 1
        self._queue.insert(at, place)
        if place.is_back:
            self._back += 1
        else:
            self._held_bytes += place.size

    def _give_up(self, place: _Place) -> None:
        if place not in self._queue:
            return
        self._queue.remove(place)
        if place.is_back:
            self._back -= 1
        else:
            self._held_bytes -= place.size

    def _end_polls(self, refusal: Refusal | None = None) -> None:
        """Let all of them go on at once, or refuse them."""
        for turn in self._polls:
            if turn.done():
                continue
            if refusal is None:
                turn.set_result(None)
            else:
                turn.set_exception(refusal)

    def _refusal(self, bound: str) -> Refusal:
        told = f"The gateway holds requests{self._while()}, {bound}. Send this one again."
        return Refusal(529, told, retry_after_s=RETRY_S)

    def _poll_refusal(self, bound: str) -> Refusal:
        told = f"No engine serves yet{self._while()}: questions like this one wait, {bound}."
        return Refusal(503, f"{told} Ask again.", retry_after_s=RETRY_S)

    def _while(self) -> str:
        return f" while {self.closed.rstrip('.')}" if self.closed else ""


def _granted(place: _Place) -> bool:
    turn = place.turn
    return turn.done() and not turn.cancelled() and turn.exception() is None


def _ending() -> Refusal:
    return Refusal(
        503, "The gateway ends while it holds this request. Send it again.", retry_after_s=RETRY_S
    )
