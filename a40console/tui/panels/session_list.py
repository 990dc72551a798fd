"""The list of sessions: one row each, the one that asked last first. Pure."""

from __future__ import annotations

from functools import lru_cache

from a40console.model.command import BY_ID
from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import Session, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import Formatter, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, wrap
from a40console.tui.keymap import action
from a40console.tui.panels.labels import gap
from a40console.tui.panels.session_words import (
    CAPTURE,
    PHASE_ROLES,
    context_gauge,
    fitting,
    name_of,
    phase_words,
)
from a40console.tui.panels.slot_cells import cell, titles
from a40console.tui.panels.slot_columns import CURSOR, Column
from a40console.tui.panels.slot_notes import reasons
from a40console.tui.reading import Reading

NORMAL, WIDE = 119, 196
_FOLLOWED = (
    "What they send through the gateway is followed here, session by session: context, reuse, "
    "tools, and each request turn by turn."
)
_SHORT = 8
"""Cells of a session's name where it is not written in full."""


def sessions_of(snapshot: Snapshot) -> tuple[Session, ...]:
    """The sessions in the order of the list."""
    return () if isinstance(snapshot.sessions, Missing) else snapshot.sessions


@lru_cache(8)
def columns(width: int) -> tuple[Column, ...]:
    """The columns that fit the width."""
    if width >= WIDE:
        return _wide(width)
    return _normal(width) if width >= NORMAL else _narrow(width)


def _narrow(width: int) -> tuple[Column, ...]:
    spare = max(0, width - 80)
    return (
        Column("session", "session", 8, "left", gap=""),
        Column("phase", "phase", 13 + min(spare, 12), "left"),
        Column("turns", "turn", 4),
        Column("context", "ctx", 5),
        Column("gauge", "", 6 + max(0, min(spare - 12, 20)), "left"),
        Column("reused", "reuse", 5),
        Column("reread", "re-rd", 5),
        Column("generated", "gen", 5),
        Column("speed", "tok/s", 5),
        Column("ttft", "TTFT", 5),
        Column("cost", "cost", 6),
    )


def _normal(width: int) -> tuple[Column, ...]:
    spare = max(0, width - NORMAL)
    return (
        Column("session", "session", _SHORT, "left", gap=""),
        Column("client", "client", 11, "left"),
        Column("phase", "phase", 14 + min(spare, 16), "left"),
        Column("turns", "turns", 5),
        Column("context", "context", 8),
        Column("gauge", "of window", 9 + max(0, min(spare - 16, 24)), "left"),
        Column("reused", "reused", 6),
        Column("reread", "re-read", 7),
        Column("generated", "gen", 7),
        Column("speed", "tok/s", 5),
        Column("sustained", "sust.", 5),
        Column("ttft", "TTFT", 5),
        Column("median", "med.", 5),
        Column("cost", "cost", 6),
    )


def _wide(width: int) -> tuple[Column, ...]:
    spare = max(0, width - WIDE)
    return (
        Column("session", "session", 36, "left", gap=""),
        Column("client", "client", 14, "left"),
        Column("phase", "phase", 20 + min(spare, 12), "left"),
        Column("turns", "turns", 5),
        Column("requests", "reqs", 5),
        Column("context", "context", 8),
        Column("gauge", "of the true window", 22 + max(0, min(spare - 12, 30)), "left"),
        Column("window", "window", 7),
        Column("reused", "reused", 6),
        Column("reread", "re-read", 8),
        Column("generated", "gen", 8),
        Column("speed", "tok/s", 6),
        Column("sustained", "sust.", 6),
        Column("ttft", "TTFT s", 6),
        Column("median", "median", 6),
        Column("cost", "cost", 8),
    )


def header(width: int) -> Line:
    """The columns' names."""
    return fit(titles(columns(width)), width)


