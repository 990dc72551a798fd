"""A session's requests, turn by turn, with where their time went. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import median

from a40console.model.figures import Figure, Missing, number, ratio
from a40console.model.session import MAIN_AGENT, SessionDetail, SessionRequest
from a40console.tui import format as fmt
from a40console.tui.format import Formatter, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line
from a40console.tui.panels.frame import heading
from a40console.tui.panels.session_words import LOSS, agent_name, fitting, tool_words
from a40console.tui.panels.slot_cells import cell, titles
from a40console.tui.panels.slot_columns import CURSOR, Column
from a40console.tui.panels.slot_notes import reasons

NORMAL, WIDE = 110, 150
PARTS: tuple[tuple[str, str, Role], ...] = (
    ("client", "┈", Role.MUTED),
    ("queue", "▂", Role.WARN),
    ("prefill", "▅", Role.SERIES),
    ("decode", "▇", Role.GOOD),
)
"""Where a request's time goes, with the cells that it is drawn in."""

_DWARFS = 4.0
"""A request of so many times the median does not make the others' bars too short to read."""

_LEAST = 0.02
"""From this part of its request's time on, what is shorter than a cell has one."""

_PURPOSES = {"turn": "", "compaction": "compacts", "other": "beside"}


@lru_cache(8)
def columns(width: int) -> tuple[Column, ...]:
    """The columns that fit the width; the last takes what is left."""
    fixed = _fixed(width)
    taken = CURSOR + sum(len(column.gap) + column.width for column in fixed)
    return (*fixed, Column("tools", "ended, tools", max(8, width - taken - 2), "left", gap="  "))


def _fixed(width: int) -> tuple[Column, ...]:
    if width >= WIDE:
        return (
            Column("at", "at", 8, "left", gap=""),
            Column("turn", "turn", 4),
            Column("agent", "agent", 10, "left"),
            Column("bar", "", 24, "left"),
            Column("client", "client", 6),
            Column("queue", "queue", 6),
            Column("prefill", "prefill", 7),
            Column("decode", "decode", 6),
            Column("prompt", "prompt", 7),
            Column("reused", "reused", 6),
            Column("reread", "re-read", 9),
            Column("out", "out", 6),
            Column("speed", "tok/s", 5),
        )
    if width >= NORMAL:
        return (
            Column("at", "at", 8, "left", gap=""),
            Column("turn", "turn", 4),
            Column("agent", "agent", 9, "left"),
            Column("bar", "", 22, "left"),
            Column("ttft", "TTFT s", 6),
            Column("prompt", "prompt", 7),
            Column("reused", "reused", 6),
            Column("reread", "re-read", 9),
            Column("out", "out", 5),
            Column("speed", "tok/s", 5),
        )
    return (
        Column("at", "at", 8, "left", gap=""),
        Column("who", "turn", 9, "left"),
        Column("bar", "", 12 + max(0, min(20, width - 90)), "left"),
        Column("ttft", "TTFT", 5),
        Column("prompt", "prmpt", 5),
        Column("reused", "reuse", 5),
        Column("reread", "re-rd", 6),
        Column("out", "out", 5),
    )


def title(detail: SessionDetail, width: int) -> Line:
    """The heading: how much there is, and what the bars are made of."""
    listed = fmt.plural(len(detail.timeline), "request")
    older = detail.forgotten_requests
    more = f", {fmt.count(older)} older" if older else ""
    legend = "  ".join(f"{glyph} {name}" for name, glyph, _ in PARTS)
    name = "Turn by turn"
    tails = (f"{listed}, newest first{more}   {legend}", f"{listed}{more}   {legend}", legend, "")
    room = width - len(name) - 6
    return heading(name, next(tail for tail in tails if len(tail) <= room or not tail), width)


def header(width: int) -> Line:
    """The columns' names."""
    return fit(titles(columns(width)), width)


def scale_of(requests: Sequence[SessionRequest]) -> float:
    """Seconds that a whole bar stands for: the longest request, unless it dwarfs the others.

    The client's time counts as long as the engine's longest at the most.
    """
    longest = max((sum(_engine_s(each)) for each in requests), default=0.0)
    spent = [min(number(each.client_s) or 0.0, longest) + sum(_engine_s(each)) for each in requests]
    if not spent:
        return 0.0
    return min(max(spent), _DWARFS * median(spent) or max(spent))


