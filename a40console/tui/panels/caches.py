"""The prefix cache with the last prefix that was lost, and the KV cache."""

from __future__ import annotations

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import CacheLoss, KvCache, PrefixCache
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, wrap
from a40console.tui.panels.labels import LABEL, aged, gap, labelled
from a40console.tui.panels.session_words import name_of
from a40console.tui.reading import Reading


def caches(reading: Reading, size: Size) -> list[Line]:
    """The prefix cache with the last prefix that was lost, and the KV cache."""
    snapshot = reading.snapshot
    width = size.width
    cache = snapshot.prefix_cache
    first = [labelled("Prefix cache", hits(cache, width - LABEL), width)]
    if not isinstance(cache.last_loss, Missing):
        room = 1 if size.height < 4 else 2
        first += [labelled("", part, width) for part in _loss(cache.last_loss, width, room)]
    second = [labelled("KV cache", kv(snapshot.kv_cache, width - LABEL), width)]
    return aged(reading, cache.age_s, first) + aged(reading, snapshot.kv_cache.age_s, second)


def _loss(loss: CacheLoss, width: int, rows: int) -> list[Line]:
    """The last prefix that was lost: whose, in which turn, how much and why."""
    again = shown(loss.tokens, fmt.count)
    text = f"{name_of(loss.session)} turn {loss.turn} re-read {again}: {loss.cause}"
    parts = wrap(text, width - LABEL - 2)
    if len(parts) > rows:
        parts = [fit(line(clean(text)), width - LABEL - 2)]
    return [
        line(Span("▲ " if index == 0 else "  ", Role.WARN), part)
        for index, part in enumerate(parts)
    ]


def hits(cache: PrefixCache, width: int) -> Line:
    """The share of prompt tokens that hit, of how many prompts, and of what could have hit."""
    since = shown(cache.hit_ratio_since_start, fmt.percent)
    if isinstance(cache.hit_ratio, Missing):
        tail = "" if since == DASH else f"{since} since start"
        return flow([gap(cache.hit_ratio), line(Span(tail, Role.MUTED))], width)
    prompts = number(cache.prompts)
    where = "" if prompts is None else f" of {fmt.plural(prompts, 'prompt')}"
    reusable = (
        ""
        if isinstance(cache.reusable_ratio, Missing)
        else f"{shown(cache.reusable_ratio, fmt.percent)} of reusable"
    )
    return flow(
        [
            line(Span(shown(cache.hit_ratio, fmt.percent), Role.STRONG), where),
            line(reusable),
            line(Span(f"{since} since start", Role.MUTED)),
        ],
        width,
    )


def _more(figure: Figure) -> str:
    """How many more requests of the present mean context fit."""
    words = "more request fits" if number(figure) == 1 else "more requests fit"
    return f"{shown(figure, fmt.count)} {words}"


def kv(cache: KvCache, width: int) -> Line:
    """Tokens held and reusable, of all, and how many more sessions fit."""
    if isinstance(cache.held_tokens, Missing) and isinstance(cache.held_ratio, Missing):
        return gap(cache.held_tokens)
    held = (
        f"{shown(cache.held_tokens, fmt.short_count)} held"
        if not isinstance(cache.held_tokens, Missing)
        else f"{shown(cache.held_ratio, fmt.percent)} held"
    )
    reusable = (
        ""
        if isinstance(cache.reusable_tokens, Missing)
        else f" + {shown(cache.reusable_tokens, fmt.short_count)} reusable"
    )
    capacity = f"of {shown(cache.capacity_tokens, fmt.short_count)} tokens"
    more = (
        line("")
        if isinstance(cache.fits_more, Missing)
        else line(Span(_more(cache.fits_more), Role.MUTED))
    )
    return flow([line(f"{held}{reusable} {capacity}"), more], width)
