"""The cells of one request's row, by the name of their column. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size

from a40console.model.figures import Figure, Missing, ratio
from a40console.model.snapshot import RecentRequest, Slot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, Formatter, known, shown
from a40console.tui.ink import Line, Role, Span, clean, line
from a40console.tui.panels.session_words import agent_name, row_name
from a40console.tui.panels.slot_columns import CURSOR, Column, Layout
from a40console.tui.track import Track

_END = 4
"""Cells of a name's end that stay where names are told apart by it."""

_SHORT_PAIR = 11
"""Cells of passes and tokens a pass in a narrow table."""


def cell(text: str, column: Column) -> str:
    """A text at its side of the column, cut with an ellipsis where it is too long."""
    excess = cell_len(text) - column.width
    if excess > 0 and column.keeps_end and cell_len(text) == len(text):
        text = text[: column.width - 1 - _END] + "…" + text[-_END:]
    elif excess > 0:
        text = set_cell_size(text, column.width - 1) + "…"
    blanks = " " * max(0, -excess)
    return text + blanks if column.side == "left" else blanks + text


def titles(columns: Sequence[Column]) -> Line:
    """The columns' names above a list of rows."""
    names = "".join(column.gap + cell(column.title, column) for column in columns)
    return line(Span(" " * CURSOR + names, Role.LABEL))


def values(slot: Slot, form: Layout, track: Track | None) -> dict[str, str]:
    """What a live request has to say in each column."""
    return {
        **_seen(slot, form, track),
        "session": _who(slot),
        "phase": slot.phase,
        "generated": _within(slot.generated_tokens, fmt.count, form, "generated"),
        "speed": _within(slot.tokens_per_s, fmt.rate, form, "speed"),
        "pair": _pair(slot, form.short),
        "ttft": _within(slot.ttft_s, fmt.rate, form, "ttft"),
        "age": shown(slot.age_s, fmt.age),
    }


def _seen(slot: Slot, form: Layout, track: Track | None) -> dict[str, str]:
    """What stays true of a request after its end."""
    counted: Callable[[float], str] = fmt.short_count if form.short else fmt.count
    return {
        "client": clean(known(slot.client)),
        "model": clean(known(slot.model)),
        "queue": queued(track),
        "context": _within(slot.prompt_tokens, counted, form, "context"),
        "reused": shown(ratio(slot.cached_tokens, slot.prompt_tokens), fmt.percent),
        "reread": _within(slot.reread_tokens, counted, form, "reread"),
        "limit": _within(slot.max_tokens, fmt.count, form, "limit"),
        "method": slot.method,
    }


def _within(figure: Figure, formatter: Formatter, form: Layout, name: str) -> str:
    """A figure in its column, in thousands where it is too wide: a cut figure is another one."""
    text = shown(figure, formatter)
    return text if len(text) <= form.width_of(name) else shown(figure, fmt.short_count)


def queued(track: Track | None) -> str:
    """Seconds that it waited, as seen from here; below what it can have been at most."""
    if track is None:
        return DASH
    bound_s = track.waited_at_most_s
    if bound_s is not None:
        return f"<{fmt.two_digits(max(0.1, bound_s))}"
    return shown(track.waited_s, fmt.rate)


def _who(slot: Slot) -> str:
    if isinstance(slot.session, Missing):
        return "direct" if slot.direct else clean(slot.request_id)
    agent = known(slot.agent, "")
    return row_name(slot.session, agent_name(agent))


def _no_pair(short: bool) -> str:
    """A dash where the passes would stand."""
    return f"{DASH:>6}" + " " * (5 if short else 11)


def _pair(slot: Slot, short: bool) -> str:
    passes, tokens = shown(slot.passes_per_s, fmt.tenths), shown(slot.tokens_per_pass, fmt.rate)
    if passes == DASH and tokens == DASH:
        return _no_pair(short)
    if short:
        text = f"{passes}×{tokens}"
        return (
            text
            if len(text) <= _SHORT_PAIR
            else f"{shown(slot.passes_per_s, fmt.short_count)}×{tokens}"
        )
    return f"{passes:>6} × {tokens:<8}"


def _whose(request: RecentRequest) -> str:
    if isinstance(request.session, Missing):
        return clean(request.request_id)
    return row_name(request.session, agent_name(known(request.agent, "")))


def finished(request: RecentRequest, form: Layout, track: Track | None) -> Line:
    """The row of a request that ended, as the service tells it; what it does not tell, as seen."""
    names = {column.name for column in form.columns}
    reason = clean(known(request.finish_reason))
    at = f"at {fmt.clock(request.ended_at)}"
    row = {
        **_told(request, form, track),
        "session": _whose(request),
        "phase": "ended" if "finish" in names else reason,
        "finish": reason,
        "generated": _within(request.generated_tokens, fmt.count, form, "generated"),
        "speed": _within(request.tokens_per_s, fmt.rate, form, "speed"),
        "pair": _no_pair(form.short) if "spark" in names else at,
        "spark": at,
        "ttft": _within(request.ttft_s, fmt.rate, form, "ttft"),
        "age": shown(request.age_s, fmt.age),
    }
    return line(
        *(
            Span(" " * len(column.gap) + cell(row.get(column.name, DASH), column), Role.MUTED)
            for column in form.columns
        )
    )


def _told(request: RecentRequest, form: Layout, track: Track | None) -> dict[str, str]:
    """What a live request's row has too."""
    counted: Callable[[float], str] = fmt.short_count if form.short else fmt.count
    row = {
        "client": clean(known(request.client)),
        "model": clean(known(request.model)),
        "queue": shown(request.queue_s, fmt.rate),
        "context": _within(request.prompt_tokens, counted, form, "context"),
        "reused": shown(ratio(request.cached_tokens, request.prompt_tokens), fmt.percent),
        "reread": _within(request.reread_tokens, counted, form, "reread"),
        "limit": _within(request.max_tokens, fmt.count, form, "limit"),
        "method": clean(known(request.method)),
    }
    seen = _seen(track.slot, form, track) if track and track.slot else {}
    return {name: seen.get(name, text) if text == DASH else text for name, text in row.items()}
