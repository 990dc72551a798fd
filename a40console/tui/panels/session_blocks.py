"""What is known of a session besides its turns: window, losses, agents, tools, findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from a40console.model.event import Finding
from a40console.model.figures import Figure, Missing, number
from a40console.model.session import ClientWindow, PrefixLoss, SessionAgent, SessionDetail, ToolSum
from a40console.model.wording import short_name
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, flow, line, wrap
from a40console.tui.panels.findings import GLYPHS
from a40console.tui.panels.frame import heading
from a40console.tui.panels.session_words import (
    FAILED,
    LOSS,
    PHASE_ROLES,
    agent_name,
    context_gauge,
)

_NAME = 11
_GAUGE = 20
_FEW = 48
"""Below so many cells tables leave columns out."""


def window(detail: SessionDetail, width: int) -> list[Line]:
    """The true window and its use, what the client was told or assumes, when it compacts."""
    told = detail.window
    used = f"{shown(detail.context_tokens, fmt.count)} of {shown(told.true_tokens, fmt.count)}"
    share = f"{shown(told.used_ratio, fmt.percent)} used"
    gauge = context_gauge(
        detail.context_tokens, told.compacts_at_tokens, told.true_tokens, min(_GAUGE, width // 3)
    )
    lines = [
        heading("Window", share, width),
        fit(line(_label("context"), gauge, f"  {used}"), width),
        *_told("compacts at", told.compacts_at_tokens, width),
        *_told("told" if told.told else "assumed", told.assumed_tokens, width),
    ]
    if told.evidence:
        parts = wrap(told.evidence, width - _NAME - 1, Role.MUTED)
        lines += [line(" " * (_NAME + 1), part) for part in parts]
    times = [
        fmt.plural(told.compactions, "compaction") if told.compactions else "",
        f"{fmt.plural(told.overflows, 'request')} refused: too long" if told.overflows else "",
    ]
    said = ", ".join(part for part in times if part)
    return [*lines, *([line(_label("so far"), said)] if said else [])]


def losses(detail: SessionDetail, width: int, *, most: int = 5) -> list[Line]:
    """The newest prefixes that were lost: where, how much, why, and what helps."""
    lines = [heading("Lost prefixes", _count(len(detail.losses)), width)]
    for loss in list(reversed(detail.losses))[:most]:
        lines += _loss(loss, width)
    if len(detail.losses) > most:
        lines.append(line(Span(f"  {fmt.count(len(detail.losses) - most)} older", Role.MUTED)))
    return lines


def _loss(loss: PrefixLoss, width: int) -> list[Line]:
    fault = loss.kind in ("changed", "evicted")
    who = "" if loss.agent == "main" else f" {agent_name(loss.agent)}"
    place = "" if loss.block is None else f", block {loss.block}: {loss.block_kind}"
    spent = "" if number(loss.prefill_s) is None else f" in {shown(loss.prefill_s, fmt.latency)}"
    again = f"{shown(loss.tokens, fmt.count)} tokens re-read{spent}"
    head = wrap(f"{fmt.clock(loss.at)} turn {loss.turn}{who}{place}", width - 2, Role.STRONG)
    lines = wrap(f"{loss.kind}, {again}: {loss.cause}", width - 2)
    lines += wrap(loss.remedy, width - 2, Role.MUTED)
    return [
        *(
            line(Span(f"{LOSS if fault else '·'} " if index == 0 else "  ", Role.WARN), part)
            for index, part in enumerate(head)
        ),
        *(line("  ", part) for part in lines),
    ]


def agents(detail: SessionDetail, width: int, *, most: int = 8) -> list[Line]:
    """The main agent and its sub-agents, each with its requests added up."""
    count = len(detail.agents)
    lines = [heading("Agents", f"{_count(count)}, requests added up", width)]
    name = max(16, min(24, width - 41))
    titles = f"{'':<{name}}{'phase':<9}{'reqs':>5}{'context':>9}{'reused':>9}{'out':>9}"
    lines.append(fit(line(Span(titles, Role.LABEL)), width))
    lines += [_agent(agent, name, width) for agent in detail.agents[:most]]
    if count > most:
        lines.append(line(Span(f"  {fmt.count(count - most)} more", Role.MUTED)))
    return lines


def _agent(agent: SessionAgent, name: int, width: int) -> Line:
    said = clean(f"{'└ ' if agent.is_subagent else ''}{agent.agent}")
    if len(said) >= name:
        said = said[: name - 2] + "…"
    figures = (agent.context_tokens, agent.reused_tokens, agent.generated_tokens)
    cells = "".join(f"{shown(figure, _compact):>9}" for figure in figures)
    return fit(
        line(
            f"{said:<{name}}",
            Span(f"{agent.phase:<9}", PHASE_ROLES[agent.phase]),
            f"{fmt.count(agent.requests):>5}{cells}",
        ),
        width,
    )


def _compact(value: float) -> str:
    return fmt.count(value) if value < 999_999.5 else fmt.short_count(value)


def tools(detail: SessionDetail, width: int, *, most: int = 10) -> list[Line]:
    """Every tool with its calls, how many failed, and how long they ran."""
    calls = sum(tool.calls for tool in detail.tools)
    lines = [heading("Tools", fmt.plural(calls, "call") if calls else "none called", width)]
    if not detail.tools:
        return lines
    name = max(10, min(40, width - 38))
    titles = f"{'':<{name}}{'calls':>6}{'failed':>7}{'runs':>5}{'total':>10}{'longest':>10}"
    lines.append(fit(line(Span(titles, Role.LABEL)), width))
    lines += [_tool(tool, name, width) for tool in detail.tools[:most]]
    if len(detail.tools) > most:
        lines.append(line(Span(f"  {fmt.count(len(detail.tools) - most)} more", Role.MUTED)))
    return lines


def _tool(tool: ToolSum, name: int, width: int) -> Line:
    said = clean(tool.name)
    if len(said) >= name:
        said = said[: name - 2] + "…"
    failed = f"{tool.failed} {FAILED}" if tool.failed else "0"
    return fit(
        line(
            f"{said:<{name}}{fmt.count(tool.calls):>6}",
            Span(f"{failed:>7}", Role.WARN if tool.failed else Role.MUTED),
            Span(f"{tool.running or '':>5}", Role.SERIES),
            f"{shown(tool.total_s, seconds):>10}{shown(tool.longest_s, seconds):>10}",
        ),
        width,
    )


def seconds(value: float) -> str:
    """A time with decimals below a minute, in two units above."""
    return fmt.latency(value) if value < 59.5 else fmt.duration(value)


def removed(detail: SessionDetail, width: int) -> list[Line]:
    """What the gateway takes out of its requests, so that the engine finds its prefix again."""
    if not detail.removed:
        return [heading("Taken out by the gateway", "nothing", width)]
    told = "   ".join(f"{clean(kind)} {count} ×" for kind, count in detail.removed.items())
    return [heading("Taken out by the gateway", "", width), *wrap(told, width)]


def findings_of(detail: SessionDetail, found: Iterable[Finding]) -> list[Finding]:
    """The findings that name the session."""
    name = short_name(detail.session)
    return [each for each in found if name in each.evidence or name in each.title]


def findings(
    detail: SessionDetail, found: Iterable[Finding], width: int, *, in_full: bool = True
) -> list[Line]:
    """What is wrong with this session, and in full also the evidence and what mends it."""
    about = findings_of(detail, found)
    lines = [heading("Findings about it", _count(len(about)), width)]
    for each in about:
        glyph, role = GLYPHS[each.severity]
        said = wrap(each.title, width - 2, Role.STRONG)
        lines += [
            line(Span(f"{glyph} " if index == 0 else "  ", role), part)
            for index, part in enumerate(said)
        ]
        if not in_full:
            continue
        rest = [*wrap(each.evidence, width - 2, Role.MUTED), *wrap(each.remedy, width - 2)]
        lines += [line("  ", part) for part in rest]
    return lines


def brief(detail: SessionDetail, found: Sequence[Finding], width: int) -> list[Line]:
    """All of it in four lines, where there is no room for more."""
    told = detail.window
    space = flow(
        [
            line(f"{shown(told.used_ratio, fmt.percent)} of {_short(told.true_tokens)} used"),
            line(f"compacts at {_short(told.compacts_at_tokens)}"),
            line(Span(f"{_believes(told)} {_short(told.assumed_tokens)}", Role.MUTED)),
            line(Span(fmt.plural(told.compactions, "compaction"), Role.MUTED)),
        ],
        width - 8,
    )
    agents = [f"{clean(each.agent)} {each.requests}" for each in detail.agents]
    tools = [_tool_brief(tool) for tool in detail.tools]
    return [
        fit(line(Span("window  ", Role.LABEL), space), width),
        fit(line(Span("lost    ", Role.LABEL), _lost(detail, found)), width),
        line(Span("tools   ", Role.LABEL), _listed(tools, width - 8, "none called yet")),
        line(Span("agents  ", Role.LABEL), _listed(agents, width - 8, "none")),
    ]


def _believes(window: ClientWindow) -> str:
    return "told" if window.told else "assumes"


def _tool_brief(tool: ToolSum) -> str:
    runs = " runs" if tool.running else ""
    failed = f" {tool.failed}{FAILED}" if tool.failed else ""
    return f"{clean(tool.name)} {tool.calls}× {shown(tool.total_s, seconds)}{failed}{runs}"


def _lost(detail: SessionDetail, found: Sequence[Finding]) -> Line:
    if detail.losses:
        loss = detail.losses[-1]
        again = f"{shown(loss.tokens, fmt.short_count)} re-read"
        count = len(detail.losses)
        which = f"turn {loss.turn}" if count == 1 else f"{count} times, last in turn {loss.turn}"
        return line(Span(f"{LOSS} ", Role.WARN), f"{which}, {again}: {loss.cause}")
    about = findings_of(detail, found)
    if about:
        glyph, role = GLYPHS[about[0].severity]
        return line(Span(f"{glyph} ", role), clean(about[0].title))
    return line(Span("no prefix was lost", Role.MUTED))


def _listed(names: Sequence[str], width: int, none: str) -> Line:
    """As many as fit, and how many more there are."""
    if not names:
        return line(Span(none, Role.MUTED))
    taken = list(names)
    while len(taken) > 1:
        rest = len(names) - len(taken)
        said = "   ".join(taken) + (f"   +{rest}" if rest else "")
        if len(said) <= width:
            return line(said)
        taken.pop()
    rest = len(names) - 1
    return fit(line(taken[0] + (f"   +{rest}" if rest else "")), width)


def _short(figure: Figure) -> str:
    return shown(figure, fmt.short_count)


def _count(number_of: int) -> str:
    return fmt.count(number_of) if number_of else "none"


def _told(name: str, figure: Figure, width: int) -> list[Line]:
    if isinstance(figure, Missing):
        parts = wrap(f"{DASH} {figure.reason}", width - _NAME - 1, Role.MUTED)
        return [
            line(_label(name) if index == 0 else " " * (_NAME + 1), part)
            for index, part in enumerate(parts)
        ]
    return [line(_label(name), f"{shown(figure, fmt.count)} tokens")]


def _label(text: str) -> Span:
    return Span(f"{text:<{_NAME}} ", Role.LABEL)
