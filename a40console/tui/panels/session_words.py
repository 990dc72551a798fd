"""A session's phase, tools and marks in words that the list, the timeline and the texts share."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.session import SessionPhase, ToolCall
from a40console.model.wording import LONGEST_NAME, short_name
from a40console.tui import format as fmt
from a40console.tui.format import DASH, Formatter, known, shown
from a40console.tui.ink import Line, Role, Span, clean, line

CAPTURE = "●"
"""Marks a session whose text is written to files."""

LOSS = "▲"
FAILED = "✖"
USED, FREE = "▇", "▁"
"""Not full blocks: those of neighbouring rows would run together."""

MARK = "│"
"""Where the client compacts, in the gauge of its window."""

PHASE_ROLES: dict[SessionPhase, Role] = {
    "decode": Role.GOOD,
    "prefill": Role.SERIES,
    "queued": Role.WARN,
    "held": Role.WARN,
    "client": Role.TEXT,
    "idle": Role.MUTED,
}

_ROW_NAME = 4
"""Characters of a long session id in the rows of the overview."""


def row_name(session: str, agent: str = "") -> str:
    """A session and its agent where there is room for a word: `7f3a Explore`."""
    name = session if len(session) <= LONGEST_NAME else session[:_ROW_NAME]
    return clean(f"{name} {agent}".rstrip())


def agent_name(agent: str) -> str:
    """An agent without the letters that tell it from others of its type: `Explore`."""
    return clean(agent.partition(" ")[0])


def phase_words(phase: SessionPhase, tool: Text, since: Figure, room: int) -> str:
    """`decode 4 s`, `runs Bash 3 m`: a long tool gives way, the time stays."""
    age = shown(since, fmt.age)
    word = phase if phase != "client" else f"runs {known(tool, 'a tool')}"
    word = clean(word)
    left = room - len(age) - 1
    if len(word) > left:
        word = word.removeprefix("runs ")
    if len(word) > left:
        word = word[: max(1, left - 1)] + "…"
    return f"{word} {age}"


def context_gauge(used: Figure, compacts_at: Figure, window: Figure, width: int) -> Line:
    """How much of the window is used, and where the client compacts; a dash where either lacks."""
    whole, context = number(window), number(used)
    if not whole or context is None:
        return line(Span(DASH.ljust(width), Role.MUTED))
    filled = min(width, round(context / whole * width))
    filled = max(filled, int(context > 0))
    cells = [USED] * filled + [FREE] * (width - filled)
    at = number(compacts_at)
    place = None if at is None or at >= whole else min(width - 1, int(at / whole * width))
    role = Role.WARN if at is not None and context >= 0.9 * min(at, whole) else Role.SECOND
    spans = [
        Span(MARK, Role.STRONG) if index == place else Span(cell, role)
        for index, cell in enumerate(cells)
    ]
    return line(*spans)


def tool_words(tools: Iterable[ToolCall]) -> str:
    """`Bash 2.5 s`, `Task ≤41 s`, `Bash runs`, `Grep 0.3 s ✖`; calls of one name are counted."""
    told: dict[str, int] = {}
    for call in tools:
        words = _call(call)
        told[words] = told.get(words, 0) + 1
    return "  ".join(words if times == 1 else f"{words} ×{times}" for words, times in told.items())


def _call(call: ToolCall) -> str:
    name = clean(call.name)
    if isinstance(call.duration_s, Missing):
        return f"{name} runs" if call.duration_s.reason == "it runs" else f"{name} {DASH}"
    bound = "≤" if call.origin == "seen" else ""
    return f"{name} {bound}{shown(call.duration_s, fmt.latency)}{f' {FAILED}' * call.failed}"


def fitting(figure: Figure, width: int, *formatters: Formatter) -> str:
    """A figure in the first of its forms that fits so many cells; a figure is never cut."""
    texts = [shown(figure, formatter) for formatter in formatters]
    return next((text for text in texts if len(text) <= width), texts[-1])


def name_of(session: str) -> str:
    """A session's name as headings write it."""
    return clean(short_name(session))