def row(session: Session, width: int, *, here: bool, focused: bool) -> Line:
    """One session on one line."""
    texts = _texts(session, width)
    mark = Span(CAPTURE if session.capturing else " ", Role.BAD)
    parts: list[Span | Line] = [
        Span("▸" if here else " ", Role.KEY if focused else Role.MUTED),
        mark,
    ]
    idle = session.phase == "idle"
    roles = {
        "session": Role.STRONG if here else Role.TEXT,
        "phase": PHASE_ROLES[session.phase],
        "speed": Role.STRONG,
        "client": Role.MUTED,
    }
    for column in columns(width):
        if column.name == "gauge":
            gauge = context_gauge(
                session.context_tokens,
                session.compacts_at_tokens,
                session.window_tokens,
                column.width,
            )
            parts += [Span(column.gap), gauge]
            continue
        default = Role.MUTED if idle else Role.TEXT
        role = roles.get(column.name, default)
        parts.append(Span(column.gap + cell(texts[column.name], column), role))
    return fit(line(*parts), width)


def _texts(session: Session, width: int) -> dict[str, str]:
    widths = {column.name: column.width for column in columns(width)}

    def told(name: str, figure: Figure, *forms: Formatter) -> str:
        return fitting(figure, widths.get(name, 0), *forms)

    counts = fmt.count, fmt.short_count
    if width < NORMAL:
        counts = fmt.short_count, fmt.short_count
    rates = fmt.rate, fmt.count, fmt.short_count
    return {
        "session": clean(session.session) if width >= WIDE else name_of(session.session),
        "client": clean(known(session.client)),
        "phase": phase_words(session.phase, session.tool, session.phase_s, widths["phase"]),
        "turns": told("turns", session.turns, *counts),
        "requests": told("requests", session.requests, *counts),
        "context": told("context", session.context_tokens, *counts),
        "window": shown(session.window_tokens, fmt.short_count),
        "reused": shown(session.hit_ratio, fmt.percent),
        "reread": told("reread", session.reread_tokens, *counts),
        "generated": told("generated", session.generated_tokens, *counts),
        "speed": told("speed", session.tokens_per_s, *rates),
        "sustained": told("sustained", session.sustained_tokens_per_s, *rates),
        "ttft": told("ttft", session.ttft_last_s, *rates),
        "median": told("median", session.ttft_median_s, *rates),
        "cost": told("cost", session.cost_usd, _mills, _cents, _whole_dollars),
    }


def _mills(value: float) -> str:
    if value >= 0.9995:
        return f"${value:,.2f}"
    return f"${value:.3f}" if value >= 0.0005 else "$0" if value == 0 else "<$.001"


def _cents(value: float) -> str:
    return f"${value:,.2f}" if value >= 0.005 else "$0" if value == 0 else "<$.01"


def _whole_dollars(value: float) -> str:
    return f"${fmt.short_count(value)}"


def nothing(reading: Reading, width: int) -> list[Line]:
    """Why there is no session, and how one comes here."""
    listed = reading.snapshot.sessions
    if isinstance(listed, Missing):
        return [(), fit(line("  ", gap(listed)), width)]
    key = reading.keymap.hint("client.env")
    connect = action(BY_ID["client.env"])
    how = line(
        "  ",
        Span(key or "Connect a client", Role.KEY, connect),
        Span(
            " shows what to paste for Claude Code and other clients."
            if key
            else ", in the palette, shows what to paste.",
            Role.TEXT,
        ),
    )
    head = line(Span("  No client has sent anything in the last 24 hours.", Role.STRONG))
    told = wrap(_FOLLOWED, min(width - 4, 90), Role.MUTED)
    return [(), fit(head, width), (), fit(how, width), *(line("  ", part) for part in told)]


def notes(session: Session) -> str:
    """Who it is in full, and why a dash is a dash."""
    begun = fmt.clock(session.started_at)
    who = f"session {session.session}, {known(session.client, 'unnamed client')}, since {begun}"
    why = reasons(
        (
            ("context", session.context_tokens),
            ("window", session.window_tokens),
            ("compacts", session.compacts_at_tokens),
            ("reused", session.hit_ratio),
            ("re-read", session.reread_tokens),
            ("gen", session.generated_tokens),
            ("tok/s", session.tokens_per_s),
            ("sust.", session.sustained_tokens_per_s),
            ("TTFT", session.ttft_last_s),
            ("cost", session.cost_usd),
        )
    )
    return clean(f"{who} · {why}" if why else who)


def widest(width: int) -> int:
    """Cells that the columns of a width take."""
    return CURSOR + sum(len(column.gap) + column.width for column in columns(width))
