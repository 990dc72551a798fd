"""Blocks of the snapshot out of one source's readings. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, inf
from operator import sub

from a40console.model.figures import Estimated, Figure, Missing, combine, number, ratio
from a40console.model.snapshot import KvCache, PrefixCache, Requests, Throughput
from a40console.telemetry.aliases import why_absent
from a40console.telemetry.reading import CounterName, EngineReading, GaugeName
from a40console.telemetry.windows import (
    LONG_WINDOW_S,
    RATE_WINDOW_S,
    Change,
    CounterRing,
    counted,
)

WARM_UP_S = 60.0
"""How long after a restart an empty cache is no finding."""

BEGINS_WITHIN_S = 1.0
"""A window is filled with generation when tokens moved so soon after its begin."""

TOO_SHORT = Missing(
    f"nothing was generated {RATE_WINDOW_S:.0f} s ago, as the window began: too short for a rate"
)
_TOO_YOUNG = Missing(f"read for less than {RATE_WINDOW_S:.0f} s")
_NO_SESSIONS = Missing("sessions are not followed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source's readings, with what the blocks say of it."""

    name: str
    ring: CounterRing
    now_s: float
    why_none: str
    """Why there is no reading, where there is none."""

    @property
    def latest(self) -> EngineReading | None:
        """Its newest reading."""
        return self.ring.latest

    @property
    def age_s(self) -> Figure:
        """Seconds since its newest reading."""
        if self.latest is None:
            return Missing(self.why_none)
        return round(max(0.0, self.now_s - self.latest.at_s), 3)

    @property
    def none(self) -> Missing:
        """What figures are without any reading."""
        return Missing(self.why_none)

    def counter(self, name: CounterName) -> Figure:
        """A counter's value since the engine began."""
        if self.latest is None:
            return self.none
        return counted(self.latest.counters.get(name), why_absent(name, self.latest))

    def gauge(self, name: GaugeName) -> Figure:
        """A gauge's value."""
        if self.latest is None:
            return self.none
        return counted(self.latest.gauges.get(name), why_absent(name, self.latest))

    def rate(self, name: CounterName, window_s: float = RATE_WINDOW_S) -> Figure:
        """A counter's growth a second in the window."""
        return self.none if self.latest is None else self.ring.rate(name, window_s)

    def change(self) -> Change | Missing:
        """The long window."""
        return self.none if self.latest is None else self.ring.change()

    def moved(self, name: CounterName) -> Figure:
        """How far a counter moved in the long window."""
        change = self.change()
        return change if isinstance(change, Missing) else change.delta(name)

    def window_s(self, window_s: float) -> float:
        """The window as far as readings cover it; its full length before the first two."""
        return round(self.ring.covered_s(window_s), 3) or window_s


def throughput(source: Source) -> Throughput:
    """The engine's speed over the last 5 s, from its counters."""
    shown = _throughput(source, RATE_WINDOW_S)
    return replace(shown, window_s=source.window_s(RATE_WINDOW_S))


def steady_tokens_per_s(source: Source) -> Figure:
    """The speed of the last 5 s where generation filled them; missing in its first seconds.

    A window that is silent at its begin says how long ago a request came, not how fast it is. One
    in which nothing was generated is 0.
    """
    rate = source.rate("generated_tokens")
    if not number(rate):
        return rate
    within = source.ring.delta("generated_tokens", RATE_WINDOW_S)
    since_then = source.ring.delta("generated_tokens", RATE_WINDOW_S - BEGINS_WITHIN_S)
    moved = number(combine(sub, within, since_then))
    if source.ring.covered_s(RATE_WINDOW_S) < RATE_WINDOW_S - BEGINS_WITHIN_S:
        return _TOO_YOUNG
    return rate if moved else TOO_SHORT


