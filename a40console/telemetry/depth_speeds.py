"""How fast an engine decoded at each depth of speculation and each load, since it began.

Measured is only what decoded steadily: at one depth, for the same number of requests, with hardly
a prompt in between. Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.freshness import MEASURED_STALE_S
from a40console.model.snapshot import DepthSpeed
from a40console.model.wording import duration
from a40console.telemetry.reading import EngineReading
from a40console.telemetry.windows import RATE_WINDOW_S

STRETCH_S = 15.0
"""A speed is the mean of the last so many seconds, where they all were of one kind."""

ODD_RATIO = 0.05
"""So large a share of a stretch's readings may show another number of decoding requests."""

SILENT_S = 1.0
"""No token for so long is no steady decoding."""

PROMPT_RATIO = 0.25
"""Prompt tokens computed per generated one, at most: they take some 2 % of the time then."""

NEAR_TOKENS, NEAR_RATIO = 4_096, 0.1
"""All contexts together may differ by so many tokens, or by this share, and are the same load:
reading them makes a pass some 6 % longer at most."""

ROUGH_TOKENS, ROUGH_RATIO = 16_384, 0.25
"""Contexts up to here are about the same load, a pass up to a quarter longer: the speed of the one
is an estimate of the other's."""

KEPT = 64
"""Speeds that are remembered with speculation, and as many without: the oldest goes first."""


@dataclass(frozen=True, slots=True)
class _Load:
    """What the engine works on."""

    requests: int
    """Running, in prefill or in decode."""

    decoding: int
    context_tokens: float
    """Prompts and answers so far, of all of them."""

    def is_of(self, measured: _Measured, *, roughly: bool = False) -> bool:
        """Whether a speed was measured at this load, or at about this load."""
        if self.requests != measured.requests:
            return False
        bounds = (ROUGH_TOKENS, ROUGH_RATIO) if roughly else (NEAR_TOKENS, NEAR_RATIO)
        return _within(self.context_tokens, measured.context_tokens, *bounds)


@dataclass(frozen=True, slots=True)
class _Point:
    """One reading of a stretch."""

    at_s: float
    generated: float
    computed: float
    context_tokens: float
    odd: bool


@dataclass(frozen=True, slots=True)
class _Measured:
    """A speed, and at what it was measured."""

    depth: int
    requests: int
    context_tokens: float
    tokens_per_s: float
    at_s: float