def row(request: SessionRequest, width: int, scale_s: float, *, here: bool, focused: bool) -> Line:
    """One request on one line."""
    lost = not isinstance(request.loss, Missing)
    texts = _texts(request, width)
    parts: list[Span | Line] = [
        Span("▸ " if here else "  ", Role.KEY if focused else Role.MUTED),
    ]
    roles = {"reread": Role.WARN if lost else Role.TEXT, "at": Role.MUTED}
    sub = request.agent != MAIN_AGENT
    for column in columns(width):
        parts.append(Span(column.gap))
        if column.name == "bar":
            parts.append(bar(request, column.width, scale_s))
            continue
        role = roles.get(column.name, Role.MUTED if sub or request.repeats else Role.TEXT)
        parts.append(Span(cell(texts[column.name], column), role))
    return fit(line(*parts), width)


def _texts(request: SessionRequest, width: int) -> dict[str, str]:
    widths = {column.name: column.width for column in columns(width)}

    def told(name: str, figure: Figure, *forms: Formatter, lead: str = "") -> str:
        return lead + fitting(figure, widths.get(name, 0) - len(lead), *forms)

    counts = fmt.count, fmt.short_count
    if width < NORMAL:
        counts = fmt.short_count, fmt.short_count
    rates = fmt.rate, fmt.count, fmt.short_count
    main = request.agent == MAIN_AGENT
    lost = "" if isinstance(request.loss, Missing) else f"{LOSS} "[: 1 if width < NORMAL else 2]
    turn = fmt.count(request.turn)
    sub = f"└ {agent_name(request.agent)}"
    return {
        "at": fmt.clock(request.at),
        "turn": turn if main else "",
        "agent": "main" if main else sub,
        "who": turn if main else sub,
        "client": told("client", request.client_s, *rates),
        "queue": told("queue", request.queue_s, *rates),
        "prefill": told("prefill", request.prefill_s, *rates),
        "decode": told("decode", request.decode_s, *rates),
        "ttft": told("ttft", request.ttft_s, *rates),
        "prompt": told("prompt", request.prompt_tokens, *counts),
        "reused": shown(ratio(request.reused_tokens, request.prompt_tokens), fmt.percent),
        "reread": told("reread", request.reread_tokens, *counts, lead=lost),
        "out": told("out", request.generated_tokens, *counts),
        "speed": told("speed", request.tokens_per_s, *rates),
        "tools": ending(request),
    }


def ending(request: SessionRequest) -> str:
    """How it ended, and the tools that it called; what speaks for itself is left out."""
    reason = clean(known(request.finish_reason))
    tools = tool_words(request.tools)
    calls = reason in ("tool_use", "tool_calls") and bool(tools)
    parts = [
        "live" if request.live else "" if calls else reason,
        "again" if request.repeats else "",
        _PURPOSES[request.purpose],
        tools,
    ]
    return "  ".join(part for part in parts if part)


def bar(request: SessionRequest, width: int, scale_s: float) -> Line:
    """Its seconds, one after the other, on the scale that all rows share.

    A client's time may be hours: it is cut to half a bar, with a « before; what goes on behind the
    bar's end has a » there.
    """
    engine, client_s = _engine_s(request), number(request.client_s) or 0.0
    parts_s = (min(client_s, scale_s / 2), *engine)
    if scale_s <= 0 or not sum(parts_s):
        return line(" " * width)
    spans: list[Span] = []
    left = width
    for (_, glyph, role), seconds in zip(PARTS, parts_s, strict=True):
        seen = seconds >= _LEAST * sum(parts_s)
        cells = min(left, max(round(seconds / scale_s * width), int(seen)))
        spans.append(Span(glyph * cells, role))
        left -= cells
    if client_s > scale_s / 2 and spans[0].text:
        spans[0] = spans[0]._replace(text="«" + spans[0].text[1:])
    if sum(parts_s) > 1.02 * scale_s and spans[-1].text:
        spans[-1] = spans[-1]._replace(text=spans[-1].text[:-1] + "»")
    return line(*spans, " " * left)


def _engine_s(request: SessionRequest) -> tuple[float, float, float]:
    queue, prefill, decode = request.queue_s, request.prefill_s, request.decode_s
    return number(queue) or 0.0, number(prefill) or 0.0, number(decode) or 0.0


def notes(request: SessionRequest) -> str:
    """Its seconds in figures, and why a dash is a dash."""
    times = (
        ("client", request.client_s),
        ("queue", request.queue_s),
        ("prefill", request.prefill_s),
        ("decode", request.decode_s),
    )
    spent = ", ".join(f"{name} {shown(figure, fmt.latency)}" for name, figure in times)
    why = reasons(
        (
            *times,
            ("TTFT", request.ttft_s),
            ("reused", request.reused_tokens),
            ("re-read", request.reread_tokens),
            ("out", request.generated_tokens),
            ("tok/s", request.tokens_per_s),
        )
    )
    loss = "" if isinstance(request.loss, Missing) else request.loss.cause
    told = [f"{request.request_id} ({request.agent}): {spent}", loss, why]
    return clean(" · ".join(part for part in told if part))