def latest_throughput(source: Source, since_s: float | None) -> Throughput:
    """The engine's speed since an instant alone; its window is 0 where nothing was read since.

    Args:
        source: Whose counters are read.
        since_s: Monotonic time of a reading; None: since the first that is kept.
    """
    latest_s = 0.0 if source.latest is None else source.latest.at_s
    window_s = inf if since_s is None else max(0.0, latest_s - since_s)
    return _throughput(source, window_s)


def _throughput(source: Source, window_s: float) -> Throughput:
    passes = decode_passes_per_s(source, window_s)
    return Throughput(
        window_s=source.ring.covered_s(window_s),
        source=source.name,
        age_s=source.age_s,
        generation_tokens_per_s=source.rate("generated_tokens", window_s),
        prefill_tokens_per_s=source.rate("computed_prompt_tokens", window_s),
        passes_per_s=passes,
        sequences_per_pass=_sequences_per_pass(source, passes, window_s),
    )


def read_bytes_per_s(source: Source) -> Figure:
    """Memory read by each GPU a second: vLLM's own model of it, so always an estimate.

    The counter is exposed always, and stays 0 unless vLLM was asked to model.
    """
    if number(source.counter("read_bytes")) == 0:
        return Missing("vLLM estimates it with --enable-mfu-metrics only")
    if source.latest is not None and "read_bytes" not in source.latest.counters:
        return Missing("the engine does not estimate it")
    rate = source.rate("read_bytes")
    known = number(rate)
    return rate if known is None else Estimated(known)


def decode_passes_per_s(source: Source, window_s: float = RATE_WINDOW_S) -> Figure:
    """Engine steps a second; those that only prefill are left out where the source tells them."""
    passes = source.rate("passes", window_s)
    prefill = source.rate("prefill_passes", window_s)
    if number(prefill) is not None:
        passes = combine(lambda all_passes, only: all_passes - only, passes, prefill)
    return combine(lambda rate: rate if rate > 0 else None, passes, reason="no pass in the window")


def _sequences_per_pass(source: Source, passes: Figure, window_s: float) -> Figure:
    """Sequences that a pass decodes for: inter-token samples a pass, or counted passes by row."""
    samples = source.rate("pass_samples", window_s)
    if number(samples) is None:
        samples = source.rate("sequence_passes", window_s)
    return ratio(samples, passes)


def requests(source: Source, *, paused_waiting: Figure | None = None) -> Requests:
    """Where requests are, by the engine's gauges.

    Args:
        source: Whose gauges.
        paused_waiting: Queued requests counted otherwise: a paused vLLM's gauges stand still.
    """
    latest = source.latest
    waiting = source.gauge("waiting") if paused_waiting is None else paused_waiting
    return Requests(
        source=source.name,
        age_s=source.age_s,
        held=0,
        waiting=waiting,
        waiting_by_reason={
            reason: counted(value, "not a number")
            for reason, value in (latest.waiting_by_reason if latest else {}).items()
        },
        running=source.gauge("running"),
        max_running=_or(source.gauge("max_running"), "the engine does not tell"),
        aborted=_or(source.counter("aborted"), "the engine does not count it"),
        failed=_or(source.counter("errors"), "the engine does not count it"),
        preemptions=source.counter("preemptions"),
        resent=Missing("only the gateway counts it"),
        gate=None,
    )


def _or(figure: Figure, reason: str) -> Figure:
    return Missing(reason) if isinstance(figure, Missing) else figure


def prefix_cache(source: Source) -> PrefixCache:
    """Hits over the prompts admitted in the last minute, and since start beside it."""
    change = source.change()
    queried, hit = _delta(change, "queried_tokens"), _delta(change, "hit_tokens")
    hit_ratio = ratio(hit, queried, reason="no prompt in the window")
    reset_s = source.ring.began_again_at_s
    if reset_s is not None and source.now_s - reset_s < WARM_UP_S and number(hit_ratio) == 0:
        hit_ratio = Missing("the engine just restarted: its cache was empty")
    return PrefixCache(
        window_s=source.window_s(LONG_WINDOW_S),
        source=source.name,
        age_s=source.age_s,
        hit_ratio=hit_ratio,
        hit_tokens=hit,
        queried_tokens=queried,
        prompts=_prompts(change, queried),
        reusable_ratio=_NO_SESSIONS,
        hit_ratio_since_start=ratio(
            source.counter("hit_tokens"), source.counter("queried_tokens"), reason="no prompt yet"
        ),
        last_loss=_NO_SESSIONS,
    )