class DepthSpeeds:
    """Remembers the speeds of one engine start, fed with its readings in order of time."""

    def __init__(self) -> None:
        self._off: deque[_Measured] = deque(maxlen=KEPT)
        self._on: deque[_Measured] = deque(maxlen=KEPT)
        self._stretch: deque[_Point] = deque()
        self._depth = 0
        self._requests = 0
        self._moved_s = 0.0
        self._load: _Load | None = None

    def clear(self) -> None:
        """Forget all: the engine began again."""
        self._off.clear()
        self._on.clear()
        self._break(None)

    def take(self, reading: EngineReading) -> None:
        """Follow one reading; what does not tell depth, rows or tokens ends the stretch."""
        load, depth = _load(reading), reading.live_depth
        generated = reading.counters.get("generated_tokens")
        computed = reading.counters.get("computed_prompt_tokens")
        if load is None or depth is None or generated is None or computed is None:
            self._break(load)
            return
        if self._stretch and depth.tokens != self._depth:
            self._break(load)
        self._depth, self._load = depth.tokens, load
        self._extend(load, reading.at_s, generated, computed)
        if (measured := self._measure()) is not None:
            self._remember(measured)

    def at_this_load(self, now_s: float) -> tuple[DepthSpeed, ...]:
        """What was measured at the present load, each depth's newest, by depth; 0 is off."""
        if (load := self._load) is None or not load.requests:
            return ()
        kept = [*self._off, *self._on]
        near = {each.depth: each for each in kept if load.is_of(each)}
        rough = {each.depth: each for each in kept if load.is_of(each, roughly=True)}
        return tuple(
            DepthSpeed(
                depth=depth,
                tokens_per_s=each.tokens_per_s if depth in near else Estimated(each.tokens_per_s),
                age_s=round(now_s - each.at_s, 3),
                is_rough=depth not in near,
            )
            for depth, each in sorted((rough | near).items())
        )

    def without(self, now_s: float) -> Figure:
        """The speed without speculation at the present load, or why it is not known."""
        if self._load is None:
            return Missing("the engine does not tell its load")
        if not self._load.requests:
            return Missing("no request runs")
        off = next((each for each in self.at_this_load(now_s) if each.depth == 0), None)
        if off is None:
            return Missing(self._why_not(self._load))
        if off.age_s > MEASURED_STALE_S:
            return Missing(f"last measured {duration(off.age_s)} ago")
        return off.tokens_per_s

    def _why_not(self, load: _Load) -> str:
        """Why nothing that was measured without speculation stands for this load."""
        others = sorted({each.requests for each in self._off})
        if not others:
            return "not measured since the engine started"
        if load.requests in others:
            return "measured with other contexts only"
        loads = ", ".join(str(requests) for requests in others[:4])
        return f"measured with {loads} running, not with {load.requests}"

    def _break(self, load: _Load | None) -> None:
        self._stretch.clear()
        self._load = load

    def _extend(self, load: _Load, at_s: float, generated: float, computed: float) -> None:
        """Add a point, or begin anew with it where too many are of another load."""
        points = self._stretch
        if not points or generated != points[-1].generated:
            self._moved_s = at_s
        if points and not _is_near(
            load.context_tokens, points[-1].context_tokens + generated - points[-1].generated
        ):
            points.clear()  # a request took the place of another, with other contexts
        silent = at_s - self._moved_s >= SILENT_S
        odd = silent or not load.decoding == load.requests == self._requests
        points.append(_Point(at_s, generated, computed, load.context_tokens, odd))
        while _is_too_long(points):
            points.popleft()
        if sum(point.odd for point in points) > ODD_RATIO * len(points):
            points.clear()
            self._requests = load.requests
            if load.decoding == load.requests and not silent:
                points.append(_Point(at_s, generated, computed, load.context_tokens, odd=False))

    def _measure(self) -> _Measured | None:
        """The speed of the stretch, once it is long enough and mostly decode."""
        if not self._stretch or not self._requests:
            return None
        first, last = self._stretch[0], self._stretch[-1]
        span_s, generated = last.at_s - first.at_s, last.generated - first.generated
        if span_s < RATE_WINDOW_S or generated <= 0:
            return None
        if last.computed - first.computed > PROMPT_RATIO * generated:
            self._stretch.clear()
            return None
        contexts = [point.context_tokens for point in self._stretch]
        return _Measured(
            depth=self._depth,
            requests=self._requests,
            context_tokens=sum(contexts) / len(contexts),
            tokens_per_s=generated / span_s,
            at_s=last.at_s,
        )

    def _remember(self, measured: _Measured) -> None:
        """Keep it in place of what was measured at the same depth and load before."""
        kept = self._on if measured.depth else self._off
        load = _Load(measured.requests, measured.requests, measured.context_tokens)
        for former in tuple(kept):
            if former.depth == measured.depth and load.is_of(former):
                kept.remove(former)
        kept.append(measured)


def _load(reading: EngineReading) -> _Load | None:
    """The load that the rows show; None where a context is not told, or nothing is scheduled."""
    if reading.rows is None or reading.paused:
        return None
    running = [row for row in reading.rows if row.phase != "queued"]
    if any(row.prompt_tokens is None for row in running):
        return None
    tokens = sum((row.prompt_tokens or 0) + row.generated_tokens for row in running)
    decoding = sum(row.phase == "decode" for row in running)
    return _Load(len(running), decoding, tokens)


def _is_near(one_tokens: float, other_tokens: float) -> bool:
    """Whether contexts of so many tokens are the same load."""
    return _within(one_tokens, other_tokens, NEAR_TOKENS, NEAR_RATIO)


def _within(one_tokens: float, other_tokens: float, tokens: float, ratio: float) -> bool:
    return abs(one_tokens - other_tokens) <= max(tokens, ratio * max(one_tokens, other_tokens))


def _is_too_long(points: deque[_Point]) -> bool:
    """Whether the first is too old, or of another load while the rest is long enough alone."""
    first, last = points[0], points[-1]
    if last.at_s - first.at_s > STRETCH_S:
        return True
    enough = len(points) > 1 and last.at_s - points[1].at_s >= RATE_WINDOW_S
    return enough and not _is_near(first.context_tokens, last.context_tokens)
