"""What a run would take and do, before it starts. Pure."""

from __future__ import annotations

from a40console.model.figures import Figure, Missing
from a40console.model.run import Intrusion, RunPlan
from a40console.tui import format as fmt
from a40console.tui.format import Formatter, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, width_of, wrap

INTRUSIONS: dict[Intrusion, tuple[str, Role]] = {
    "nothing": ("disturbs nobody", Role.GOOD),
    "shares": ("shares the engine", Role.TEXT),
    "evicts": ("throws cached prefixes out", Role.WARN),
    "restarts": ("restarts the engine", Role.WARN),
}
GAP = "   "
"""Between the figures of the first line."""

_MOST_ARMS = 6


def plan_lines(plan: RunPlan, width: int) -> list[Line]:
    """Time, dollars, arms, what it does to the engine's clients, and why it cannot start."""
    said, role = INTRUSIONS[plan.intrusion]
    takes = line(
        _figure("takes", plan.seconds, fmt.duration),
        GAP,
        _figure("costs", plan.usd, fmt.dollars),
        Span(f"{GAP}{fmt.plural(plan.requests, 'request')}", Role.TEXT),
    )
    whole = line(takes, Span(f"{GAP}{said}", role))
    lines = [whole] if width_of(whole) <= width else [fit(takes, width), line(Span(said, role))]
    if plan.arms:
        lines += wrap(f"{fmt.plural(len(plan.arms), 'arm')}: {_arms(plan)}", width, Role.MUTED)
    figures = (plan.seconds, plan.usd)
    for reason in dict.fromkeys(each.reason for each in figures if isinstance(each, Missing)):
        lines += wrap(f"{fmt.DASH} {reason}", width, Role.MUTED, indent=2)
    for consequence in plan.consequences:
        lines += wrap(f"▲ {consequence}", width, Role.WARN, indent=2)
    if plan.refusal:
        lines += wrap(f"✖ {plan.refusal}", width, Role.BAD, indent=2)
    return lines


def _arms(plan: RunPlan) -> str:
    named = ", ".join(map(clean, plan.arms[:_MOST_ARMS]))
    more = len(plan.arms) - _MOST_ARMS
    return f"{named} and {more} more" if more > 0 else named


def _figure(name: str, figure: Figure, formatter: Formatter) -> Line:
    return line(Span(f"{name} ", Role.MUTED), Span(shown(figure, formatter), Role.STRONG))