def _prompts(change: Change | Missing, queried: Figure) -> Figure:
    """Prompts in the window: their first tokens, or at least one where only tokens were queried."""
    started = _delta(change, "first_tokens")
    if number(started) is None:
        started = _delta(change, "started")
    if number(started) is None:
        return Missing("the engine does not count prompts")
    if number(queried) and number(started) == 0:
        return Estimated(1)  # admitted, its first token still to come
    return started


def _delta(change: Change | Missing, name: CounterName) -> Figure:
    return change if isinstance(change, Missing) else change.delta(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The live requests' share of the cache, for what more would fit."""

    contexts: tuple[float, ...]
    """Prompt and generated tokens of each live request as far as known."""


def kv_cache(source: Source, *, usage: Source | None = None, load: Load) -> KvCache:
    """Where the cache's tokens are.

    Args:
        source: Tells the capacity; and the use, unless another does.
        usage: A fresher source of the used share.
        load: The requests that fill it.
    """
    capacity = source.gauge("kv_capacity_tokens")
    if "kv_held_tokens" in (source.latest.gauges if source.latest else {}):
        held, reusable = source.gauge("kv_held_tokens"), source.gauge("kv_reusable_tokens")
        capacity = _or(capacity, "llama.cpp does not say whether its slots share one cache")
        used = ratio(held, capacity)
    else:
        used = (usage or source).gauge("kv_usage_ratio")
        held = _held_tokens(source, used, capacity)
        reusable = Missing("the engine does not tell cached blocks from free ones")
    free = combine(lambda whole, *parts: whole - sum(parts), capacity, held, reusable)
    return KvCache(
        source=(usage or source).name,
        age_s=(usage or source).age_s,
        held_tokens=held,
        reusable_tokens=reusable,
        free_tokens=free,
        capacity_tokens=capacity,
        held_ratio=used,
        fits_more=_fits_more(source, capacity, held, load),
    )


def _held_tokens(source: Source, used: Figure, capacity: Figure) -> Figure:
    """Tokens of the blocks in use: exact where the share is one of whole blocks.

    vLLM keeps one block for itself, so the share is held ÷ (blocks − 1). Hybrid models and several
    engines make tokens of a share an estimate.
    """
    blocks, size = number(source.gauge("kv_blocks")), number(source.gauge("kv_block_tokens"))
    pools, whole = number(source.gauge("kv_pools")), number(capacity)
    if blocks is not None and size is not None and blocks > 1:
        held_blocks = number(combine(lambda share: share * (blocks - 1), used))
        if held_blocks is not None and pools == 1 and blocks * size == whole:
            exact = round(held_blocks)
            if abs(held_blocks - exact) < 1e-3:
                return int(exact * size)
    return combine(lambda share, tokens: share * tokens, _estimate(used), capacity)


def _estimate(figure: Figure) -> Figure:
    return Estimated(figure) if isinstance(figure, int | float) else figure


def _fits_more(source: Source, capacity: Figure, held: Figure, load: Load) -> Figure:
    """Sessions of the present mean context that the rest holds, cached blocks being evictable."""
    if not load.contexts:
        return Missing("no session to take the size of")
    mean = sum(load.contexts) / len(load.contexts)

    def fits(whole: float, used: float) -> float | None:
        return floor((whole - used) / mean) if mean >= 1 else None

    room = combine(fits, capacity, held, reason="no context yet")
    slots = number(source.gauge("idle_slots"))
    if slots is None:
        return _estimate(room)
    return _estimate(combine(lambda more: min(more, int(slots)), room))
