"""A session in full as a text: the drill-in, and what the command line prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from a40console.model.event import Finding
from a40console.model.figures import Figure, Missing, Text
from a40console.model.session import SessionDetail, SessionRequest
from a40console.model.snapshot import Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import Formatter, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, pad, wrap
from a40console.tui.panels import session_blocks as blocks
from a40console.tui.panels import session_list, session_timeline
from a40console.tui.panels.facts import fact, figure
from a40console.tui.panels.session_words import (
    CAPTURE,
    FAILED,
    PHASE_ROLES,
    phase_words,
)

_GAP = 3
_KINDS = {"turn": "a turn", "compaction": "a summary of the history", "other": "beside the turns"}
_TWO_COLUMNS = 118
_ORIGINS = {
    "header": "its session header",
    "metadata": "the user id in its requests",
    "legacy": "the user id in its requests, in the older form",
    "custom": "the header X-A40console-Session",
    "prefix": "the name in its address",
    "connection": "no name of its own: a hash of its key and kind",
}


def summary(detail: SessionDetail, width: int) -> Line:
    """One line: where it is, how fast, how much, what it cost."""
    state = phase_words(detail.phase, detail.tool, detail.phase_s, 24)
    items = [
        line(Span(state, PHASE_ROLES[detail.phase])),
        line(f"{shown(detail.hit_ratio, fmt.percent)} reused"),
        line(f"{shown(detail.sustained_tokens_per_s, fmt.rate)} tok/s sustained"),
        line(f"{shown(detail.cost_usd, fmt.dollars)}"),
        line(f"{shown(detail.usd_per_million, fmt.dollars)}/1M"),
        line(Span(clean(known(detail.client)), Role.MUTED)),
        line(Span(clean(known(detail.model)), Role.MUTED)),
    ]
    return flow([item for item in items if item], width)


def facts(detail: SessionDetail, width: int) -> list[Line]:
    """Its sums, each with its unit; what is missing says why."""
    rows: tuple[tuple[str, Figure, Formatter, str], ...] = (
        ("prompts", detail.prompt_tokens, fmt.count, " tokens"),
        ("reused", detail.reused_tokens, fmt.count, f" tokens, {_share(detail.hit_ratio)}"),
        ("re-read", detail.reread_tokens, fmt.count, " tokens"),
        ("generated", detail.generated_tokens, fmt.count, " tokens"),
        ("now", detail.tokens_per_s, fmt.rate, " tok/s"),
        ("sustained", detail.sustained_tokens_per_s, fmt.rate, _busy(detail.busy_s)),
        ("cost", detail.cost_usd, fmt.dollars, ""),
        ("price", detail.usd_per_million, fmt.dollars, " a million generated tokens"),
    )
    ended = [f"{detail.failed} failed" if detail.failed else ""]
    ended.append(f"{detail.aborted} given up" if detail.aborted else "")
    tail = "".join(f", {part}" for part in ended if part)
    state = phase_words(detail.phase, detail.tool, detail.phase_s, 60)
    lines = wrap(state, width, Role.STRONG)
    if detail.capturing:
        said = f"{CAPTURE} CAPTURE: the text of its requests and answers is written to files"
        lines += wrap(said, width, Role.BAD)
    lines += [(), *fact("session", detail.session, width)]
    lines += fact("known by", _ORIGINS[detail.origin], width)
    lines += fact("client", detail.client, width)
    lines += fact("model", _model(detail), width)
    lines += fact("began", f"{fmt.clock(detail.started_at)}, {_last(detail)}", width)
    lines += fact("turns", f"{detail.turns}, in {detail.requests} requests{tail}", width)
    lines += fact("TTFT", _waits(detail.ttft_s), width)
    for name, value, formatter, unit in rows:
        lines += figure(name, value, formatter, width, unit)
    return lines


def _last(detail: SessionDetail) -> str:
    if detail.phase not in ("client", "idle"):
        return "a request is under way"
    return f"last answer at {fmt.clock(detail.last_at)}"


def _model(detail: SessionDetail) -> Text:
    if isinstance(detail.model, Missing) or isinstance(detail.max_tokens, Missing):
        return detail.model
    return f"{detail.model}, at most {shown(detail.max_tokens, fmt.count)} tokens an answer"


def _share(hit_ratio: Figure) -> str:
    return f"{shown(hit_ratio, fmt.percent)} of the prompts whose reuse is known"


def _busy(busy_s: Figure) -> str:
    return f" tok/s over {shown(busy_s, blocks.seconds)} in the engine"


def _waits(ttft_s: Sequence[float]) -> Text:
    if not ttft_s:
        return Missing("no turn has begun to answer yet")
    last = "  ".join(fmt.rate(value) for value in ttft_s[-8:])
    return f"{last} s, the newest last"


def full(detail: SessionDetail, found: Sequence[Finding], width: int) -> list[Line]:
    """Everything that is known of it, one below the other; in two columns where there is room."""
    parts = [
        [
            *facts(detail, half),
            (),
            *blocks.window(detail, half),
            (),
            *blocks.findings(detail, found, half),
        ]
        if side == 0
        else [
            *blocks.agents(detail, half, most=32),
            (),
            *blocks.tools(detail, half, most=64),
            (),
            *blocks.losses(detail, half, most=32),
            (),
            *blocks.removed(detail, half),
        ]
        for side, half in enumerate(_halves(width))
    ]
    body = (
        beside(parts[0], parts[1], width) if width >= _TWO_COLUMNS else [*parts[0], (), *parts[1]]
    )
    return [*body, (), *timeline(detail, width)]


def _halves(width: int) -> tuple[int, int]:
    if width < _TWO_COLUMNS:
        return width, width
    left = (width - _GAP) // 2
    return left, width - _GAP - left


def beside(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line]:
    """Two columns of lines in the halves of a width."""
    half, _ = _halves(width)
    rows = max(len(left), len(right))
    sides = ([*side, *[()] * (rows - len(side))] for side in (left, right))
    return [line(pad(a, half), " " * _GAP, b) if b else a for a, b in zip(*sides, strict=True)]


def timeline(detail: SessionDetail, width: int) -> list[Line]:
    """The requests, newest first; a click on one opens it."""
    scale_s = session_timeline.scale_of(detail.timeline)
    return [
        session_timeline.title(detail, width),
        session_timeline.header(width),
        *(
            _clickable(session_timeline.row(each, width, scale_s, here=False, focused=False), each)
            for each in reversed(detail.timeline)
        ),
    ]


def _clickable(row: Line, request: SessionRequest) -> Line:
    name = clean(request.request_id).replace("'", "")
    return tuple(span._replace(action=f"screen.request('{name}')") for span in row)


def request_text(request: SessionRequest, width: int) -> list[Line]:
    """One request as its session knows it: times, tokens, tools, and what was lost."""
    state = "under way" if request.live else f"ended: {known(request.finish_reason)}"
    kind = _KINDS[request.purpose] + (", sent again" if request.repeats else "")
    lines = [*wrap(state, width, Role.STRONG), ()]
    lines += fact("request", request.request_id, width)
    lines += fact("agent", f"{request.agent}, turn {request.turn}: {kind}", width)
    lines += fact(
        "came at",
        f"{fmt.clock(request.at)}, {'streamed' if request.streamed else 'as a whole'}",
        width,
    )
    for name, value in (
        ("client took", request.client_s),
        ("queued", request.queue_s),
        ("prefill", request.prefill_s),
        ("first token", request.ttft_s),
        ("decode", request.decode_s),
    ):
        lines += figure(name, value, fmt.latency, width)
    lines.append(())
    for name, value in (
        ("prompt", request.prompt_tokens),
        ("reused", request.reused_tokens),
        ("re-read", request.reread_tokens),
        ("generated", request.generated_tokens),
    ):
        lines += figure(name, value, fmt.count, width, " tokens")
    lines += figure("speed", request.tokens_per_s, fmt.rate, width, " tok/s")
    lines += figure("status", request.status, lambda value: f"{value:.0f}", width)
    return [*lines, *_tools(request, width), *_lost(request, width)]


def _tools(request: SessionRequest, width: int) -> list[Line]:
    if not request.tools:
        return []
    lines: list[Line] = [()]
    for call in request.tools:
        told = call.origin == "client"
        by = "as the client told" if told else "seen from here, questions to the user included"
        lasted = (
            call.duration_s.reason
            if isinstance(call.duration_s, Missing)
            else f"{shown(call.duration_s, fmt.latency)}, {by}"
        )
        mark = f" {FAILED} it failed" if call.failed else ""
        lines += fact("tool", f"{call.name} at {fmt.clock(call.at)}: {lasted}{mark}", width)
    return lines


def _lost(request: SessionRequest, width: int) -> list[Line]:
    loss = request.loss
    if isinstance(loss, Missing):
        return [(), *fact("lost", loss, width)]
    again = f"{shown(loss.tokens, fmt.count)} tokens re-read"
    spent = "" if isinstance(loss.prefill_s, Missing) else f", {shown(loss.prefill_s, fmt.latency)}"
    return [
        (),
        *fact("lost", f"{loss.kind}: {loss.cause} ({again}{spent})", width),
        *(fact("", loss.remedy, width) if loss.remedy else []),
    ]


def listing(snapshot: Snapshot, width: int) -> list[Line]:
    """The list of sessions for the command line."""
    listed = session_list.sessions_of(snapshot)
    rows = [session_list.row(each, width, here=False, focused=False) for each in listed]
    return [session_list.header(width), *rows]


def overview(detail: SessionDetail, found: Sequence[Finding], size: Size) -> list[Line]:
    """What the screen shows beside or below the turns; what has no room is in the drill-in."""
    width = size.width
    if width >= _TWO_COLUMNS:
        left_width, right_width = _halves(width)
        left = _stacked(_first(detail, found, left_width), size.height, left_width)
        right = _stacked(_second(detail, right_width), size.height, right_width)
        return beside(left, right, width)
    return _stacked([*_first(detail, found, width), *_second(detail, width)], size.height, width)


def _first(detail: SessionDetail, found: Sequence[Finding], width: int) -> list[list[Line]]:
    told = [blocks.window(detail, width), blocks.losses(detail, width, most=2)]
    if blocks.findings_of(detail, found):
        told.insert(1, blocks.findings(detail, found, width, in_full=False))
    return told


def _second(detail: SessionDetail, width: int) -> list[list[Line]]:
    agents = blocks.agents(detail, width, most=5)
    tools = blocks.tools(detail, width, most=6)
    return [agents, tools, blocks.removed(detail, width)]


def _stacked(parts: Sequence[list[Line]], rows: int, width: int) -> list[Line]:
    """One below the other, with blank lines where there is room; what is cut is said."""
    lines = [entry for part in parts for entry in part]
    gaps = len(parts) - 1
    if len(lines) + gaps <= rows:
        lines = [entry for part in parts for entry in ((), *part)][1:]
    if len(lines) <= rows:
        return lines
    more = line(Span("… enter shows all of it", Role.MUTED))
    return [*lines[: rows - 1], fit(more, width)]
